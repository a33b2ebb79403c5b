/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Full file systems, and operations that failed. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "verdict/words.h"

static bool is_quite_full(const struct model_full *full)
{
	return full->used_pct >= QUITE_FULL_PCT;
}

/* Whoever writes there fails or waits: that is worth a second of waiting, if others wait longer. */
static void find_full(struct graph *g)
{
	const struct model_full *full = &g->m->host.full;
	struct node *n = *full->mount ? graph_get(g, NODE_full, 0) : NULL;

	if (n && is_quite_full(full))
		n->extra.waited_ns += NSEC_PER_SEC;
}

/* Only who writes much fills a file system, and a log that is there already needs no more space. */
static bool fills_disk(const struct culprit *c)
{
	return c->has_half && c->requests[MODEL_WRITE] > c->requests[MODEL_READ] &&
		c->bytes >= FILLS_BYTES;
}

/* Where no file was seen to grow, whoever loaded the disk with writes is the likeliest. */
static void judge_full(struct graph *g, struct node *n)
{
	const struct model_full *full = &g->m->host.full;
	struct culprit *c;

	if (full->disk < 0 || full->grown_bytes || full->is_changed ||
		g->culprits_count == GRAPH_CULPRITS_MAX)
		return;
	c = &g->culprits[g->culprits_count];
	blame(g->m, full->disk, c);
	if (!fills_disk(c))
		return;
	g->culprits_count++;
	n->culprit = c;
}

/* "python3 (pid 12) wrote /small/log, which grew fastest (by 2.0 MiB)" */
static void add_writer(const struct model_full *full, struct text *t)
{
	words_add_who(t, &full->writer);
	text_add(t, full->grown_bytes || full->is_changed ? " wrote " : " has open for writing ");
	if (*full->relation)
		text_addf(t, "%s, ", full->relation);
	words_add_path(t, full->path);
	if (full->grown_bytes)
		text_add(t, ", the file that grew fastest, by ");
	else if (full->is_changed)
		text_add(t, ", the largest one that was written meanwhile, ");
	else
		text_add(t, ", the largest such file, ");
	record_add_size(t, full->grown_bytes ? full->grown_bytes : full->bytes);
	if (full->search == RECORD_SEARCH_cut_off)
		text_add(t, " (not all open files were looked at)");
}

static void say_full(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_full *full = &g->m->host.full;

	text_addf(t, "file system %s", full->mount);
	if (is_quite_full(full)) {
		text_add(t, full->is_inodes ? " had no inodes left" : " was full");
	} else {
		text_add(t, full->is_inodes ? " had " : " was ");
		words_add_pct(t, full->used_pct);
		text_add(t, full->is_inodes ? " of its inodes in use" : " full");
	}
	if (!full->is_inodes && full->disk >= 0) {
		text_add(t, ", with ");
		record_add_size(t, full->free_bytes);
		text_add(t, " free");
	}
	if (n->culprit) {
		text_add(t, ". ");
		words_add_culprit(t, n->culprit, g->with_statement);
		text_add(t, n->culprit->is_probable ? " probably wrote " : " wrote ");
		words_add_pct(t, n->culprit->pct);
		text_add(t, " of what its disk did");
		if (*n->culprit->file) {
			text_add(t, ", mostly ");
			words_add_path_end(t, n->culprit->file);
		}
	} else if (full->writer.pid) {
		text_add(t, ". ");
		add_writer(full, t);
	}
}

static void add_full_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct model_full *full = &g->m->host.full;
	struct record_verdict_part *part;
	struct text t;

	if (full->disk >= 0) {
		v->dev = g->m->disks.list[full->disk].dev;
		text_copy(v->dev_name, sizeof(v->dev_name), g->m->disks.list[full->disk].name);
	}
	if (n->culprit) {
		part = words_add_part(v, RECORD_WHAT_culprit, RECORD_BASIS_inferred, &t);
		if (!part)
			return;
		words_add_culprit(&t, n->culprit, false);
		words_set_who(part, &n->culprit->who);
		part->share_pct = n->culprit->pct;
		part->bytes = n->culprit->bytes;
		return;
	}
	if (!full->writer.pid)
		return;
	part = words_add_part(v, RECORD_WHAT_largest, RECORD_BASIS_inferred, &t);
	if (!part)
		return;
	add_writer(full, &t);
	words_set_who(part, &full->writer);
	text_copy(part->path, sizeof(part->path), full->path);
	text_copy(part->relation, sizeof(part->relation), full->relation);
	part->bytes = full->grown_bytes ? full->grown_bytes : full->bytes;
}

