/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/frames.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "record/enums.h"

/* No more than an answer can have. */
#define CANDIDATES_MAX SQL_SESSIONS_MAX

#define IS_TERMINATED(array) (memchr((array), '\0', sizeof(array)) != NULL)

static bool is_pid(int32_t pid)
{
	return pid >= 0 && pid <= SQL_PID_MAX;
}

static bool check_server(const struct sql_frame_server *f, size_t size)
{
	return size == sizeof(*f) && IS_TERMINATED(f->version) && IS_TERMINATED(f->account) &&
		IS_TERMINATED(f->missing);
}

static bool check_session(const struct sql_frame_session *f, size_t size)
{
	const size_t text_at = offsetof(struct sql_frame_session, text);

	if (size <= text_at || size > sizeof(*f))
		return false;
	if (!memchr(f->text, '\0', size - text_at))
		return false;
	return IS_TERMINATED(f->no_tid) && IS_TERMINATED(f->user) && IS_TERMINATED(f->database) &&
		IS_TERMINATED(f->command) && IS_TERMINATED(f->state);
}

static bool check_lock(const struct sql_frame_lock *f, size_t size)
{
	return size == sizeof(*f) && IS_TERMINATED(f->object);
}

static bool check_relation(const struct sql_frame_relation *f, size_t size)
{
	return size == sizeof(*f) && IS_TERMINATED(f->name);
}

static bool check_directory(const struct sql_frame_directory *f, size_t size)
{
	return size == sizeof(*f) && IS_TERMINATED(f->path);
}

static bool check_end(const struct sql_frame_end *f, size_t size)
{
	return size == sizeof(*f) && IS_TERMINATED(f->error) && IS_TERMINATED(f->missing) &&
		IS_TERMINATED(f->connections.user);
}

int sql_frame_check(const union sql_helper_frame *f, size_t size)
{
	bool valid = false;

	if (size < sizeof(f->frame) || size > sizeof(*f) || f->frame.size != size)
		return -EPROTO;
	if (f->frame.type == SQL_FRAME_SERVER)
		valid = check_server(&f->server, size);
	else if (f->frame.type == SQL_FRAME_SESSION)
		valid = check_session(&f->session, size);
	else if (f->frame.type == SQL_FRAME_LOCK)
		valid = check_lock(&f->lock, size);
	else if (f->frame.type == SQL_FRAME_RELATION)
		valid = check_relation(&f->relation, size);
	else if (f->frame.type == SQL_FRAME_DIRECTORY)
		valid = check_directory(&f->directory, size);
	else if (f->frame.type == SQL_FRAME_END)
		valid = check_end(&f->end, size);
	return valid ? (int)f->frame.type : -EPROTO;
}

static unsigned int correct_pid(int32_t *pid)
{
	if (is_pid(*pid))
		return 0;
	*pid = 0;
	return 1;
}

static unsigned int correct_time(uint64_t *ns)
{
	if (*ns <= SQL_ELAPSED_MAX_NS)
		return 0;
	*ns = 0;
	return 1;
}

static unsigned int correct_session(struct sql_frame_session *f)
{
	return correct_pid(&f->tid) + correct_pid(&f->leader_pid) + correct_time(&f->elapsed_ns) +
		correct_time(&f->transaction_ns);
}

static unsigned int correct_lock(struct sql_frame_lock *f)
{
	unsigned int count = correct_time(&f->waited_ns);

	if (f->lock == RECORD_LOCK_NONE || f->lock >= RECORD_LOCK_COUNT) {
		f->lock = RECORD_LOCK_other;
		count++;
	}
	if (f->candidates > CANDIDATES_MAX) {
		f->candidates = CANDIDATES_MAX;
		count++;
	}
	return count;
}

unsigned int sql_frame_correct(union sql_helper_frame *f)
{
	if (f->frame.type == SQL_FRAME_SERVER)
		return correct_pid(&f->server.server_pid);
	if (f->frame.type == SQL_FRAME_LOCK)
		return correct_lock(&f->lock);
	return f->frame.type == SQL_FRAME_SESSION ? correct_session(&f->session) : 0;
}
