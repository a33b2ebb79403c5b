/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/answer.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "sql/helper/redact.h"
#include "util/text.h"

int sql_send_frame(int fd, struct sql_frame *frame, enum sql_frame_type type, uint64_t ask,
	size_t size)
{
	ssize_t n;

	*frame = (struct sql_frame){ .type = type, .size = (uint32_t)size, .ask = ask };
	do
		n = send(fd, frame, size, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

size_t sql_cut_text(const char *s, size_t len, size_t max)
{
	if (len <= max)
		return len;
	while (max > 0 && ((unsigned char)s[max] & 0xc0) == 0x80)
		max--;
	return max;
}

/* Fills ret_text in the mode of the setup; returns its length. */
static size_t fill_text(const struct sql_answer *answer, const char *text, bool cut,
	char ret_text[SQL_TEXT_SIZE])
{
	char buf[SQL_REDACTED_SIZE];
	struct text redacted = TEXT_ON(buf);
	size_t len = strlen(text);

	text_reset(&redacted);
	if (answer->setup->text_mode != SQL_TEXT_FULL) {
		sql_redact(answer->dialect, text, len, cut, &redacted);
		text = buf;
		len = redacted.len;
	}
	len = sql_cut_text(text, len, answer->setup->text_bytes);
	memcpy(ret_text, text, len);
	ret_text[len] = '\0';
	return len;
}

bool sql_answer_add(struct sql_answer *answer, struct sql_frame_session *session, const char *text,
	uint64_t whole_bytes, bool cut)
{
	size_t len = 0;

	if (answer->sent == SQL_SESSIONS_MAX)
		return false;
	session->text[0] = '\0';
	session->text_bytes = whole_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)whole_bytes;
	if (text && !answer->is_glance && answer->setup->text_mode != SQL_TEXT_OFF)
		len = fill_text(answer, text, cut || strlen(text) < whole_bytes, session->text);
	answer->r = sql_send_frame(answer->fd, &session->frame, SQL_FRAME_SESSION, answer->ask,
		offsetof(struct sql_frame_session, text) + len + 1);
	answer->sent++;
	return answer->r == 0;
}

bool sql_answer_add_lock(struct sql_answer *answer, struct sql_frame_lock *lock)
{
	if (answer->locks == SQL_LOCKS_MAX || answer->r < 0)
		return false;
	answer->r = sql_send_frame(answer->fd, &lock->frame, SQL_FRAME_LOCK, answer->ask,
		sizeof(*lock));
	answer->locks++;
	return answer->r == 0;
}

bool sql_helper_add_relation(int fd, struct sql_frame_relation *relation)
{
	return sql_send_frame(fd, &relation->frame, SQL_FRAME_RELATION, 0, sizeof(*relation)) == 0;
}

bool sql_helper_add_directory(int fd, struct sql_frame_directory *directory)
{
	return sql_send_frame(fd, &directory->frame, SQL_FRAME_DIRECTORY, 0, sizeof(*directory)) ==
		0;
}

void sql_answer_count(struct sql_answer *answer, uint64_t left_out, uint64_t idle)
{
	answer->left_out = left_out;
	answer->idle = idle;
}