const struct node_kind node_full = {
	.name = "full file system",
	.find = find_full,
	.class = RECORD_CLASS_full,
	.judge = judge_full,
	.say = say_full,
	.add_parts = add_full_parts,
};

/* Errors */

static bool is_want_of_space(const struct model_error *e)
{
	return e->number == ENOSPC || e->number == EDQUOT;
}

/* An error of the disk says more than that it was full, or that the kernel stopped writes then. */
static unsigned int rank_of(const struct model_error *e)
{
	return is_want_of_space(e) ? 0 : e->number == EROFS ? 1 : 2;
}

/* NULL: only the kernel's log has some. */
static const struct model_error *find_main_error(const struct model_host *h)
{
	const struct model_error *most = NULL;

	for (unsigned int i = 0; i < MODEL_ERRORS_MAX && h->errors[i].number; i++) {
		const struct model_error *e = &h->errors[i];

		if (!most || rank_of(e) > rank_of(most) ||
			(rank_of(e) == rank_of(most) && e->count > most->count))
			most = e;
	}
	return most;
}

static void find_failures(struct graph *g)
{
	const struct model_host *h = &g->m->host;
	struct node *n =
		find_main_error(h) || h->kernel.failures ? graph_get(g, NODE_failed, 0) : NULL;

	if (!n)
		return;
	n->is_symptom = true;
	/* Those whose operations failed miss something, however short that was. */
	n->extra.waited_ns = find_main_error(h) ? 1 : 0;
}

/* "made the file system on sda1 read-only" */
static void add_stopped(const struct model_kernel_log *log, struct text *t)
{
	const bool is_read_only = log->fs_stopped == KMSG_STOPPED_READ_ONLY;

	text_addf(t, "%s the file system on %s%s", is_read_only ? "made" : "shut down",
		log->fs_stopped_disk, is_read_only ? " read-only" : "");
}

static void say_log(const struct model_kernel_log *log, struct text *t)
{
	text_add(t, "the kernel ");
	if (log->fs_stopped != KMSG_STOPPED_NOT) {
		add_stopped(log, t);
		text_add(t, " and ");
	}
	text_add(t, "logged ");
	text_add_count(t, log->errors, "problem", "problems");
	text_addf(t, " of storage, %s\"%s\"", log->errors > 1 ? "first " : "", log->text);
}

static void say_failed(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_error *e = find_main_error(&g->m->host);

	(void)n;
	if (!e) {
		say_log(&g->m->host.kernel, t);
		return;
	}
	text_add(t, e->is_at_least ? "at least " : "");
	text_add_count(t, e->count, "operation", "operations");
	text_addf(t, " failed with %s", strerrorname_np(e->number));
	text_add(t, e->count > 1 ? ", the first of " : ", that of ");
	words_add_who(t, &e->who);
	if (*e->path) {
		text_add(t, " on ");
		words_add_path(t, e->path);
	}
	if (e->disk >= 0 && !is_want_of_space(e))
		text_addf(t, " (disk %s)", words_disk_name(g->m, e->disk));
	if (!is_want_of_space(e) && g->m->host.kernel.fs_stopped != KMSG_STOPPED_NOT) {
		text_add(t, "; the kernel ");
		add_stopped(&g->m->host.kernel, t);
	}
	if (e->disk >= 0 && is_want_of_space(e))
		text_addf(t, ": the file system on %s was %s", words_disk_name(g->m, e->disk),
			e->number == ENOSPC ? "full" : "at its quota");
}

static void add_failed_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct model_error *e = find_main_error(&g->m->host);

	(void)n;
	if (!e || e->disk < 0)
		return;
	v->dev = g->m->disks.list[e->disk].dev;
	text_copy(v->dev_name, sizeof(v->dev_name), g->m->disks.list[e->disk].name);
}

const struct node_kind node_failed = {
	.name = "failed operations",
	.find = find_failures,
	.class = RECORD_CLASS_failed,
	.say = say_failed,
	.add_parts = add_failed_parts,
};
