/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of this room share: the page itself, with a part for each of them.
 * Included by src/page/ and its tests only.
 * Never handed out: others see page.h.
 */
#ifndef IOSTALL_PAGE_INTERNAL_H
#define IOSTALL_PAGE_INTERNAL_H

#include "page/draw.h"
#include "page/median.h"
#include "page/page.h"
#include "page/statements.h"
#include "page/stuck.h"

/* Of a path the end is kept: it has the file's name. */
#define PAGE_PATH_SIZE 160
#define PAGE_GROUPS_MAX 256
/* Groups that are reserved for stuck operations, which may come last. */
#define PAGE_GROUPS_FOR_STUCK 32
/* Further groups of the same process and cause whose files had no room. */
#define PAGE_COARSE_MAX 64
/* Of one process, operation and cause, whatever file: when there are too many rows otherwise. */
#define PAGE_FOLDS_MAX 64
#define PAGE_DISKS_MAX 32
#define PAGE_USERS_MAX 5
#define PAGE_CELLS_MAX 600
/* Seconds before the trigger that are of the incident: what led to it was going on. */
#define PAGE_LEAD_S 5
#define PAGE_TARGETS_MAX 8
#define PAGE_BLOCKED_MAX 256

/* Limits of what is printed: together no more than 90 lines of 100 columns. */
#define PAGE_SENTENCE_LINES 3
#define PAGE_TIMELINE_ROWS 14
#define PAGE_TIMELINE_ROWS_SHORT 10
#define PAGE_TIMELINE_SHORT_S 30
#define PAGE_GROUP_ROWS 8
#define PAGE_DISK_ROWS 2
#define PAGE_STATEMENT_ROWS 5
#define PAGE_TARGET_ROWS 2
#define PAGE_BLOCKED_ROWS 10
#define PAGE_BLOCKED_STATEMENTS 3

/* Operations of one process on one file with one cause. */
#define PAGE_LONGEST_KEPT 8
#define PAGE_PIDS_KEPT 8
struct page_group {
	char comm[RECORD_COMM_SIZE];
	char process[RECORD_COMM_SIZE]; /* of the first operation; "": not known */
	enum record_op op;
	char cause[RECORD_NAME_SIZE];
	char path[PAGE_PATH_SIZE];
	char dev_name[RECORD_DISK_NAME_SIZE];
	bool other_files; /* no path: there was no room for a group for each of them */
	uint32_t files;	  /* of a fold: how many, the path is that of the first */
	uint64_t hash;
	uint64_t waited_ns; /* all together, within the incident */
	uint64_t min_ns;
	uint64_t max_ns;
	bool max_is_bound; /* the longest began before it was looked at */
	uint32_t failed;
	uint32_t pids_count; /* at most as many as are kept */
	bool more_pids;
	int32_t pids[PAGE_PIDS_KEPT];
	/* The longest, for the statements they were part of. */
	uint32_t kept;
	struct statement_query longest[PAGE_LONGEST_KEPT];
	struct median median; /* of those that are over */
	/* Those that hang and that one line stands for. */
	uint32_t alike;
	uint64_t alike_max_ns;
	uint64_t alike_seen_ns; /* when that line was written */
	bool alike_is_bound;
	/* While printing: those that are not. */
	uint32_t stuck;
	uint64_t stuck_max_ns;
	bool stuck_max_is_bound;
	struct statement_query stuck_longest;
};

struct page_operations {
	uint64_t stalls;
	uint64_t stuck_seen; /* different operations */
	uint32_t alike;	     /* of all groups */
	uint64_t longest_ns;
	uint64_t left_out;     /* that had no room in any group */
	uint64_t not_folded;   /* nor in any fold */
	uint64_t not_followed; /* stuck lines that had no room */
	uint32_t groups_count, coarse_count;
	struct page_group groups[PAGE_GROUPS_MAX + PAGE_COARSE_MAX];
	struct page_group folds[PAGE_FOLDS_MAX]; /* while printing */
	struct page_stuck_table stuck;
};

/* One of the five with the most bytes of a disk. */
struct page_user {
	char name[PAGE_PATH_SIZE]; /* a process's, or a file's path */
	int32_t pid;
	uint64_t read_bytes;
	uint64_t write_bytes;
	double share_pct;
	bool inferred;
};

