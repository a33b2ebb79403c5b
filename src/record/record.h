/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One line of an incident record as a C structure, its JSON form and its form for people.
 * Made by the session, written by the sinks, read back by `list` and `show`.
 * Encoding and formatting never allocate; nothing here touches a file.
 */
#ifndef IOSTALL_RECORD_RECORD_H
#define IOSTALL_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/text.h"
#include "watch/sample.h"

#define RECORD_VERSION 1
/* "20261120T031207Z-3f9c" */
#define RECORD_ID_SIZE 22
#define RECORD_NAME_SIZE 64
#define RECORD_PATH_SIZE 4400 /* EVENT_PATH_SIZE, a prefix and a suffix */
#define RECORD_STACK_SIZE 2048
#define RECORD_COVERAGE_MAX 32
#define RECORD_LIST_SIZE 256
#define RECORD_RET_UNKNOWN INT64_MIN
/* One time for each power of two of a microsecond: below 1, below 2, below 4 us ... and the rest. */
#define RECORD_HISTOGRAM_MAX 32
/* A line of the kernel's log; it ends them at 1 KB (LOG_LINE_MAX). */
#define RECORD_MESSAGE_SIZE 1024
/* The most that sql.text_bytes allows, and the terminating NUL. */
#define RECORD_SQL_TEXT_SIZE 4096
/* Threads that a session without one may be running on. */
#define RECORD_CANDIDATES_MAX 4
#define RECORD_PARTS_MAX 8
#define RECORD_PART_SIZE 512
#define RECORD_SENTENCE_SIZE 2048
/* Of a statement in a verdict; `sql` lines have more of it. */
#define RECORD_VERDICT_STATEMENT_SIZE 512
/*
 * No line is longer. The worst is an `open` whose 32 coverage entries consist of nothing but bytes
 * that JSON writes in six (\u00NN); a `stuck` of the same kind takes 45 KiB.
 * tests/unit/test_record.c makes both.
 */
#define RECORD_LINE_SIZE (96 * 1024)
#define RECORD_FILE_SUFFIX ".jsonl"
/* "20261120T031207Z-3f9c.jsonl" */
#define RECORD_FILE_SIZE (RECORD_ID_SIZE + sizeof(RECORD_FILE_SUFFIX) - 1)

enum record_type {
	RECORD_OPEN,
	RECORD_SAMPLE,
	RECORD_STALL,
	RECORD_STUCK,
	RECORD_DEVICE,
	RECORD_IO_BY,
	RECORD_KERNEL,
	RECORD_SQL,
	RECORD_VERDICT,
	RECORD_CLOSE,
	RECORD_TYPE_COUNT,
};

enum record_lost {
#define LOST(name, help) RECORD_LOST_##name,
#include "record/lost.def"
#undef LOST
	RECORD_LOST_COUNT,
};

struct record_trigger {
	char rule[RECORD_NAME_SIZE]; /* a rule's name, or "manual" */
	char device[WATCH_DISK_NAME_SIZE]; /* empty when the rule is not about a device */
	char subject[WATCH_SUBJECT_SIZE];  /* what else it is about, as a mount point; or empty */
	int32_t pid; /* 0 when the rule is not about a process; else one of the threads it saw */
	int32_t tid;
	double value;
	double threshold;
	char unit[16];
};

/* Which probe sees one I/O path, or why none does. */
struct record_coverage {
	char path[RECORD_NAME_SIZE];	/* "read", "write", "fsync" ... */
	char probe[RECORD_NAME_SIZE];	/* empty when the path is not seen */
	char backend[RECORD_NAME_SIZE]; /* "fentry", "kprobe", "tracepoint", "proc" */
	char reason[RECORD_LIST_SIZE];	/* why not seen or by no better backend, or empty */
};

struct record_open {
	struct record_trigger trigger;
	char host[RECORD_NAME_SIZE];
	char kernel[RECORD_NAME_SIZE];
	char boot_id[RECORD_NAME_SIZE];
	char version[RECORD_NAME_SIZE];
	uint64_t min_stall_ns;
	uint64_t armed_ns; /* from the trigger to probes live */
	uint32_t coverage_count;
	struct record_coverage coverage[RECORD_COVERAGE_MAX];
};

