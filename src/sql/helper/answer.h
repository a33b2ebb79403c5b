/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the helper process tells the daemon, frame by frame.
 * Used by helper.c and the drivers.
 * Never sends a statement in another form than the setup asks for.
 */
#ifndef IOSTALL_SQL_ANSWER_H
#define IOSTALL_SQL_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sql/helper/lexer.h"
#include "sql/protocol.h"

/* One answer to the daemon. Filled by helper.c; drivers only pass it on. */
struct sql_answer {
	int fd;
	uint64_t ask;
	bool is_glance; /* only who does what, without what takes further questions */
	const struct sql_frame_setup *setup;
	enum sql_dialect dialect;
	uint64_t idle;
	uint64_t left_out;
	struct sql_connections connections;
	uint64_t invalid; /* numbers and rows of the server that cannot be true */
	unsigned int sent;
	unsigned int locks;
	int r; /* error of the first frame that could not be sent */
};

/*
 * Sends one active session. `text` (NULL: none) is its statement, and whole_bytes the length that
 * the server tells for it. `cut`: the text may be only the beginning of the statement. Pass true
 * when that is unknown: true hides more, while false for a text that is cut may show literals.
 * Returns false when no more sessions can be sent.
 */
bool sql_answer_add(struct sql_answer *answer, struct sql_frame_session *session, const char *text,
	uint64_t whole_bytes, bool cut);
/* Tells what one of the sessions waits for; after all sessions. False: no more can be sent. */
bool sql_answer_add_lock(struct sql_answer *answer, struct sql_frame_lock *lock);
/* Sets how many active sessions were not sent, and how many sessions are idle. */
void sql_answer_count(struct sql_answer *answer, uint64_t left_out, uint64_t idle);

/* Tells what a file is, and where such files are, outside of an answer. False: it is not sent. */
bool sql_helper_add_relation(int fd, struct sql_frame_relation *relation);
bool sql_helper_add_directory(int fd, struct sql_frame_directory *directory);

/* Fills in the frame that a message begins with, and sends it. 0 or a negative errno. */
int sql_send_frame(int fd, struct sql_frame *frame, enum sql_frame_type type, uint64_t ask,
	size_t size);

/* Where to cut a text so that no character is cut in two. */
size_t sql_cut_text(const char *s, size_t len, size_t max);

#endif
