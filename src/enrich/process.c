/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "iostall/event.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/parse.h"
#include "util/text.h"
#include "watch/parsers.h"
#include "watch/processes.h"
#include "watch/thread_status.h"

#define CONTAINER_ID_LEN 64

/* The deepest call has two small buffers for files. */
#define THREAD_STACK_BYTES (24 * 1024)
#define LIMIT_NS (5 * NSEC_PER_SEC)
/*
 * So long the event loop waits for answers in one incident: one takes 0.1 ms. Operations of a
 * process that is not watched have no other source for its program.
 */
#define WAIT_MAX_NS (20 * NSEC_PER_MSEC)
#define WAIT_STEP_NS (20 * NSEC_PER_USEC)

struct answer {
	int32_t pid;
	char comm[WATCH_COMM_SIZE];
	uint64_t start_ticks; /* 0: it cannot be read */
	char exe[RECORD_LIST_SIZE];
	char unit[RECORD_LIST_SIZE];
};

/* Of the thread while it is busy, but for `done` and the answers before it. */
struct reading {
	bool with_unit;
	unsigned int count;
	unsigned int done; /* answers that are complete */
	struct answer answers[PROCESS_LEARN_MAX];
	int32_t tid; /* whose descriptor `fd` is looked up; 0: none */
	int32_t fd;
	char path[RECORD_PATH_SIZE]; /* of it; "": it cannot be read */
};

static bool ends_with(const char *s, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);

	return len > n && memcmp(s + len - n, suffix, n) == 0;
}

static const char *find_container_id(const char *s, size_t len)
{
	size_t run = 0;

	for (size_t i = 0; i < len; i++) {
		run = isxdigit((unsigned char)s[i]) ? run + 1 : 0;
		if (run == CONTAINER_ID_LEN)
			return s + i + 1 - CONTAINER_ID_LEN;
	}
	return NULL;
}

static void unit_of_path(const char *path, size_t len, struct text *unit)
{
	const char *id = find_container_id(path, len), *end = path + len;

	if (id) {
		text_add(unit, "container:");
		text_add_bytes(unit, id, 12);
		return;
	}
	while (end > path) {
		const char *name = end;

		while (name > path && name[-1] != '/')
			name--;
		len = (size_t)(end - name);
		if (ends_with(name, len, ".service") || ends_with(name, len, ".scope") ||
			ends_with(name, len, ".slice")) {
			text_add_bytes(unit, name, len);
			return;
		}
		end = name > path ? name - 1 : path;
	}
}

void process_parse_cgroup(const char *buf, size_t len, char *ret_unit, size_t size)
{
	struct text unit = { .buf = ret_unit, .size = size };
	struct cursor c = { buf, buf + len }, line;

	text_reset(&unit);
	/*
	 * "0::/system.slice/mariadb.service"; on cgroup v1 also "1:name=systemd:/..." and others.
	 */
	while (unit.len == 0 && cursor_line(&c, &line)) {
		const char *colon = memchr(line.p, ':', (size_t)(line.end - line.p));

		if (colon)
			colon = memchr(colon + 1, ':', (size_t)(line.end - colon - 1));
		if (colon)
			unit_of_path(colon + 1, (size_t)(line.end - colon - 1), &unit);
	}
}

void process_unit_of_names(const char *leaf, const char *parent, char *ret_unit, size_t size)
{
	char path[2 * EVENT_CGROUP_NAME_SIZE + 1];
	struct text unit = { .buf = ret_unit, .size = size };
	int len = snprintf(path, sizeof(path), "%s/%s", parent, leaf);

	text_reset(&unit);
	if (len <= 0 || (size_t)len >= sizeof(path))
		return;
	/* When the name is cut off, its parent would be taken for the unit. */
	if (strlen(leaf) < EVENT_CGROUP_NAME_SIZE - 1 || find_container_id(path, (size_t)len))
		unit_of_path(path, (size_t)len, &unit);
}