struct record_sample {
	bool before_trigger;
	struct watch_sample sample;
	struct watch_limits limits; /* empty in all before the trigger but the last */
};

/* A `stall` (finished) or `stuck` (not returned) operation. */
struct record_operation {
	char op[RECORD_NAME_SIZE];
	char probe[RECORD_NAME_SIZE]; /* "vfs" */
	char backend[RECORD_NAME_SIZE];
	int32_t pid;
	int32_t tid;
	char comm[16];
	char exe[RECORD_LIST_SIZE];  /* empty when unknown */
	char user[RECORD_NAME_SIZE]; /* name, or number when it has none; empty when unknown */
	char unit[RECORD_LIST_SIZE]; /* systemd unit or container; empty when unknown */
	uint64_t cgroup_id;
	uint64_t connection_id; /* of the database session that the thread served; 0: none is known */
	int32_t fd; /* -1 when not recovered */
	char path[RECORD_PATH_SIZE];
	bool path_truncated;	     /* the beginning is missing */
	uint32_t mount_ns;	     /* 0 when it is the host's or the daemon's own */
	uint32_t dev_major;
	uint32_t dev_minor;
	char dev_name[WATCH_DISK_NAME_SIZE]; /* empty when unknown */
	uint64_t inode;
	int64_t offset; /* -1 when the operation has none */
	uint64_t bytes; /* asked for */
	int64_t ret;	/* bytes done or negative errno, or RECORD_RET_UNKNOWN; stall only */
	uint64_t start_mono_ns;
	uint64_t dur_ns; /* stall: how long it took; stuck: its age so far */
	bool before_arm;     /* since: before_arm, the length is a lower bound */
	bool path_given;     /* as the program passed it, which may be relative */
	bool iowait;	     /* the scheduler counts the sleep as waiting for I/O */
	int32_t syscall;     /* number; -1 in none or when it is not known */
	uint32_t sleeps;     /* 0 when they were not counted */
	uint64_t slept_ns;   /* of the length, in all sleeps together */
	char waits_for[RECORD_NAME_SIZE]; /* what the innermost frames wait for; empty when unknown */
	/* stuck only */
	char state;	 /* of the thread, as in /proc/PID/stat */
	char wchan[RECORD_NAME_SIZE];
	/* frames from the innermost on, separated by newlines, "symbol+0xoff"; may be empty */
	char kstack[RECORD_STACK_SIZE];
	bool kstack_while_blocked; /* else taken when the operation returned */
};

/* From a histogram, so exact to its bucket, but for the longest. */
struct record_latency {
	uint64_t p50_ns;
	uint64_t p99_ns;
	uint64_t max_ns;
};

/* What one disk did at the block layer since the probes were armed. */
struct record_device {
	uint32_t dev_major;
	uint32_t dev_minor;
	char dev_name[WATCH_DISK_NAME_SIZE]; /* empty when unknown */
	bool final; /* the last one, before `close`; else nothing was finished for a while */
	uint64_t requests; /* completed */
	uint64_t read_requests;
	uint64_t write_requests;
	uint64_t read_bytes;
	uint64_t write_bytes;
	struct record_latency queue;  /* until it was given to the device */
	struct record_latency device; /* from there until it was completed */
	uint64_t queue_histogram[RECORD_HISTOGRAM_MAX];
	uint64_t device_histogram[RECORD_HISTOGRAM_MAX];
	uint64_t in_flight;
	uint64_t no_completion_ns; /* requests are in flight and none ended for so long */
	uint64_t oldest_age_ns;	   /* of the requests in flight; 0: there are none */
	int32_t oldest_pid;	   /* 0 when unknown */
	int32_t oldest_tid;
	char oldest_comm[16];
	char oldest_path[RECORD_PATH_SIZE];
};

