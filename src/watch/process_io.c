/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/process_io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"
#include "util/parse.h"

/* The deepest call has a buffer for the name of a file. */
#define THREAD_STACK_BYTES (16 * 1024)
#define LIMIT_NS (5 * NSEC_PER_SEC)
#define TEXT_SIZE 512
/* Words of a stat file between the name of the program and the faults of its children. */
#define STAT_BEFORE_CHILDREN 8
/* What was read longer ago, as of a process that cannot be read now, is not of the last seconds. */
#define FRESH_NS (3 * NSEC_PER_SEC)

int process_io_parse(const char *buf, size_t len, struct process_io_counts *ret_counts)
{
	struct process_io_counts counts = { 0 };
	struct cursor text = { buf, buf + len }, line;
	bool has_read = false, has_written = false;

	while (cursor_line(&text, &line))
		if (cursor_take(&line, "read_bytes:"))
			has_read = cursor_u64(&line, &counts.read_bytes) == 0;
		else if (cursor_take(&line, "write_bytes:"))
			has_written = cursor_u64(&line, &counts.write_bytes) == 0;
	if (!has_read || !has_written)
		return -EINVAL;
	*ret_counts = counts;
	return 0;
}

uint64_t process_io_children_faults(const char *buf, size_t len)
{
	const char *comm_end = memrchr(buf, ')', len), *word;
	struct cursor text = { comm_end ? comm_end + 1 : buf, buf + len };
	uint64_t faults;
	size_t word_len;

	for (unsigned int i = 0; i < STAT_BEFORE_CHILDREN; i++)
		if (cursor_word(&text, &word, &word_len) < 0)
			return 0;
	return cursor_u64(&text, &faults) == 0 ? faults : 0;
}

/* On the thread. */

static uint64_t read_children_faults(int procfs_fd, int32_t pid)
{
	char name[48], text[TEXT_SIZE];
	ssize_t n;

	/* That of the thread: for the process the kernel adds up the times of all its threads. */
	snprintf(name, sizeof(name), "%d/task/%d/stat", pid, pid);
	n = file_read_at(procfs_fd, name, text, sizeof(text));
	return n > 0 ? process_io_children_faults(text, (size_t)n) : 0;
}

static struct process_io_counts read_counts(int procfs_fd, int32_t pid)
{
	const uint64_t faults = read_children_faults(procfs_fd, pid);
	struct process_io_counts counts = { 0 };
	char name[32], text[TEXT_SIZE];
	ssize_t n;

	snprintf(name, sizeof(name), "%d/io", pid);
	n = file_read_at(procfs_fd, name, text, sizeof(text));
	if (n <= 0 || process_io_parse(text, (size_t)n, &counts) < 0 ||
		read_children_faults(procfs_fd, pid) != faults)
		return (struct process_io_counts){ 0 };
	counts.ns = clock_mono_ns();
	counts.children_faults = faults;
	return counts;
}

static void run(void *state, const int *fds)
{
	struct process_io_reading *r = state;

	for (unsigned int i = 0; i < r->count; i++) {
		r->answers[i].counts = read_counts(fds[0], r->answers[i].pid);
		__atomic_store_n(&r->done, i + 1, __ATOMIC_RELEASE);
	}
}

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct process_io_reading),
	.limit_ns = LIMIT_NS,
};

int process_io_init(struct process_io *p, int procfs_fd)
{
	memset(p, 0, sizeof(*p));
	return renewable_worker_init(&p->worker, &kind, procfs_fd);
}

void process_io_done(struct process_io *p)
{
	renewable_worker_done(&p->worker);
}

static struct process_io_slot *find_slot(struct process_io *p, int32_t pid)
{
	for (unsigned int i = 0; i < PROCESS_IO_MAX; i++)
		if (p->slots[i].pid == pid)
			return &p->slots[i];
	return NULL;
}

/*
 * A counter that goes back is that of another process with the same id. What a child has moved
 * counts as its parent's once this has waited for it: it is not what the parent did since.
 */
static void take_answer(struct process_io *p, const struct process_io_answer *a)
{
	struct process_io_slot *slot = find_slot(p, a->pid);
	const struct process_io_counts *last;

	if (!slot)
		return;
	last = slot->taken ? &slot->counts[(slot->taken - 1) % PROCESS_IO_READINGS] : NULL;
	if (a->counts.ns == 0 ||
		(last &&
			(a->counts.read_bytes < last->read_bytes ||
				a->counts.write_bytes < last->write_bytes ||
				a->counts.children_faults != last->children_faults)))
		slot->taken = 0;
	if (a->counts.ns)
		slot->counts[slot->taken++ % PROCESS_IO_READINGS] = a->counts;
}

/* It may only have had no CPU: it is left out for as long as its thread does not return. */
static bool replace_hung(struct process_io *p, int32_t pid)
{
	int place = renewable_worker_renew(&p->worker, clock_mono_ns());

	/* It has ended just now. */
	if (place == -EAGAIN)
		return false;
	if (place >= 0 || !p->has_told)
		log_notice(
			"watch: /proc/%d/io has kept its reader waiting for 5 s; until it can be read, what "
			"%s wrote and read before an incident is not known",
			pid, place >= 0 ? "that process" : "any process");
	p->has_told = place < 0;
	if (place < 0)
		return false;
	p->hung[place] = pid;
	return true;
}

