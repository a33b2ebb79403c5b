/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as an event: refused without a trace, or an operation that a record can hold. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "enrich/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct record record, again;
static struct decoded_operation decoded;
static char line_buf[RECORD_LINE_SIZE];

static void check_refused(void)
{
	if (decoded.ts_ns != 4711 || record.operation.bytes != 4711)
		abort();
}

static void check_taken(const struct event_operation *e)
{
	const struct record_operation *op = &record.operation;
	struct text line = TEXT_ON(line_buf);

	if (!memchr(op->path, '\0', sizeof(op->path)) ||
		!memchr(op->comm, '\0', sizeof(op->comm)) || !op->op || op->op >= RECORD_OP_COUNT)
		abort();
	if (decoded.stack_len > EVENT_STACK_DEPTH ||
		decoded.finished != !!(e->flags & EVENT_FINISHED))
		abort();
	if (!(e->flags & EVENT_PATH_COMPLETE) && !op->path_truncated)
		abort();
	record.type = decoded.finished ? RECORD_STALL : RECORD_STUCK;
	memcpy(record.incident, "20261120T031207Z-3f9c", RECORD_ID_SIZE);
	record_encode_json(&record, &line);
	if (line.overflow || record_decode_json(line.buf, line.len - 1, &again) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&record, 0, sizeof(record));
	decoded.ts_ns = 4711;
	record.operation.bytes = 4711;
	if (event_decode(data, size, &decoded, &record.operation) < 0)
		check_refused();
	else
		check_taken((const void *)data);
	return 0;
}