/* Who loaded a disk: one of the first ten of its kind. */
struct record_io_by {
	char by[RECORD_NAME_SIZE]; /* "process", "thread", "file", "cgroup" */
	uint32_t dev_major;	   /* the disk */
	uint32_t dev_minor;
	char dev_name[WATCH_DISK_NAME_SIZE];
	int32_t pid; /* of a process or thread, else 0 */
	int32_t tid; /* of a thread, else 0 */
	char comm[16];
	uint64_t cgroup_id;	     /* of all but a file */
	char unit[RECORD_LIST_SIZE]; /* empty when unknown */
	char path[RECORD_PATH_SIZE]; /* of a file; "(metadata)" of no file, but of the file system */
	bool path_truncated;
	uint32_t fs_major; /* of a file: where its file system is */
	uint32_t fs_minor;
	uint64_t inode;
	uint64_t requests;
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t bytes;
	double share_pct; /* of the bytes of the disk */
	uint64_t device_ns; /* the device's time for these requests, added up */
	bool inferred; /* most was submitted by a kernel thread: on whose behalf is not known */
};

/* A line of the kernel's log about storage. */
struct record_kernel {
	char level[16]; /* "err", as in syslog(3) */
	uint64_t kernel_ns; /* the log's own time, since boot */
	char text[RECORD_MESSAGE_SIZE];
};

/*
 * What a database said at one moment: first a line about the answer as a whole, which has no
 * connection_id, or why there is none; then a line for each session that was active. "longest" has only
 * lines of sessions, each of another answer.
 */
struct record_sql {
	char target[RECORD_NAME_SIZE]; /* "main" of [sql.main] */
	char server[RECORD_NAME_SIZE]; /* "mariadb" */
	char moment[16];	       /* "open", "worst", "longest", "end" */
	/* of the answer; -1 in the lines of sessions and where there is no answer */
	int64_t active;
	int64_t idle;
	int64_t left_out; /* active, but beyond what is kept */
	uint64_t server_ns; /* that the server took to answer */
	/* from the question until the answer was read; the server looked in between; also in "longest" */
	uint64_t answer_ns;
	char version[RECORD_NAME_SIZE];
	char account[RECORD_NAME_SIZE];
	char error[RECORD_LIST_SIZE + RECORD_NAME_SIZE]; /* why there is no answer */
	char missing[RECORD_LIST_SIZE]; /* the statement that would mend that, or let the account see more */
	uint64_t unanswered_ns;
	/* of a session */
	uint64_t connection_id;
	uint64_t query_id; /* 0: the server has none */
	char user[RECORD_NAME_SIZE];
	char database[RECORD_NAME_SIZE];
	char command[RECORD_NAME_SIZE];
	char state[RECORD_NAME_SIZE];
	uint64_t elapsed_ns; /* 0: not known */
	char text[RECORD_SQL_TEXT_SIZE];
	uint64_t text_bytes; /* of the whole statement */
	int32_t pid;
	int32_t tid; /* 0: see tid_reason */
	char tid_reason[RECORD_NAME_SIZE];
	uint64_t candidates[RECORD_CANDIDATES_MAX]; /* threads of the server that hung then */
	int32_t leader_pid; /* the backend that this worker serves */
	bool background;    /* a thread of the server, no client's */
};

/* What a verdict stands on. Numbers that say nothing here are 0, or not-a-number. */
struct record_verdict_part {
	char what[RECORD_NAME_SIZE];  /* "device", "culprit", "victims", "missing" ... */
	char basis[RECORD_NAME_SIZE]; /* "measured", "inferred"; empty of what is missing */
	char text[RECORD_PART_SIZE];
	int32_t pid;
	int32_t tid;
	char comm[16];
	char path[RECORD_LIST_SIZE]; /* the end of it, at most 159 bytes */
	uint32_t threads;
	uint64_t longest_ns; /* of their waits, of a silence, of a statement's time */
	uint64_t requests;
	uint64_t bytes;
	double share_pct; /* of the bytes of the device */
	double util_pct;
	double await_ms;
	double queue;
};