/* On the thread */

static void read_link(int dir_fd, const char *path, char *ret_target, size_t size)
{
	ssize_t n = readlinkat(dir_fd, path, ret_target, size - 1);

	ret_target[n > 0 ? n : 0] = '\0';
}

static void read_unit(int dir_fd, struct answer *a)
{
	char buf[4096];
	ssize_t n = file_read_at(dir_fd, "cgroup", buf, sizeof(buf));

	if (n == -ENOBUFS)
		n = sizeof(buf) - 1;
	process_parse_cgroup(buf, n > 0 ? (size_t)n : 0, a->unit, sizeof(a->unit));
}

/* The directory stays that of the process whose it was when it was opened. */
static void read_process(int procfs_fd, struct answer *a, bool with_unit)
{
	_cleanup_close_ int dir_fd = -1;
	char path[32], buf[1024];
	ssize_t n;

	snprintf(path, sizeof(path), "%d", a->pid);
	dir_fd = openat(procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return;
	read_link(dir_fd, "exe", a->exe, sizeof(a->exe));
	if (with_unit)
		read_unit(dir_fd, a);
	/* For the stat of the process the kernel adds up all of its threads. */
	snprintf(path, sizeof(path), "task/%d/stat", a->pid);
	n = file_read_at(dir_fd, path, buf, sizeof(buf));
	if (n > 0)
		watch_parse_start_ticks(buf, (size_t)n, &a->start_ticks);
}

static void run(void *state, const int *fds)
{
	struct reading *r = state;
	char path[64];

	for (unsigned int i = 0; i < r->count; i++) {
		read_process(fds[0], &r->answers[i], r->with_unit);
		__atomic_store_n(&r->done, i + 1, __ATOMIC_RELEASE);
	}
	if (!r->tid)
		return;
	snprintf(path, sizeof(path), "%d/fd/%d", r->tid, r->fd);
	read_link(fds[0], path, r->path, sizeof(r->path));
}

/* Questions and answers, on the event loop */

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct reading),
	.limit_ns = LIMIT_NS,
};

int process_cache_init(struct process_cache *cache, int procfs_fd)
{
	memset(cache, 0, sizeof(*cache));
	return renewable_worker_init(&cache->worker, &kind, procfs_fd);
}

void process_cache_done(struct process_cache *cache)
{
	renewable_worker_done(&cache->worker);
}

/* The next entry of this process after *i, which begins at -1. */
static struct process *next_entry(struct process_cache *cache, int32_t pid, int *i)
{
	for (++*i; *i < PROCESS_CACHE_MAX; ++*i)
		if (cache->pids[*i] == pid)
			return &cache->entries[*i];
	return NULL;
}

static struct process *find_known(struct process_cache *cache, int32_t pid, uint64_t start_ticks)
{
	struct process *p;
	int i = -1;

	while ((p = next_entry(cache, pid, &i)) && p->start_ticks != start_ticks)
		;
	if (p)
		p->used = ++cache->clock;
	return p;
}

/* NULL without an answer. */
static const struct process_program *program_of(struct process_cache *cache,
	const struct process *p)
{
	struct process_program *program;

	if (!p || !p->start_ticks)
		return NULL;
	program = &cache->programs[p->program];
	program->used = ++cache->clock;
	return program;
}

/* It was asked for under that name, and perhaps answered. */
static bool is_learned(struct process_cache *cache, const struct watch_process *process)
{
	struct process *p;
	int i = -1;

	while ((p = next_entry(cache, process->pid, &i)) &&
		(!p->is_learned || strcmp(p->comm, process->comm) != 0))
		;
	if (!p)
		return false;
	p->used = ++cache->clock;
	program_of(cache, p);
	return true;
}

static void forget(struct process_cache *cache, const struct process *entry)
{
	const size_t i = (size_t)(entry - cache->entries);

	cache->pids[i] = 0;
	cache->entries[i] = (struct process){ 0 };
}

