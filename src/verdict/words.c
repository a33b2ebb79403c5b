/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/words.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>

#include "util/cleanup.h"

/* A sentence has room for the last names of a path: "big/t.ibd". */
#define PATH_NAMES 2
/* What follows the name of a file that has been removed, as temporary files of databases are. */
#define DELETED "//deleted"

void words_add_pct(struct text *t, double pct)
{
	text_addf(t, pct >= 10 || pct <= 0 ? "%.0f %%" : "%.1f %%", pct);
}

void words_add_time(struct text *t, uint64_t ns)
{
	double s = (double)ns / NSEC_PER_SEC;

	if (ns < NSEC_PER_SEC || ns >= 100 * NSEC_PER_SEC)
		record_add_duration(t, ns);
	else
		text_addf(t, s >= 20 ? "%.0f s" : "%.1f s", s);
}

void words_add_who(struct text *t, const struct model_who *who)
{
	text_add(t, *who->comm ? who->comm : "?");
	if (who->tid > 0 && who->tid != who->pid)
		text_addf(t, " (thread %" PRId32 ")", who->tid);
	else if (who->pid > 0)
		text_addf(t, " (pid %" PRId32 ")", who->pid);
}

void words_add_process(struct text *t, const struct model_who *who)
{
	const struct model_who process = model_who_of(who->pid, who->pid, who->comm);

	words_add_who(t, &process);
}

const char *words_disk_name(const struct model *m, int disk)
{
	const struct model_disk *d = &m->disks.list[disk];

	return *d->label ? d->label : d->name;
}

void words_add_disk(struct text *t, const struct model *m, int disk)
{
	const struct model_disk *d = &m->disks.list[disk];

	if (*d->label || *d->name)
		text_addf(t, "%s %s", strncmp(d->name, "dm-", 3) == 0 ? "volume" : "disk",
			words_disk_name(m, disk));
	else
		text_addf(t, "disk %" PRIu32 ":%" PRIu32, d->dev.major, d->dev.minor);
}

/* The length of a path without what says that the file was removed. */
static size_t cut_deleted(const char *path)
{
	size_t length = strlen(path), deleted = strlen(DELETED);

	return length > deleted && strcmp(path + length - deleted, DELETED) == 0 ? length - deleted
										 : length;
}

void words_add_path(struct text *t, const char *path)
{
	size_t length = cut_deleted(path);

	text_add_bytes(t, path, length);
	text_add(t, path[length] ? " (deleted)" : "");
}

void words_add_path_end(struct text *t, const char *path)
{
	const char *p = path + cut_deleted(path);

	for (unsigned int names = 0; p > path; p--)
		if (p[-1] == '/' && ++names == PATH_NAMES)
			break;
	words_add_path(t, p == path && *path == '/' ? p + 1 : p);
}

void words_add_statement(struct text *t, const char *s, size_t most)
{
	const size_t start = t->len + 1;
	bool blank = false;

	text_add(t, "\"");
	for (s += strspn(s, " \t\r\n"); *s; s++) {
		if (t->len - start >= most && ((unsigned char)*s & 0xc0) != 0x80) {
			text_add(t, "...");
			break;
		}
		if (isspace((unsigned char)*s)) {
			blank = true;
			continue;
		}
		text_add(t, blank ? " " : "");
		blank = false;
		text_add_bytes(t, s, 1);
	}
	text_add(t, "\"");
}

void words_add_session(struct text *t, const char *user, uint64_t connection_id)
{
	if (connection_id)
		text_addf(t, "session %" PRIu64, connection_id);
	else
		text_add(t, "a session");
	if (*user)
		text_addf(t, " of %s", user);
}

/* Of several sessions the statement stands behind. */
static void add_sessions(struct text *t, const struct culprit *c, bool with_statement)
{
	const struct record_io_statement *s = &c->statement;

	text_addf(t, "%" PRIu32 " sessions of %s", s->sessions, *s->user ? s->user : c->who.comm);
	if (!with_statement || !*s->text) {
		text_add(t, " with the same statement");
		return;
	}
	text_add(t, " with ");
	words_add_statement(t, s->text, WORDS_STATEMENT_MAX);
}

static void add_statement(struct text *t, const struct culprit *c, bool with_statement)
{
	const struct record_io_statement *s = &c->statement;

	if (s->sessions > 1) {
		add_sessions(t, c, with_statement);
		return;
	}
	if (with_statement && *s->text)
		words_add_statement(t, s->text, WORDS_STATEMENT_MAX);
	else
		text_add(t, "a statement");
	/* Clients have a host: what serves no client is named by its role. */
	if (*s->user)
		text_addf(t, strchr(s->user, '@') ? " of %s" : " of the %s", s->user);
	if (s->connection_id)
		text_addf(t, " (session %" PRIu64 ")", s->connection_id);
}

/* "md0" of "md0_resync"; "md0_raid5" does whatever is done to that array. */
static void add_resync(struct text *t, const char *comm)
{
	const char *work = strrchr(comm, '_'), *what = "resync, check or repair";

	if (work && strcmp(work, "_reshape") == 0)
		what = "reshape";
	else if (work && strcmp(work, "_resync") == 0)
		what = "resync";
	text_addf(t, "the %s of array %.*s", what, (int)(work ? work - comm : (long)strlen(comm)),
		comm);
}

