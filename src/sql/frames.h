/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks that what a helper sent is a datagram of the protocol, before anybody looks at it.
 * Used by targets, by a test tool and by the fuzzer.
 * Never trusts a length, the end of a text or a number.
 */
#ifndef IOSTALL_SQL_FRAMES_H
#define IOSTALL_SQL_FRAMES_H

#include <stddef.h>

#include "sql/protocol.h"

/* Has room for any datagram of a helper. */
union sql_helper_frame {
	struct sql_frame frame;
	struct sql_frame_server server;
	struct sql_frame_session session;
	struct sql_frame_lock lock;
	struct sql_frame_relation relation;
	struct sql_frame_directory directory;
	struct sql_frame_end end;
};

/*
 * Checks the form of size bytes that were received into *frame. Returns its type, or -EPROTO. What
 * the numbers in it say is not checked.
 */
int sql_frame_check(const union sql_helper_frame *frame, size_t size);

/*
 * Sets numbers that cannot be true to 0, which means unknown, and returns how many these were. For
 * a frame whose form is right: one bad number costs no more than itself.
 */
unsigned int sql_frame_correct(union sql_helper_frame *frame);

#endif