/* Replaces the entry that has not been used for the longest time. */
static struct process *add_entry(struct process_cache *cache, int32_t pid, const char *comm)
{
	struct process *oldest = &cache->entries[0];

	for (unsigned int i = 1; i < PROCESS_CACHE_MAX; i++)
		if (cache->entries[i].used < oldest->used)
			oldest = &cache->entries[i];
	cache->pids[oldest - cache->entries] = pid;
	*oldest = (struct process){ .used = ++cache->clock };
	text_copy(oldest->comm, sizeof(oldest->comm), comm);
	return oldest;
}

/* Replaces the one that has not been used for the longest time, with all processes that ran it. */
static uint16_t add_program(struct process_cache *cache, const char *exe, const char *unit)
{
	struct process_program *oldest = &cache->programs[0];
	uint16_t place;

	for (unsigned int i = 1; i < PROCESS_PROGRAMS_MAX; i++)
		if (cache->programs[i].used < oldest->used)
			oldest = &cache->programs[i];
	place = (uint16_t)(oldest - cache->programs);
	for (unsigned int i = 0; oldest->used && i < PROCESS_CACHE_MAX; i++)
		if (cache->entries[i].start_ticks && cache->entries[i].program == place)
			forget(cache, &cache->entries[i]);
	oldest->used = ++cache->clock;
	text_copy(oldest->exe, sizeof(oldest->exe), exe);
	text_copy(oldest->unit, sizeof(oldest->unit), unit);
	return place;
}

static uint16_t intern_program(struct process_cache *cache, const char *exe, const char *unit)
{
	for (uint16_t i = 0; i < PROCESS_PROGRAMS_MAX; i++) {
		struct process_program *p = &cache->programs[i];

		if (!p->used || strcmp(p->exe, exe) != 0 || strcmp(p->unit, unit) != 0)
			continue;
		p->used = ++cache->clock;
		return i;
	}
	return add_program(cache, exe, unit);
}

static void take_answer(struct process_cache *cache, const struct answer *a, bool with_unit)
{
	const struct process_program *before =
		program_of(cache, find_known(cache, a->pid, a->start_ticks));
	char unit[RECORD_LIST_SIZE];
	struct process *p;
	uint16_t program;

	/* What was learned of it stays, where only the executable was asked for. */
	text_copy(unit, sizeof(unit), with_unit ? a->unit : before ? before->unit : "");
	program = intern_program(cache, a->exe, unit);
	p = find_known(cache, a->pid, a->start_ticks);
	/* That of a question which was not answered until now. */
	if (!p)
		p = find_known(cache, a->pid, 0);
	if (!p)
		p = add_entry(cache, a->pid, a->comm);
	p->start_ticks = a->start_ticks;
	p->program = program;
	text_copy(p->comm, sizeof(p->comm), a->comm);
	if (with_unit)
		p->is_learned = true;
}

/* The next call of process_learn() asks for it again. */
static void forget_question(struct process_cache *cache, const struct answer *a)
{
	struct process *p;
	int i = -1;

	while ((p = next_entry(cache, a->pid, &i)))
		if (!p->start_ticks && strcmp(p->comm, a->comm) == 0)
			forget(cache, p);
}

/* Of a thread that hangs, its process alone stays asked for. */
static void take_reading(struct process_cache *cache, const struct reading *r, bool hangs)
{
	unsigned int done = __atomic_load_n(&r->done, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < r->count; i++) {
		const struct answer *a = &r->answers[i];

		if (i == done && hangs)
			continue;
		if (i < done && a->start_ticks)
			take_answer(cache, a, r->with_unit);
		else if (r->with_unit)
			forget_question(cache, a);
	}
}

/* True when no question is under way. */
static bool take_answers(struct process_cache *cache)
{
	if (renewable_worker_is_busy(&cache->worker))
		return false;
	if (cache->asked)
		take_reading(cache, cache->worker.state, false);
	cache->asked = false;
	return true;
}

