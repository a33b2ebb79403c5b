/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One finding of `iostall doctor`, as a row or as a JSON object. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor.h"
#include "util/text.h"

static const char *const verdict_names[] = { "ok", "degraded", "fails" };

void doctor_report(struct doctor *d, const char *area, const char *name,
	enum doctor_verdict verdict, const char *format, ...)
{
	char raw[512], buf[2048];
	struct text out = TEXT_ON(buf);
	va_list ap;

	va_start(ap, format);
	vsnprintf(raw, sizeof(raw), format, ap);
	va_end(ap);
	d->counts[verdict]++;
	text_reset(&out);
	if (d->o->json) {
		text_json_open(&out, NULL, '{');
		text_json_string(&out, "area", area);
		text_json_string(&out, "name", name);
		text_json_string(&out, "result", verdict_names[verdict]);
		text_json_string(&out, "detail", raw);
		text_json_close(&out, '}');
		fprintf(d->out, "%s\n", out.buf);
		return;
	}
	text_add_printable(&out, raw, strlen(raw));
	fprintf(d->out, "%-9s %-9s %-14s %s\n", verdict_names[verdict], area, name, out.buf);
}
