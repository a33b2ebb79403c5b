/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What sentences and parts are made of: names, amounts, and what a culprit did.
 * Used by the kinds of nodes and by verdict.c.
 * Names from outside are kept as they are: whoever writes them to JSON, to a terminal or to a log
 * escapes them.
 */
#ifndef IOSTALL_VERDICT_WORDS_H
#define IOSTALL_VERDICT_WORDS_H

#include "verdict/graph.h"
#include "util/text.h"

/* "92 %", "0.4 %" */
void words_add_pct(struct text *t, double pct);
/* "9.0 s": as long as a person says it. */
void words_add_time(struct text *t, uint64_t ns);
/* "mariadbd (pid 4711)", "mariadbd (thread 2211)" */
void words_add_who(struct text *t, const struct model_who *who);
/* The same of its process as a whole. */
void words_add_process(struct text *t, const struct model_who *who);
/* "disk vg0-mysql", "disk sdb"; without "disk" the name alone. */
void words_add_disk(struct text *t, const struct model *model, int disk);
const char *words_disk_name(const struct model *model, int disk);
/* The last two names of a path, without what says that it was removed. */
void words_add_path_end(struct text *t, const char *path);
void words_add_path(struct text *t, const char *path);
/* So much of a statement is enough to know it again; all of it is in a part. */
#define WORDS_STATEMENT_MAX 120
/* A statement in quotes, each run of blanks and line ends as one blank, cut behind `most` bytes. */
void words_add_statement(struct text *t, const char *text, size_t most);
/* "session 36 of root@localhost", "the replica applier" */
void words_add_session(struct text *t, const char *user, uint64_t connection_id);
/* ""SELECT ..." of root@localhost (session 36)", "the page cleaner of mariadbd (pid 7)" */
void words_add_culprit(struct text *t, const struct culprit *culprit, bool with_statement);
/* The name of a system call in which a holder may be for long; NULL: another one. */
const char *words_syscall(int32_t number);
/* ", stopped by a signal", ", asleep in fsync": who holds a lock, or should read from a pipe. */
void words_add_what_holder_did(const struct model_lock *lock, struct text *t);
/* Gives it a capital letter, as the begin of a sentence has, unless that is a name. */
void words_capitalise(struct text *t);

/* Adds a part; text is on *ret_text. NULL: there is no room for it. */
struct record_verdict_part *words_add_part(struct record_verdict *verdict, enum record_what what,
	enum record_basis basis, struct text *ret_text);
void words_set_who(struct record_verdict_part *part, const struct model_who *who);

#endif
