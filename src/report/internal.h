/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of this room share: the lines of a record as rows, small enough to keep all that a
 * page may need.
 * Included by src/report/ and its tests only.
 * Never handed out: others see report.h.
 */
#ifndef IOSTALL_REPORT_INTERNAL_H
#define IOSTALL_REPORT_INTERNAL_H

#include "model/model.h"
#include "page/statements.h"
#include "report/report.h"
#include "report/strings.h"
#include "verdict/verdict.h"

/* What a page has at most, so that it stays below a megabyte. */
#define REPORT_SAMPLES_MAX 400
#define REPORT_DISKS_MAX 8
#define REPORT_OPERATIONS_MAX 1500
#define REPORT_OFFCPU_MAX 300
#define REPORT_LOADS_MAX 600
#define REPORT_HISTOGRAMS_MAX 120
#define REPORT_STATEMENTS_MAX 150
#define REPORT_MARKS_MAX 100
#define REPORT_ROWS_MAX 100  /* of a table */
#define REPORT_SHARED_MAX 20 /* of a table of two incidents */

/* Texts are indices of report.strings. Times are of CLOCK_MONOTONIC. */
struct report_operation {
	uint64_t start_ns;
	uint64_t ns;
	int32_t pid, tid;
	uint64_t connection_id;
	uint32_t comm, path, stack, dev_name;
	uint8_t op, cause;
	bool stuck, request;
	uint64_t kind; /* of struct report_crowd */
};

/* Operations that hang and are so much alike that one line stands for many, as last told. */
struct report_crowd {
	uint64_t kind; /* hash of program, operation, disk and cause */
	uint64_t count;
	uint64_t at_ns;
};
#define REPORT_CROWDS_MAX 64

/*
 * Who waited in no operation: a session for a lock of its database, threads for a lock of a program
 * or for a reader.
 */
struct report_wait {
	uint64_t start_ns;
	uint64_t ns;	 /* the most that a line tells */
	uint64_t id;	 /* of the session, or of the lock */
	bool is_session; /* else they are threads */
	uint32_t target; /* of the session */
	uint32_t comm;	 /* the user of the session, or the process */
	uint32_t path;	 /* the table, or the file */
	uint32_t threads;
	int32_t pid;
	uint8_t lock; /* enum record_lock of a session, of threads enum record_kernel_lock */
};

struct report_offcpu {
	uint64_t end_ns, window_ns, ns, runnable_ns, longest_ns, start_ns, times;
	int32_t pid, tid;
	uint32_t process, comm, kernel, user, threads;
	char state;
};

struct report_load {
	uint64_t at_ns, busy_ns, bytes, requests;
	double share_pct;
	int32_t pid, tid;
	uint32_t dev_name, name, unit, rank;
	uint8_t by;
	bool final, inferred, uncertain;
};

struct report_histogram {
	uint64_t at_ns;
	uint32_t dev_name;
	uint64_t queue[RECORD_HISTOGRAM_MAX], device[RECORD_HISTOGRAM_MAX];
};

struct report_statement {
	uint64_t begun_ns, seen_ns, ns, connection_id, blocked_by;
	int32_t tid;
	uint32_t target, user, database, text, lock_on;
	uint8_t lock;
	bool inferred;
};

struct report_mark {
	uint64_t at_ns;
	const char *kind;
	uint32_t text;
	uint32_t dev_name; /* of a disk that hung; 0: none */
};

/* A list that grows. */
#define REPORT_LIST(type)                                                                          \
	struct {                                                                                   \
		type *items;                                                                       \
		uint32_t count, room;                                                              \
	}

struct report {
	bool opened, closed, has_final;
	char incident[RECORD_ID_SIZE];
	uint64_t opened_real_ns, opened_mono_ns, last_mono_ns;
	struct record_open open;
	struct record_verdict verdict; /* the final one of the record, or what is judged from it */
	struct record_close close;
	struct model model;
	struct graph graph;
	struct statements *runs; /* which statement a thread ran */
	struct strings strings;
	REPORT_LIST(struct record_sample) samples;
	REPORT_LIST(struct report_operation) operations;
	uint32_t *slots; /* of operations by thread and begin: index + 1 */
	uint32_t slots_room;
	REPORT_LIST(struct report_wait) waits;
	REPORT_LIST(struct report_offcpu) offcpu;
	REPORT_LIST(struct report_load) loads;
	REPORT_LIST(struct report_histogram) histograms;
	REPORT_LIST(struct report_statement) statements;
	REPORT_LIST(struct report_mark) marks;
	uint64_t alike; /* operations that have no line of their own */
	uint32_t crowds_count;
	struct report_crowd crowds[REPORT_CROWDS_MAX];
	uint64_t waits_left_out; /* lines about them */
	/* Of the page: disks that it shows, the judged one first. */
	uint32_t disks_count;
	uint32_t disks[REPORT_DISKS_MAX]; /* names */
	struct text data;		  /* the JSON text */
	struct report *second;		  /* that it is laid beside; NULL: none */
	uint32_t left_out_count;
	struct record_reader_counts lines;
	struct {
		const char *what;
		uint64_t count;
	} left_out[16];
};

