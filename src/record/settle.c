/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a line what is read back from it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "record/fields.h"
#include "util/clock.h"

static void settle_fields(const struct field *fields, char *base);

/* Two decimals; no number is one that cannot be told. */
static void settle_real(double *value)
{
	char buf[512];

	if (!isfinite(*value)) {
		*value = NAN;
		return;
	}
	snprintf(buf, sizeof(buf), "%.2f", *value);
	*value = strtod(buf, NULL);
}

/* No line is empty, and none ends the list. */
static void settle_lines(char *lines)
{
	char *out = lines;

	for (const char *in = lines; *in; in++)
		if (*in != '\n' || (out > lines && out[-1] != '\n'))
			*out++ = *in;
	if (out > lines && out[-1] == '\n')
		out--;
	*out = '\0';
}

static void settle_array(const struct field *f, char *base)
{
	uint32_t count = *(const uint32_t *)(const void *)(base + f->count_offset);

	for (uint32_t i = 0; i < count && i < f->count_max; i++)
		settle_fields(f->members, base + f->offset + i * f->size);
}

static void settle_field(const struct field *f, char *base)
{
	void *value = base + f->offset;

	switch (f->kind) {
	case FIELD_TEXT:
		text_settle_utf8(value);
		break;
	case FIELD_LINES:
		text_settle_utf8(value);
		settle_lines(value);
		break;
	case FIELD_REAL:
		settle_real(value);
		break;
	case FIELD_MS:
		*(uint64_t *)value -= *(uint64_t *)value % NSEC_PER_USEC;
		break;
	case FIELD_OBJECT:
	case FIELD_PART:
		if (!f->nullable || *(const bool *)value)
			settle_fields(f->members, value);
		break;
	case FIELD_ARRAY:
		settle_array(f, base);
		break;
	default:
		break;
	}
}

static void settle_fields(const struct field *fields, char *base)
{
	for (const struct field *f = fields; f->key; f++)
		settle_field(f, base);
}

void record_settle(struct record *r)
{
	settle_fields(record_types[r->type].fields, (char *)r + record_types[r->type].offset);
}