/* False: a thread reads, and does not hang yet, or cannot be replaced. */
static bool take_answers(struct process_io *p)
{
	const struct process_io_reading *r = p->worker.state;
	bool is_late = renewable_worker_is_busy(&p->worker);
	unsigned int done;

	if (is_late && !renewable_worker_is_late(&p->worker, clock_mono_ns()))
		return false;
	done = __atomic_load_n(&r->done, __ATOMIC_ACQUIRE);
	for (unsigned int i = 0; p->asked && i < done && i < r->count; i++)
		take_answer(p, &r->answers[i]);
	p->asked = false;
	/* When it has read all, it ends just now. */
	return !is_late || (done < r->count && replace_hung(p, r->answers[done].pid));
}

static bool is_listed(const struct processes *processes, int32_t pid)
{
	for (uint32_t i = 0; i < processes->count; i++)
		if (processes->list[i].pid == pid)
			return true;
	return false;
}

/* Slots of processes that have gone become free, and those of others are given to new ones. */
static void assign_slots(struct process_io *p, const struct processes *processes)
{
	for (unsigned int i = 0; i < PROCESS_IO_MAX; i++)
		if (p->slots[i].pid && !is_listed(processes, p->slots[i].pid))
			p->slots[i].pid = 0;
	for (uint32_t i = 0; i < processes->count; i++) {
		struct process_io_slot *place;

		if (find_slot(p, processes->list[i].pid))
			continue;
		place = find_slot(p, 0);
		if (!place)
			return;
		*place = (struct process_io_slot){ .pid = processes->list[i].pid };
	}
}

static bool hangs(const struct process_io *p, int32_t pid)
{
	for (unsigned int i = 0; i < RENEWABLE_WORKER_HUNG_MAX; i++)
		if (p->hung[i] == pid && renewable_worker_hangs_at(&p->worker, i))
			return true;
	return false;
}

static void ask(struct process_io *p, const struct processes *processes)
{
	struct process_io_reading *r = p->worker.state;

	assign_slots(p, processes);
	r->count = r->done = 0;
	for (unsigned int i = 0; i < PROCESS_IO_MAX; i++) {
		int32_t pid = p->slots[i].pid;

		if (!pid)
			continue;
		if (hangs(p, pid))
			p->lacks = true;
		else
			r->answers[r->count++].pid = pid;
	}
	if (r->count == 0)
		return;
	p->asked = true;
	p->has_told = false;
	renewable_worker_start(&p->worker, clock_mono_ns());
}

/* Samples of an incident are counted like those before it, whose answers its record lacks. */
void process_io_update(struct process_io *p, const struct processes *processes, bool armed)
{
	bool is_late = renewable_worker_is_late(&p->worker, clock_mono_ns());

	if (!armed && take_answers(p)) {
		p->lacks = is_late;
		ask(p, processes);
	}
	p->lacks = p->lacks || is_late;
	p->late += p->lacks;
}

/* From the oldest to the newest reading; nothing when that is not fresh. */
static struct process_io_counts moved(const struct process_io_slot *slot, uint64_t now_ns)
{
	const uint32_t oldest =
		slot->taken > PROCESS_IO_READINGS ? slot->taken % PROCESS_IO_READINGS : 0;
	const struct process_io_counts *from = &slot->counts[oldest],
				       *to = &slot->counts[(slot->taken - 1) % PROCESS_IO_READINGS];

	if (now_ns - to->ns > FRESH_NS)
		return (struct process_io_counts){ 0 };
	return (struct process_io_counts){ .ns = to->ns - from->ns,
		.read_bytes = to->read_bytes - from->read_bytes,
		.write_bytes = to->write_bytes - from->write_bytes };
}

void process_io_fill(const struct process_io *p, const struct processes *processes,
	struct record_limits *limits)
{
	struct record_process_io *list = limits->process_io;
	const uint64_t now_ns = clock_mono_ns();
	uint32_t count = 0;

	for (unsigned int i = 0; i < PROCESS_IO_MAX; i++) {
		const struct process_io_slot *slot = &p->slots[i];
		struct process_io_counts m;
		uint32_t at = count;

		if (!slot->pid || slot->taken < 2)
			continue;
		m = moved(slot, now_ns);
		if (m.read_bytes + m.write_bytes == 0)
			continue;
		while (at > 0 &&
			m.read_bytes + m.write_bytes >
				list[at - 1].read_bytes + list[at - 1].write_bytes)
			at--;
		if (at == RECORD_PROCESS_IO_MAX)
			continue;
		if (count < RECORD_PROCESS_IO_MAX)
			count++;
		memmove(&list[at + 1], &list[at], (count - at - 1) * sizeof(list[0]));
		list[at] = (struct record_process_io){ .pid = slot->pid,
			.over_ns = m.ns,
			.read_bytes = m.read_bytes,
			.write_bytes = m.write_bytes };
		processes_copy_comm(processes, slot->pid, list[at].comm, sizeof(list[at].comm));
	}
	limits->process_io_count = count;
}
