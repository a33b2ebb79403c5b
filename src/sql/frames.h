/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether what a helper sent is one of the protocol's datagrams.
 * Used by targets and the fuzzer.
 * Never believes a length, a text's end or a number.
 */
#ifndef IOSTALL_SQL_FRAMES_H
#define IOSTALL_SQL_FRAMES_H

#include <stddef.h>

#include "sql/protocol.h"

/* Room for any datagram of a helper. */
union sql_helper_frame {
	struct sql_frame frame;
	struct sql_frame_server server;
	struct sql_frame_session session;
	struct sql_frame_end end;
};

/*
 * Checks size bytes that were received into *frame: its type, or -EPROTO.
 */
int sql_frame_check(const union sql_helper_frame *frame, size_t size);

#endif
