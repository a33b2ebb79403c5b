/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times of a line on the page, names of processes, and texts that may be empty. */
#include <string.h>

#include "page/internal.h"
#include "util/clock.h"

#define DELETED " (deleted)"

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

/* A name in /proc has at most 15 bytes. */
void page_process_of(const struct record_operation *o, char ret_process[static RECORD_COMM_SIZE])
{
	const char *slash = strrchr(o->exe, '/'), *name = slash ? slash + 1 : o->exe;
	size_t len = strlen(name);

	if (o->pid == o->tid) {
		memcpy(ret_process, o->comm, RECORD_COMM_SIZE);
		return;
	}
	if (len > strlen(DELETED) && strcmp(name + len - strlen(DELETED), DELETED) == 0)
		len -= strlen(DELETED);
	if (len >= RECORD_COMM_SIZE)
		len = RECORD_COMM_SIZE - 1;
	memset(ret_process, 0, RECORD_COMM_SIZE);
	memcpy(ret_process, name, len);
}

void page_add_name(struct text *t, const char *process, const char *comm)
{
	if (*process && *comm && strcmp(process, comm) != 0) {
		text_add(t, process);
		text_add(t, "/");
	}
	text_add(t, *comm ? comm : page_or_dash(process));
}