static void ask(struct process_cache *cache)
{
	cache->asked = true;
	renewable_worker_start(&cache->worker, clock_mono_ns());
}

/*
 * Also for those of questions before. False: the thread hangs or has no CPU. What it answers later
 * is for the next who asks.
 */
static bool wait_for_answers(struct process_cache *cache)
{
	const struct timespec step = { .tv_nsec = WAIT_STEP_NS };
	uint64_t begin_ns = clock_mono_ns(), waited_ns = 0;

	while (renewable_worker_is_busy(&cache->worker) &&
		cache->waited_ns + waited_ns < WAIT_MAX_NS) {
		nanosleep(&step, NULL);
		waited_ns = clock_mono_ns() - begin_ns;
	}
	cache->waited_ns += waited_ns;
	if (take_answers(cache))
		return true;
	cache->unread++;
	return false;
}

void process_learn(struct process_cache *cache, const struct watch_process *list,
	unsigned int count)
{
	struct reading *r = cache->worker.state;

	cache->waited_ns = 0;
	cache->unread = 0;
	if (renewable_worker_renew(&cache->worker, clock_mono_ns()) >= 0) {
		take_reading(cache, r, true);
		cache->asked = false;
	}
	if (!take_answers(cache))
		return;
	r = cache->worker.state;
	*r = (struct reading){ .with_unit = true };
	for (unsigned int i = 0; i < count && i < PROCESS_LEARN_MAX; i++) {
		const struct watch_process *p = &list[cache->learned++ % count];
		struct answer *a = &r->answers[r->count];

		if (is_learned(cache, p))
			continue;
		add_entry(cache, p->pid, p->comm)->is_learned = true;
		a->pid = p->pid;
		text_copy(a->comm, sizeof(a->comm), p->comm);
		r->count++;
	}
	if (r->count > 0)
		ask(cache);
}

/* Of this start; it is the same program if it has the same name. NULL: that is not known. */
static const struct process_program *find_program(struct process_cache *cache, int32_t pid,
	uint64_t ticks, const char *comm)
{
	const struct process *p = find_known(cache, pid, ticks);

	return p && (!*comm || strcmp(p->comm, comm) == 0) ? program_of(cache, p) : NULL;
}

const struct process_program *process_lookup(struct process_cache *cache, int32_t pid,
	uint64_t start_ns)
{
	uint64_t ticks = start_ns / (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
	const bool is_idle = take_answers(cache);
	const struct process_program *known;
	struct reading *r;
	char comm[WATCH_COMM_SIZE] = "", path[32];

	thread_comm_read(cache->worker.fd, pid, comm, sizeof(comm));
	known = find_program(cache, pid, ticks, comm);
	if (known)
		return known;
	snprintf(path, sizeof(path), "%d", pid);
	if (!*comm && faccessat(cache->worker.fd, path, F_OK, 0) < 0)
		return NULL;
	/* It is reading about others, or about this one. */
	if (!is_idle) {
		if (!wait_for_answers(cache))
			return find_program(cache, pid, ticks, "");
		known = find_program(cache, pid, ticks, comm);
		if (known)
			return known;
	}
	r = cache->worker.state;
	*r = (struct reading){ .count = 1, .answers[0].pid = pid };
	text_copy(r->answers[0].comm, sizeof(r->answers[0].comm), comm);
	ask(cache);
	return wait_for_answers(cache) ? find_program(cache, pid, ticks, "") : NULL;
}

bool process_read_fd(struct process_cache *cache, int32_t tid, int32_t fd, char *ret_path,
	size_t size)
{
	struct reading *r;

	if (!wait_for_answers(cache))
		return false;
	r = cache->worker.state;
	*r = (struct reading){ .tid = tid, .fd = fd };
	ask(cache);
	if (!wait_for_answers(cache))
		return false;
	text_copy(ret_path, size, r->path);
	return *ret_path != '\0';
}
