/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/titles.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/renewable_worker.h"

/* Of one incident; those that move most are asked for first. */
#define TITLES_MAX 64
#define TITLE_SIZE 256
#define THREAD_STACK_BYTES (16 * 1024)
#define LIMIT_NS (2 * NSEC_PER_SEC)

#define SERVER "postgres: "

/* What the thread reads and finds. */
struct titles_state {
	uint32_t count;
	int32_t pids[TITLES_MAX];
	const char *roles[TITLES_MAX]; /* NULL: it has ended, or may not be read */
};

struct titles {
	struct renewable_worker worker; /* see renewable_worker_new() */
	uint64_t incident_ns;
	bool is_expected; /* an answer of this incident */
	uint32_t count;
	struct {
		int32_t pid;
		const char *role; /* NULL: not known yet */
	} items[TITLES_MAX];
};

/* Titles */

/* Titles of PostgreSQL 10 to 18: what one begins with, and what follows if it is not the end. */
static const struct {
	const char *begin;
	const char *more[3];
	const char *role;
} roles[] = {
	{ "startup process", { "" }, "startup process" },
	{ "startup", { "recovering", "waiting", "performing" }, "startup process" },
	{ "checkpointer", { "process", "performing" }, "checkpointer" },
	{ "background writer", { "process" }, "background writer" },
	{ "writer", { "process" }, "background writer" },
	{ "walwriter", { NULL }, "walwriter" },
	{ "wal writer", { "process" }, "walwriter" },
	{ "autovacuum launcher", { "process" }, "autovacuum launcher" },
	{ "autovacuum worker", { "" }, "autovacuum worker" },
	{ "archiver process", { "" }, "archiver" },
	{ "archiver", { "archiving", "failed on", "last was" }, "archiver" },
	{ "walreceiver", { "streaming" }, "walreceiver" },
	{ "wal receiver", { "process" }, "walreceiver" },
	{ "walsender", { "" }, "walsender" },
	{ "wal sender", { "process" }, "walsender" },
	{ "walsummarizer", { NULL }, "walsummarizer" },
	{ "logical replication apply worker", { "for" }, "logical replication worker" },
	{ "logical replication worker", { "for" }, "logical replication worker" },
	{ "logical replication tablesync worker", { "for" }, "logical replication worker" },
	{ "logical replication parallel apply worker", { "for" }, "logical replication worker" },
	{ "slotsync worker", { NULL }, "slotsync worker" },
	{ "stats collector", { "process" }, "stats collector" },
	{ "io worker", { "" }, "io worker" },
	{ "logger", { "process" }, "logger" },
};

static bool follows(const char *text, const char *const more[3])
{
	/* Up to PostgreSQL 12 there is room for a database and a host. */
	const char *next = text + strspn(text, " ");

	if (!*text)
		return true;
	for (unsigned int i = 0; next > text && i < 3 && more[i]; i++)
		if (strncmp(next, more[i], strlen(more[i])) == 0)
			return true;
	return false;
}

static const char *find_role(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
		size_t len = strlen(roles[i].begin);

		if (strncmp(text, roles[i].begin, len) == 0 && follows(text + len, roles[i].more))
			return roles[i].role;
	}
	return "";
}

/* Debian's servers have the names of their clusters: "postgres: 15/main: checkpointer". */
static const char *skip_cluster(const char *text)
{
	const char *end = text + strcspn(text, " ");

	return end > text && end[0] == ' ' && end[-1] == ':' ? end + 1 : text;
}

const char *title_role(const char *title)
{
	char trimmed[TITLE_SIZE];
	const char *text;
	size_t len;

	if (strncmp(title, SERVER, strlen(SERVER)) != 0)
		return "";
	text = skip_cluster(title + strlen(SERVER));
	len = strnlen(text, sizeof(trimmed) - 1);
	memcpy(trimmed, text, len);
	while (len > 0 && trimmed[len - 1] == ' ')
		len--;
	trimmed[len] = '\0';
	return find_role(trimmed);
}

/* On the thread */

static const char *read_role(int procfs_fd, int32_t pid)
{
	char path[32], title[TITLE_SIZE];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/cmdline", pid);
	n = file_read_at(procfs_fd, path, title, sizeof(title));
	return n < 0 && n != -ENOBUFS ? NULL : title_role(title);
}

static void run(void *state, const int *fds)
{
	struct titles_state *s = state;

	for (uint32_t i = 0; i < s->count; i++)
		s->roles[i] = read_role(fds[0], s->pids[i]);
}

/* On the event loop */

static const struct renewable_worker_kind kind = {
	.run = run,
	.stack_bytes = THREAD_STACK_BYTES,
	.state_bytes = sizeof(struct titles_state),
	.limit_ns = LIMIT_NS,
};

int titles_new(int procfs_fd, struct titles **ret_titles)
{
	*ret_titles = renewable_worker_new(sizeof(**ret_titles), &kind, procfs_fd);
	return *ret_titles ? 0 : -errno;
}

struct titles *titles_free(struct titles *t)
{
	return renewable_worker_free(t);
}

void titles_replace_hung(struct titles *t, uint64_t now_ns)
{
	if (renewable_worker_renew(&t->worker, now_ns) >= 0)
		t->is_expected = false;
}

/* TITLES_MAX: it is none of them. */
static uint32_t find_item(const struct titles *t, int32_t pid)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->items[i].pid == pid)
			return i;
	return TITLES_MAX;
}

/* One that serves a client may go, of which there may be hundreds. TITLES_MAX: there is no room. */
static uint32_t add_item(struct titles *t, int32_t pid)
{
	uint32_t i = 0;

	while (i < t->count && (t->count < TITLES_MAX || !t->items[i].role || *t->items[i].role))
		i++;
	if (i == TITLES_MAX)
		return i;
	t->count += i == t->count;
	t->items[i].pid = pid;
	t->items[i].role = NULL;
	return i;
}

static void take_answer(struct titles *t)
{
	const struct titles_state *s = t->worker.state;

	t->is_expected = false;
	for (uint32_t i = 0; i < s->count; i++) {
		const uint32_t at = find_item(t, s->pids[i]);

		/* One that could not be read is not asked for again. */
		if (at < TITLES_MAX)
			t->items[at].role = s->roles[i] ? s->roles[i] : "";
	}
}

static void ask(struct titles *t, uint64_t now_ns)
{
	struct titles_state *s = t->worker.state;

	s->count = 0;
	for (uint32_t i = 0; i < t->count; i++)
		if (!t->items[i].role)
			s->pids[s->count++] = t->items[i].pid;
	if (s->count == 0)
		return;
	t->is_expected = true;
	renewable_worker_start(&t->worker, now_ns);
}

/* Ids of the last incident may be of other processes by now. */
static void begin(struct titles *t, uint64_t incident_ns)
{
	t->incident_ns = incident_ns;
	t->is_expected = false;
	t->count = 0;
}

const char *titles_find(struct titles *t, int32_t pid, uint64_t incident_ns, uint64_t now_ns)
{
	const bool is_busy = renewable_worker_is_busy(&t->worker);
	uint32_t at;

	if (incident_ns != t->incident_ns)
		begin(t, incident_ns);
	if (!is_busy && t->is_expected)
		take_answer(t);
	at = find_item(t, pid);
	if (at == TITLES_MAX)
		at = add_item(t, pid);
	if (at == TITLES_MAX)
		return "";
	if (!is_busy && !t->items[at].role)
		ask(t, now_ns);
	return t->items[at].role ? t->items[at].role : "";
}
