/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has the probes write their own lines each second and before `close`, and adds names to them. */
#include "enrich/enrich.h"
#include "enrich/waits.h"
#include "probes/offcpu.h"
#include "session/internal.h"
#include "watch/watch.h"
#include "util/clock.h"
#include "util/text.h"

static struct record *begin_line(void *userdata, enum record_type type)
{
	return session_begin_line(userdata, type);
}

/* What only the kernel has a name for keeps that. */
static void name_disk(const struct enrich *e, uint32_t major, uint32_t minor, char *name,
	size_t size)
{
	char known[RECORD_DISK_NAME_SIZE];

	enrich_device(e, major, minor, known, sizeof(known));
	if (*known)
		text_copy(name, size, known);
}

static void name_device(const struct session *s, const struct probe_line_names *names,
	struct record_device *d)
{
	const struct enrich *e = s->o.enrich;

	name_disk(e, d->dev.major, d->dev.minor, d->dev_name, sizeof(d->dev_name));
	enrich_below(e, d->dev.major, d->dev.minor, d->below, sizeof(d->below));
	if (names->path_in_fs)
		enrich_path_in_fs(e, names->fs_major, names->fs_minor, d->oldest.path,
			sizeof(d->oldest.path));
}

static void name_io_by(const struct session *s, const struct probe_line_names *names,
	struct record_io_by *b)
{
	const struct enrich *e = s->o.enrich;

	name_disk(e, b->dev.major, b->dev.minor, b->dev_name, sizeof(b->dev_name));
	enrich_unit(names->cgroup_names, b->unit, sizeof(b->unit));
	if (names->path_in_fs &&
		enrich_path_in_fs(e, names->fs_major, names->fs_minor, b->path, sizeof(b->path)))
		b->path_truncated = false;
	text_copy(b->relation, sizeof(b->relation), sql_find_relation(s->o.sql, b->path));
}

static void name_offcpu(struct session *s, const struct probe_line_names *names,
	struct record_offcpu *o)
{
	if (o->pid) {
		watch_copy_comm(s->o.watch, o->pid, o->process, sizeof(o->process));
		enrich_process(s->o.enrich, o->pid, names->process_start_ns, o->exe, o->unit);
	}
	if (names->kernel_len > 0)
		enrich_kernel_stack(s->o.enrich, names->kernel, names->kernel_len, true, o->kstack);
	o->waits_for = waits_for(o->kstack);
	if (names->waker_len > 0)
		enrich_kernel_stack(s->o.enrich, names->waker, names->waker_len, false,
			o->waker.kstack);
	if (waits_is_interrupt(o->waker.kstack)) {
		o->waker.interrupt = true;
		o->waker.pid = o->waker.tid = 0;
		o->waker.comm[0] = '\0';
	}
}

static void ask_stack(void *userdata, uint32_t tid, uint64_t off_ns)
{
	const struct stack_request request = { off_ns, tid, SESSION_STACK_OF_OFFCPU };
	struct session *s = userdata;

	if (s->stacks && stack_reader_has_room(s->stacks))
		stack_reader_ask(s->stacks, &request, clock_mono_ns());
}

static void write_line(void *userdata, const struct probe_line_names *names)
{
	struct session *s = userdata;
	struct record *r = &s->record;

	if (r->type == RECORD_DEVICE)
		name_device(s, names, &r->device);
	else if (r->type == RECORD_IO_BY)
		name_io_by(s, names, &r->io_by);
	else if (r->type == RECORD_OFFCPU)
		name_offcpu(s, names, &r->offcpu);
	else if (r->type == RECORD_JOURNAL)
		enrich_device(s->o.enrich, r->journal.dev.major, r->journal.dev.minor,
			r->journal.dev_name, sizeof(r->journal.dev_name));
	session_write_line(s);
}

static struct probe_report make_report(struct session *s, bool final)
{
	return (struct probe_report){
		.now_ns = clock_mono_ns(),
		.attached_ns = s->attached_ns,
		.final = final,
		.userdata = s,
		.begin = begin_line,
		.write = write_line,
		.ask_stack = ask_stack,
	};
}

void session_ask_offcpu_stacks(struct session *s)
{
	const struct probe_report report = make_report(s, false);

	offcpu_ask_stacks(&s->probes.probes[CONFIG_PROBE_offcpu], &report);
}

void session_summarize(struct session *s, bool final)
{
	const struct probe_report report = make_report(s, final);

	probe_set_summarize(&s->probes, &report);
}
