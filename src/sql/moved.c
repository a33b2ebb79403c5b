/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/moved.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/file.h"

#define THREAD_STACK_BYTES (24 * 1024)
#define LIMIT_NS (5 * NSEC_PER_SEC)

/* Of the thread while it is busy. */
struct reading {
	int32_t server_pid;
	bool is_process;
	uint32_t count;
	struct sql_thread_bytes threads[SQL_SESSIONS_MAX];
};

static uint64_t find_number(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	uint64_t value = 0;

	return at && sscanf(at + strlen(key), "%" SCNu64, &value) == 1 ? value : 0;
}

static void run(void *state, const int *fds)
{
	struct reading *r = state;
	char path[64], buf[512];

	for (uint32_t i = 0; i < r->count; i++) {
		struct sql_thread_bytes *thread = &r->threads[i];

		/* Of a process with several threads, /proc/TID/io adds up all of them. */
		snprintf(path, sizeof(path), "%d/task/%d/io",
			r->is_process ? thread->tid : r->server_pid, thread->tid);
		if (file_read_at(fds[0], path, buf, sizeof(buf)) > 0)
			thread->bytes = find_number(buf, "\nread_bytes: ") +
				find_number(buf, "\nwrite_bytes: ");
		else
			thread->tid = 0;
	}
}

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct reading),
	.limit_ns = LIMIT_NS,
};

int sql_moved_init(struct sql_moved *m, int procfs_fd)
{
	return renewable_worker_init(&m->worker, &kind, procfs_fd);
}

void sql_moved_done(struct sql_moved *m)
{
	renewable_worker_done(&m->worker);
}

void sql_moved_forget(struct sql_moved *m)
{
	m->asked = false;
	m->count = 0;
}

void sql_moved_replace_hung(struct sql_moved *m, uint64_t now_ns)
{
	if (renewable_worker_renew(&m->worker, now_ns) >= 0)
		m->asked = false;
}

void sql_moved_ask(struct sql_moved *m, const struct sql_snapshot *last, int32_t server_pid,
	bool is_process, uint64_t now_ns)
{
	struct reading *r = m->worker.state;

	/* What was read after the last answer is for the next one. */
	if (m->asked || renewable_worker_is_busy(&m->worker))
		return;
	r->server_pid = server_pid;
	r->is_process = is_process;
	r->count = 0;
	for (uint32_t i = 0; i < last->count; i++)
		if (last->rows[i].tid > 0)
			r->threads[r->count++].tid = last->rows[i].tid;
	m->asked = r->count > 0;
	m->asked_ns = now_ns;
	if (m->asked)
		renewable_worker_start(&m->worker, now_ns);
}

static const struct sql_thread_bytes *find(const struct sql_thread_bytes *threads, uint32_t count,
	int32_t tid)
{
	for (uint32_t i = 0; tid > 0 && i < count; i++)
		if (threads[i].tid == tid)
			return &threads[i];
	return NULL;
}

/* A statement that began after its thread was read has moved nothing of that. */
static bool began_later(const struct sql_row *row, const struct sql_snapshot *answer,
	uint64_t asked_ns)
{
	/* Some servers count whole seconds. */
	uint64_t error_ns = row->elapsed_ns % NSEC_PER_SEC ? 0 : SQL_START_ERROR_NS;

	return answer->answered_ns > asked_ns + row->elapsed_ns + error_ns;
}

void sql_moved_note(struct sql_moved *m, struct sql_snapshot *answer)
{
	const struct reading *r = m->worker.state;

	if (!m->asked || renewable_worker_is_busy(&m->worker))
		return;
	for (uint32_t i = 0; i < answer->count; i++) {
		struct sql_row *row = &answer->rows[i];
		const struct sql_thread_bytes *now = find(r->threads, r->count, row->tid);
		const struct sql_thread_bytes *before = find(m->threads, m->count, row->tid);

		if (began_later(row, answer, m->asked_ns))
			continue;
		if (now && before && !row->idle && now->bytes > before->bytes)
			row->moved_bytes = now->bytes - before->bytes;
	}
	memcpy(m->threads, r->threads, r->count * sizeof(r->threads[0]));
	m->count = r->count;
	m->asked = false;
}
