/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a record line: decoded, shown, and written again the same. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct record first, second;
static char line_buf[RECORD_LINE_SIZE], again_buf[RECORD_LINE_SIZE];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text line = TEXT_ON(line_buf), again = TEXT_ON(again_buf);

	if (record_decode_json((const char *)data, size, &first) < 0)
		return 0;
	record_format_text(&first, first.mono_ns, &line);
	if (line.overflow || memchr(line.buf, '\x1b', line.len))
		abort();
	record_encode_json(&first, &line);
	if (line.overflow || record_decode_json(line.buf, line.len - 1, &second) < 0)
		abort();
	record_encode_json(&second, &again);
	if (line.len != again.len || memcmp(line.buf, again.buf, line.len) != 0)
		abort();
	return 0;
}
