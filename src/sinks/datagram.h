/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages to a datagram socket that may have stopped reading: a few are kept, then counted.
 * Used by the journald and syslog sinks.
 * Never blocks, which syslog() and sd_journal_send() do after about 11 messages nobody reads.
 */
#ifndef IOSTALL_SINKS_DATAGRAM_H
#define IOSTALL_SINKS_DATAGRAM_H

#include <stdint.h>

#include "util/text.h"

#define DATAGRAM_SIZE 4096

struct datagram;

/* name is for messages about it; path is that of the receiver's socket. */
int datagram_new(const char *name, const char *path, struct datagram **ret_datagram);
struct datagram *datagram_free(struct datagram *d);

/* message is at most DATAGRAM_SIZE bytes. Behind what is kept already, so that the order stays. */
void datagram_send(struct datagram *d, const struct text *message);
/* Once a second. */
void datagram_retry(struct datagram *d);

uint64_t datagram_dropped(const struct datagram *d);

#endif
