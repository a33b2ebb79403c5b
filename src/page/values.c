/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times of a line on the page, names of processes, and texts that may be empty. */
#include <string.h>

#include "page/internal.h"
#include "util/clock.h"

const char *page_or_dash(const char *s)
{
	return *s ? s : "-";
}

const char *page_file_name(const struct record_operation *o)
{
	return *o->relation ? o->relation : o->path;
}

int64_t page_second(const struct page *p, uint64_t mono_ns)
{
	if (mono_ns >= p->opened_mono_ns)
		return (int64_t)((mono_ns - p->opened_mono_ns) / NSEC_PER_SEC);
	return -(int64_t)((p->opened_mono_ns - mono_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC);
}

uint64_t page_real_ns(const struct page *p, uint64_t mono_ns)
{
	return p->opened_real_ns + mono_ns - p->opened_mono_ns;
}

void page_add_name(struct text *t, const char *process, const char *comm)
{
	if (*process && *comm && strcmp(process, comm) != 0) {
		text_add(t, process);
		text_add(t, "/");
	}
	text_add(t, *comm ? comm : page_or_dash(process));
}

void page_cause(const struct record_operation *o, char ret_cause[static RECORD_NAME_SIZE])
{
	size_t len = strcspn(o->kstack, "+\n");

	if (o->waits_for) {
		text_copy(ret_cause, RECORD_NAME_SIZE, record_cause_text(o->waits_for));
		return;
	}
	if (!o->kstack_while_blocked || len == 0) {
		memcpy(ret_cause, o->wchan, RECORD_NAME_SIZE);
		return;
	}
	len = len < RECORD_NAME_SIZE ? len : RECORD_NAME_SIZE - 1;
	memcpy(ret_cause, o->kstack, len);
	ret_cause[len] = '\0';
}

uint32_t page_count_of(const struct record_operation *o)
{
	return o->alike.present ? 1 + o->alike.count : 1;
}
