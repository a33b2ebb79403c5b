/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sends messages to a datagram socket whose receiver may have stopped reading: a few messages are
 * kept and sent later, further ones are counted.
 * Used by the journald and syslog sinks.
 * Never blocks; syslog() and sd_journal_send() block when about 11 messages have not been read.
 */
#ifndef IOSTALL_SINKS_DATAGRAM_H
#define IOSTALL_SINKS_DATAGRAM_H

#include <stdint.h>

#include "util/text.h"

#define DATAGRAM_SIZE 4096

struct datagram;

/* `name` is for log messages; `path` is the socket of the receiver. */
int datagram_new(const char *name, const char *path, struct datagram **ret_datagram);
struct datagram *datagram_free(struct datagram *d);

/* A message has at most DATAGRAM_SIZE bytes. It is sent after those that are kept, in order. */
void datagram_send(struct datagram *d, const struct text *message);
/* Called once a second: sends what is kept. */
void datagram_retry(struct datagram *d);

/* Makes room for one message by sending or losing the oldest. */
void datagram_make_room(struct datagram *d);

/* Messages that a receiver did not take; none while there has never been one. */
uint64_t datagram_dropped(const struct datagram *d);

#endif