struct page_users {
	/* All lines, also those that are not kept. */
	uint32_t count;
	uint64_t read_bytes;
	uint64_t write_bytes;
	struct page_user first[PAGE_USERS_MAX];
};

struct page_disk {
	uint32_t major;
	uint32_t minor;
	char name[RECORD_DISK_NAME_SIZE];
	uint64_t operations; /* that stalled or were stuck on its files */
	bool sampled;
	double util_max_pct;
	uint64_t no_completion_ns; /* by the last sample or line */
	uint64_t no_completion_max_ns;
	bool busy;	  /* as the last event said */
	uint64_t told_ns; /* without completions, in the last event; 0: none */
	bool has_totals;
	uint64_t requests, read_bytes, write_bytes, in_flight;
	struct record_latency queue, device;
	char below[RECORD_LIST_SIZE]; /* the disks that it stands on, one on a line */
	uint64_t queue_histogram[RECORD_HISTOGRAM_MAX];
	uint64_t device_histogram[RECORD_HISTOGRAM_MAX];
	struct page_users processes, files;
};

struct page_disks {
	uint32_t count;
	uint64_t left_out;
	struct page_disk items[PAGE_DISKS_MAX];
};

/* What happened in one second, or in a few when an incident is long. */
struct page_cell {
	bool sampled;
	int16_t util_pct[PAGE_DISKS_MAX]; /* the highest; -1: not sampled */
	int16_t psi_pct;		  /* -1: the kernel has none */
	int16_t cpu_pct;		  /* -1: not sampled */
	uint32_t blocked;
	uint32_t stalls;
	uint32_t stuck; /* at most at a time */
	uint64_t stuck_ns;
	uint64_t no_completion_ns;
	int8_t no_completion_disk;
	bool completes_again;
	bool thawed; /* what waited for a frozen file system returned */
	uint32_t kernel_lines;
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
	struct record_close close;
	struct page_operations operations;
	struct page_disks disks;
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
/* The name of the process, by its executable when only a thread of it is known; "": not known. */
void page_process_of(const struct record_operation *o, char ret_process[static RECORD_COMM_SIZE]);
/* "mariadbd", or "java/GC Thread" for a thread that has another name than its process. */
void page_add_name(struct text *t, const char *process, const char *comm);

/* group.c */
/* What a person calls the thing it waits for: the record's word, else the kernel function. */
void page_cause(const struct record_operation *o, char ret_cause[static RECORD_NAME_SIZE]);
void page_note_operation(struct page *p, const struct record *r);
/* How many operations a `stall` or `stuck` line stands for. */
uint32_t page_count_of(const struct record_operation *o);
/* How many hang by the last lines. */
uint32_t page_count_stuck(const struct page *p);
/* Adds the operations of one group to another. */
void page_merge_group(struct page_group *into, const struct page_group *g);
/* Operations whose return was missed are not stuck for ever. */
void page_expire_stuck(struct page *p, uint64_t now_ns);
uint64_t page_oldest_stuck_ns(const struct page *p, uint64_t now_ns);

/* operations.c */
void page_print_operations(struct page *p);

/* disks.c */
/* NULL: the table is full. */
struct page_disk *page_disk_of(struct page *p, uint32_t major, uint32_t minor, const char *name);
void page_note_device(struct page *p, const struct record *r);
void page_note_io_by(struct page *p, const struct record_io_by *b);
void page_note_disk_operation(struct page *p, const struct record_operation *o);
/* The one that the verdict, the trigger or the operations are about; NULL: none is. */
const struct page_disk *page_main_disk(const struct page *p);
/* As the disks know it; "": none does. */
const char *page_process_name(const struct page *p, int32_t pid);
void page_print_disks(struct page *p);

/* timeline.c */
void page_note_sample(struct page *p, const struct record *r);
struct page_cell *page_cell_at(struct page *p, uint64_t mono_ns);
/* How long a disk has completed nothing by then. */
void page_note_no_completion(struct page *p, uint64_t mono_ns, const struct page_disk *d,
	uint64_t ns);
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
