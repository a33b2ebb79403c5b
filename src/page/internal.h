/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of this room share: the page itself, with a part for each of them.
 * Included by src/page/ and its tests only.
 * Never handed out: others see page.h.
 */
#ifndef IOSTALL_PAGE_INTERNAL_H
#define IOSTALL_PAGE_INTERNAL_H

#include "model/model.h"
#include "page/draw.h"
#include "page/page.h"
#include "page/statements.h"

/* Of a path the end is kept: it has the file's name. */
#define PAGE_PATH_SIZE 160
#define PAGE_USERS_MAX 5
#define PAGE_CELLS_MAX 600
/* Seconds before the trigger that are of the incident: what led to it was going on. */
#define PAGE_LEAD_S 5
#define PAGE_TARGETS_MAX 8
#define PAGE_BLOCKED_MAX 256

/* Limits of what is printed: together no more than 90 lines of 100 columns. */
#define PAGE_SENTENCE_CHARACTERS 480
#define PAGE_TIMELINE_ROWS 14
#define PAGE_TIMELINE_ROWS_SHORT 10
#define PAGE_TIMELINE_SHORT_S 30
#define PAGE_GROUP_ROWS 8
#define PAGE_DISK_ROWS 2
#define PAGE_STATEMENT_ROWS 5
#define PAGE_TARGET_ROWS 2
#define PAGE_BLOCKED_ROWS 10
#define PAGE_BLOCKED_STATEMENTS 3

/* What the last lines say of a disk of the model, and events have said. */
struct page_disk {
	uint32_t turn; /* as in struct model_disk */
	uint64_t no_completion_ns;
	uint64_t told_ns; /* without completions; 0: none */
	bool is_busy;
};

struct page_waiters {
	uint32_t count; /* at most at a time; 0: some, if longest_ns is not 0 */
	uint64_t longest_ns;
};

/* What happened in one second, or in a few when an incident is long. */
struct page_cell {
	bool sampled;
	int16_t util_pct[MODEL_DISKS_MAX]; /* the highest; -1: not sampled */
	int16_t psi_pct;		   /* -1: the kernel has none */
	int16_t cpu_pct;		   /* -1: not sampled */
	int16_t held_back_pct; /* by the CPU limit of a control group; -1: none has been near it */
	uint32_t blocked;
	uint32_t stalls;
	uint32_t stuck; /* at most at a time */
	uint64_t stuck_ns;
	uint64_t no_completion_ns;
	int8_t no_completion_disk;
	bool completes_again;
	bool thawed; /* what waited for a frozen file system returned */
	uint32_t kernel_lines;
	/* Of those that have no `stuck` lines. */
	struct page_waiters at_lock, at_reader;
	uint32_t statements;	/* at most, that waited for what another session held */
	bool connections_used;	/* all that a database allows */
	uint64_t stopped_ns;	/* of a watched process */
	uint64_t unanswered_ns; /* by a database */
	uint64_t failing_ns;	/* of the health check */
};

struct page_timeline {
	uint64_t cell_s;
	uint32_t used;		 /* cells up to the last one with anything */
	struct page_cell before; /* all samples before the lead, at most */
	struct page_cell cells[PAGE_CELLS_MAX];
	struct page_cell row; /* the one that is printed */
};

struct page_target {
	char name[RECORD_NAME_SIZE];
	enum record_server server;
	char error[RECORD_LIST_SIZE];
	uint64_t unanswered_ns;
	int64_t active_max;
	int64_t left_out_max;
	bool unanswered; /* by its last line */
};

/* Time off the CPU with one stack. */
struct page_blocked {
	uint64_t hash;
	uint64_t time_ns;
	uint32_t threads; /* at least */
	char state;
	char process[RECORD_COMM_SIZE];
	char comm[RECORD_COMM_SIZE];
	char functions[512];
	struct statement_query longest;
};

struct page_blocked_table {
	uint32_t count;
	uint64_t others_ns; /* that had no room */
	struct page_blocked items[PAGE_BLOCKED_MAX];
};

struct page_events {
	uint64_t second; /* since the open line, of the lines that were let through */
	uint32_t lines;
	uint32_t stalls_held, stuck_held;
	uint64_t held_longest_ns;
	/* How long what the last `stuck` line is about had hung in the line before; 0: new. */
	uint64_t hung_ns;
	bool failing;
};

struct page {
	struct draw draw;
	bool opened, closed, has_verdict;
	char incident[RECORD_ID_SIZE];
	uint64_t opened_real_ns, opened_mono_ns;
	uint64_t last_mono_ns; /* of the last line */
	uint32_t kernel_lines;
	char kernel_text[RECORD_MESSAGE_SIZE]; /* the first */
	struct record_open open;
	struct record_verdict verdict;
	struct record_blame told; /* of the last verdict so far that was told */
	struct record_close close;
	uint64_t stalls;
	uint64_t longest_ns; /* of those */
	struct model model;
	struct page_disk disks[MODEL_DISKS_MAX];
	struct page_timeline timeline;
	uint32_t targets_count;
	struct page_target targets[PAGE_TARGETS_MAX];
	struct page_events events;
	struct page_blocked_table blocked;
	struct statements *statements;
};

/* values.c */
/* Seconds since the trigger, below 0 before it. */
int64_t page_second(const struct page *p, uint64_t mono_ns);
uint64_t page_real_ns(const struct page *p, uint64_t mono_ns);
/* The relation of a file of PostgreSQL, of which the path has only a number; else the path. */
const char *page_file_name(const struct record_operation *o);
/* "-" for what has no name. */
const char *page_or_dash(const char *s);
/* "mariadbd", or "java/GC Thread" for a thread that has another name than its process. */
void page_add_name(struct text *t, const char *process, const char *comm);

/* What a person calls the thing it waits for: the record's word, else the kernel function. */
void page_cause(const struct record_operation *o, char ret_cause[static RECORD_NAME_SIZE]);
/* How many operations a `stall` or `stuck` line stands for. */
uint32_t page_count_of(const struct record_operation *o);

/* waits.c */
void page_print_waits(struct page *p);

/* disks.c */
/* The index of the one that the verdict, the trigger or the waits are about; -1: none is. */
int page_main_disk(const struct page *p);
void page_print_disks(struct page *p);

/* cells.c */
void page_cell_clear(struct page_cell *c);
void page_cell_merge(struct page_cell *into, const struct page_cell *c);
void page_note_sample(struct page *p, const struct record *r);
struct page_cell *page_cell_at(struct page *p, uint64_t mono_ns);
/* The index of the disk in the model, and in `disks`; -1: there is none. */
int page_find_disk(struct page *p, struct record_dev dev);
void page_note_device(struct page *p, const struct record *r);
void page_note_lock(struct page *p, const struct record *r);

/* timeline.c */
void page_print_timeline(struct page *p);

/* queries.c */
void page_note_sql(struct page *p, const struct record *r);
void page_print_statements(struct page *p);

/* blocked.c */
void page_note_offcpu(struct page *p, const struct record_offcpu *o);
void page_print_blocked(struct page *p);

/* closing.c */
void page_print_closing(struct page *p, bool being_written);

#endif