void words_add_culprit(struct text *t, const struct culprit *c, bool with_statement)
{
	switch (c->kind) {
	case CULPRIT_STATEMENT:
		add_statement(t, c, with_statement);
		return;
	case CULPRIT_PROGRAM:
		text_addf(t, "%" PRIu32 " processes of %s", c->count, c->who.comm);
		return;
	case CULPRIT_UNIT:
		text_add(t, c->unit);
		return;
	case CULPRIT_RESYNC:
		add_resync(t, c->who.comm);
		return;
	case CULPRIT_WRITE_BACK:
		text_add(t, "the kernel");
		return;
	case CULPRIT_KERNEL:
		text_addf(t, c->count > 1 ? "kernel threads %s" : "kernel thread %s", c->who.comm);
		if (c->count > 1)
			text_addf(t, " and %" PRIu32 " other%s", c->count - 1,
				c->count > 2 ? "s" : "");
		return;
	default:
		break;
	}
	if (c->is_likely) {
		add_statement(t, c, with_statement);
		return;
	}
	if (*c->role) {
		text_addf(t, "the %s of %s (pid %" PRId32 ")", c->role, c->who.comm, c->who.pid);
		return;
	}
	words_add_who(t, &c->who);
}

/* A name that begins a sentence stays as it is: a program's is followed by its number. */
void words_capitalise(struct text *t)
{
	static const char *const words[] = { "a", "all", "at", "control", "database", "debugger",
		"disk", "file", "kernel", "memory", "no", "nobody", "operations", "probably",
		"session", "sessions", "the", "threads", "too", "volume", "who" };
	size_t len = strcspn(t->buf, " ");

	if (strncmp(t->buf + len, " (", 2) == 0)
		return;

	for (unsigned int i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i]) == len && strncmp(t->buf, words[i], len) == 0)
			t->buf[0] = (char)toupper((unsigned char)t->buf[0]);
}

const char *words_syscall(int32_t number)
{
#define NAME(call)                                                                                 \
	{                                                                                          \
		SYS_##call, #call                                                                  \
	}
	static const struct {
		int32_t number;
		const char *name;
	} names[] = {
		NAME(mmap),
		NAME(munmap),
		NAME(mremap),
		NAME(mprotect),
		NAME(madvise),
		NAME(mlock),
		NAME(mlock2),
		NAME(mlockall),
		NAME(munlock),
		NAME(brk),
		NAME(clone),
		NAME(clone3),
		NAME(write),
		NAME(pwrite64),
		NAME(writev),
		NAME(pwritev),
		NAME(pwritev2),
		NAME(fallocate),
		NAME(truncate),
		NAME(ftruncate),
		NAME(fsync),
		NAME(fdatasync),
		NAME(copy_file_range),
		NAME(io_uring_enter),
		NAME(io_submit),
		NAME(futex),
		NAME(nanosleep),
		NAME(clock_nanosleep),
		NAME(ppoll),
		NAME(pselect6),
		NAME(epoll_pwait),
		NAME(read),
		NAME(pread64),
		NAME(readv),
		NAME(preadv),
		NAME(recvfrom),
		NAME(recvmsg),
		NAME(sendto),
		NAME(sendmsg),
		NAME(accept),
		NAME(accept4),
		NAME(connect),
		NAME(wait4),
		NAME(waitid),
		NAME(semop),
		NAME(semtimedop),
		NAME(msgrcv),
		NAME(flock),
		NAME(fcntl),
		NAME(rt_sigtimedwait),
#ifdef SYS_poll /* which newer architectures do not have */
		NAME(poll),
		NAME(select),
		NAME(epoll_wait),
#endif
	};
#undef NAME

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].number == number)
			return names[i].name;
	return NULL;
}

struct record_verdict_part *words_add_part(struct record_verdict *v, enum record_what what,
	enum record_basis basis, struct text *ret_text)
{
	struct record_verdict_part *part;

	if (v->parts_count == RECORD_PARTS_MAX)
		return NULL;
	part = &v->parts[v->parts_count++];
	part->what = what;
	part->basis = basis;
	part->share_pct = part->util_pct = part->await_ms = part->queue = NAN;
	*ret_text = TEXT_ON(part->text);
	text_reset(ret_text);
	return part;
}

void words_set_who(struct record_verdict_part *part, const struct model_who *who)
{
	part->pid = who->pid;
	part->tid = who->tid != who->pid ? who->tid : 0;
	text_copy(part->comm, sizeof(part->comm), who->comm);
}

void words_add_what_holder_did(const struct model_lock *l, struct text *t)
{
	const char *call = words_syscall(l->syscall);

	/* A process as a whole, as that with the lock of a file, has no thread. */
	if (l->deadlocked_with && l->deadlocked_with == l->holder.tid)
		text_add(t, " and waited for it itself: a deadlock");
	else if (l->deadlocked_with)
		text_addf(t,
			" and waited for one that thread %" PRId32
			" held, which waited for this one in turn: a deadlock",
			l->deadlocked_with);
	else if (l->holder_cause)
		text_addf(t, ", waiting itself for: %s", record_cause_text(l->holder_cause));
	else if (l->holder_state == 'T')
		text_add(t, ", stopped by a signal");
	else if (l->holder_state == 't')
		text_add(t, ", stopped by a debugger");
	else if (l->holder_state == 'S' && call)
		text_addf(t, ", asleep in %s", call);
	else if (call)
		text_addf(t, " in %s", call);
}