/* What was wrong, once, before `close`. */
struct record_verdict {
	char class_name[RECORD_NAME_SIZE]; /* "saturated", "hung" ... "unknown" */
	char basis[RECORD_NAME_SIZE];
	char sentence[RECORD_SENTENCE_SIZE];
	char message[RECORD_SENTENCE_SIZE]; /* the same without a statement's text: for logs of others */
	uint32_t dev_major;		    /* the device that is judged, or 0:0 */
	uint32_t dev_minor;
	char dev_name[WATCH_DISK_NAME_SIZE];
	char waits_for[RECORD_NAME_SIZE]; /* what the victims wait for; empty of a device */
	uint32_t parts_count;
	struct record_verdict_part parts[RECORD_PARTS_MAX];
};

struct record_close {
	char reason[RECORD_NAME_SIZE]; /* "clear", "max_time", "stopped" */
	uint64_t duration_ns;
	uint64_t stalls;
	uint64_t stuck_lines;
	uint64_t stuck_threads; /* different operations among them */
	uint64_t longest_ns;
	uint64_t samples;
	uint64_t lost[RECORD_LOST_COUNT];
	uint64_t cpu_ns; /* of the daemon, from open to close */
	uint64_t armed_ns; /* from the trigger to probes live */
	uint64_t attach_ns;
	uint64_t detach_ns;
	uint64_t turn_ns; /* the longest of the loop since it is armed */
	uint64_t rss_bytes;
};

struct record {
	enum record_type type;
	char incident[RECORD_ID_SIZE];
	uint64_t real_ns; /* written as `ts` */
	uint64_t mono_ns;
	union {
		struct record_open open;
		struct record_sample sample;
		struct record_operation operation;
		struct record_device device;
		struct record_io_by io_by;
		struct record_kernel kernel;
		struct record_sql sql;
		struct record_verdict verdict;
		struct record_close close;
	};
};

const char *record_type_name(enum record_type type);
const char *record_lost_name(enum record_lost lost);

/* "20261120T031207Z-3f9c": the second of real_ns in UTC and the low 16 bits of random. */
void record_make_id(uint64_t real_ns, uint32_t random, char ret_id[static RECORD_ID_SIZE]);
/* Whether it is exactly such an id, or an id and ".jsonl"; s need not be terminated. */
bool record_id_is_valid(const char *s, size_t len);
bool record_file_name_is_valid(const char *name);
/* The second in an id, nanoseconds since the epoch; 0 when it is not a date. */
uint64_t record_id_real_ns(const char *id);

/*
 * One JSON object and a newline; line->overflow tells that it did not fit.
 *
 * Every key of a type is always there. What is not known is null: an empty text, a `fd` or `offset`
 * below 0, a `pid`, `tid`, `inode`, `cgroup`, `mount_ns` or `start_mono_ns` of 0, a `dev` of 0:0, a
 * number that is none. The one list of keys is fields.c. A `sample` line has the times of the
 * sample. A byte of a text that is not UTF-8 is written as U+FFFD. Numbers go up to 2^64 - 1.
 */
void record_encode_json(const struct record *r, struct text *line);

/*
 * The inverse; len bytes without the newline. -EINVAL (not JSON, or a field of the wrong kind, out
 * of range or longer than its place), -EPROTONOSUPPORT (a `v` or `type` of a later version, to be
 * skipped and counted); *ret_record says nothing then. Unknown members are skipped, missing ones
 * are not known; only those of every line must be there. U+FFFD becomes the byte 0xff, which is
 * never UTF-8, so that what was written fits again and is written the same. Does not allocate.
 */
int record_decode_json(const char *line, size_t len, struct record *ret_record);

/*
 * One line or a few for a person, everything from outside escaped; ends in a newline. Times are
 * given since opened_mono_ns, the mono_ns of the incident's `open`.
 */
void record_format_text(const struct record *r, uint64_t opened_mono_ns, struct text *out);
/* "340 us", "512 ms", "3.21 s", "2m03s", "1h02m". */
void record_add_duration(struct text *t, uint64_t duration_ns);
/* "19.0 MiB". */
void record_add_size(struct text *t, uint64_t bytes);
/* "utilisation 97.3 %, threshold 90 %, device sdb". */
void record_add_trigger(struct text *t, const struct record_trigger *trigger);
/* Text from outside or out of a record, for a person. */
void record_add_printable(struct text *t, const char *s);

#endif