/* Room for one more in a REPORT_LIST; NULL: there is no memory. */
#define report_list_add(list)                                                                      \
	((list)->count < (list)->room ||                                                           \
				report_grow((void **)&(list)->items, sizeof(*(list)->items),       \
					&(list)->room) == 0                                        \
			? &(list)->items[(list)->count++]                                          \
			: NULL)
int report_grow(void **items, size_t size, uint32_t *room);

/* Says that so many were left out; 0 says nothing. */
void report_leave_out(struct report *report, const char *what, uint64_t count);

/* Milliseconds since the `open` line, below 0 before it. */
double report_ms(const struct report *report, uint64_t mono_ns);
uint64_t report_duration_ns(const struct report *report);
/* Index in report.disks; -1: it is none of these. A partition is its disk. */
int report_find_disk(const struct report *report, uint32_t dev_name);
/* Whether a line of its list of loads is of the last list of its disk. */
bool report_load_is_last(const struct report *report, uint32_t i);
/* Index in report.statements of what the thread ran during the operation; -1: it is not known. */
/* The part of the verdict; NULL: nobody is blamed. */
const struct record_verdict_part *report_find_culprit(const struct report *report);
int report_find_statement(const struct report *report, const struct statement_query *query);
/* The same for what a session ran while it waited. */
int report_find_waiting(const struct report *report, const struct report_wait *wait);

/* operations.c */
int report_add_operation(struct report *report, const struct record *line);
/* When all lines are taken: sorts them, the longest first. */
void report_sort_operations(struct report *report);

/* waits.c */
int report_add_session(struct report *report, const struct record *line);
int report_add_lock(struct report *report, const struct record *line);
/* What it waited for: "row lock", "reader of a pipe". */
const char *report_wait_cause(const struct report_wait *wait);

/* data.c: the JSON text for the scripts. */
void report_add_data(struct report *report, struct text *out);
/* "folio_wait_bit_common+0x12" is a place in a function; the page is about functions. */
void report_cut_offset(char *frame);

/* sections.c: what stands in the places of the page. */
void report_add_title(struct report *report, struct text *out);
void report_add_verdict(struct report *report, struct text *out);
/* The same, with the sentence as heading of that level: "h1". */
void report_add_verdict_as(struct report *report, const char *heading, struct text *out);
void report_add_parts(struct report *report, struct text *out);
void report_add_loads(struct report *report, struct text *out);
void report_add_blocked(struct report *report, struct text *out);
void report_add_statements(struct report *report, struct text *out);
void report_add_coverage(struct report *report, struct text *out);
void report_add_losses(struct report *report, struct text *out);
void report_add_footer(struct report *report, struct text *out);

/* pair.c: two incidents side by side. */
void report_add_pair(struct report *report, struct text *out);
void report_add_shared(struct report *report, struct text *out);

/* tree.c */
void report_add_waits(struct report *report, struct text *out);

/* html.c */
/* "9.00 s", or "-" for 0. */
void html_add_duration(struct text *out, uint64_t ns);
/* <td class="num" data-value="...">...</td> of milliseconds, bytes, a count or percent. */
void html_add_duration_cell(struct text *out, uint64_t ns);
void html_add_bytes_cell(struct text *out, uint64_t bytes);
void html_add_count_cell(struct text *out, uint64_t count);
void html_add_percent_cell(struct text *out, double percent);
/* <td><bdi>...</bdi></td>; "-" for "". */
void html_add_cell(struct text *out, const char *s);
/* A text of which the line feeds and tabs stay as they are: a statement. */
void html_add_lines(struct text *out, const char *text);
/* <span class="basis measured">measured</span> */
void html_add_basis(struct text *out, enum record_basis basis);
/* The begin of a table: its caption, and its columns, those of numbers with a "#" before them. */
void html_begin_table(struct text *out, const char *caption, const char *const columns[]);
void html_end_table(struct text *out);

#endif
