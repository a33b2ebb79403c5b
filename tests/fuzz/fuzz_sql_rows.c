/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as the rows that a database server sends to the helper: whatever it makes of them, the
 * daemon accepts each datagram. The first two bytes choose the driver and how it asks. Then come
 * cells, each behind its length in one byte: 255 is a NULL, 254 ends an answer.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "sql/frames.h"
#include "sql/helper/mariadb_locks.h"
#include "sql/helper/mariadb_sessions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
