/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Operations that failed, and processes that the kernel killed, where nothing else explains it. */
#include <errno.h>
#include <string.h>

#include "verdict/devices.h"
#include "verdict/words.h"

static bool is_want_of_space(const struct verdict_error *e)
{
	return e->number == ENOSPC || e->number == EDQUOT;
}

/* An error of the disk says more than that it was full. */
static bool says_more(const struct verdict_error *a, const struct verdict_error *b)
{
	if (is_want_of_space(a) != is_want_of_space(b))
		return !is_want_of_space(a);
	return a->count > b->count;
}

const struct verdict_error *verdict_find_main_error(const struct verdict_facts *f)
{
	const struct verdict_error *most = NULL;

	for (unsigned int i = 0; i < VERDICT_ERRORS_MAX && f->errors[i].number; i++)
		if (!most || says_more(&f->errors[i], most))
			most = &f->errors[i];
	return most;
}

bool verdict_has_failed(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_COUNT;
	return verdict_find_main_error(f) || f->kernel_failures > 0;
}

static void add_first(const struct verdict_error *e, struct text *t)
{
	text_add(t, e->count > 1 ? ", the first of " : ", that of ");
	verdict_add_who(t, &e->who);
	if (*e->path) {
		text_add(t, " on ");
		verdict_add_path(t, e->path);
	}
}

/* "2 operations failed with ENOSPC, the first of sort pid 7 on tmp/sort.1" */
void verdict_add_error(const struct verdict_error *e, struct text *t)
{
	text_add(t, e->at_least ? "at least " : "");
	text_add_count(t, e->count, "operation", "operations");
	text_addf(t, " failed with %s", strerrorname_np(e->number));
	add_first(e, t);
}

/*
 * "the kernel made the file system on sdb1 read-only and logged 2 problems of storage, first "I/O
 * error, dev sdb, sector 8""
 */
void verdict_add_kernel_errors(const struct verdict_facts *f, struct text *t)
{
	text_add(t, "the kernel ");
	if (f->fs_stopped != KMSG_STOPPED_NOT)
		text_addf(t, "%s %s%s and ",
			f->fs_stopped == KMSG_STOPPED_READ_ONLY ? "made the file system on"
								: "shut down the file system on",
			f->fs_stopped_disk,
			f->fs_stopped == KMSG_STOPPED_READ_ONLY ? " read-only" : "");
	text_add(t, "logged ");
	text_add_count(t, f->kernel_errors, "problem", "problems");
	text_addf(t, " of storage, %s\"", f->kernel_errors > 1 ? "first " : "");
	text_add(t, f->kernel_text);
	text_add(t, "\"");
}

/* Threads that waited for memory are its victims, too. */
bool verdict_is_killed(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_memory;
	return f->killed > 0;
}

void verdict_say_killed(const struct verdict_finding *v, struct text *t)
{
	verdict_add_killed(v->f, t);
}

static void add_place(const struct verdict_finding *v, const char *what, struct text *t)
{
	text_add(t, what);
	if (v->device) {
		text_add(t, " on device ");
		verdict_add_device(t, v->device);
	}
}

void verdict_say_failed(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_error *e = verdict_find_main_error(v->f);

	if (!e) {
		verdict_add_kernel_errors(v->f, t);
	} else if (is_want_of_space(e)) {
		add_place(v, v->device ? "the file system" : "a file system", t);
		text_add(t, e->number == ENOSPC ? " was full: " : " was at its quota: ");
		verdict_add_error(e, t);
	} else {
		add_place(v, "operations", t);
		text_addf(t, " failed: %s%u with %s", e->at_least ? "at least " : "", e->count,
			strerrorname_np(e->number));
		add_first(e, t);
	}
}
