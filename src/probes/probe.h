/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A probe: its BPF object, the backends by which it can be attached, and which of them this kernel
 * accepts.
 * Called by set.c; the session's in-flight scan and doctor read descriptors, programs and maps.
 * Never decides when to attach, never writes a record.
 */
#ifndef IOSTALL_PROBES_PROBE_H
#define IOSTALL_PROBES_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "iostall/event.h"
#include "probes/preemption.h"
#include "record/record.h"

struct bpf_link;
struct bpf_map;
struct bpf_object;
struct inflight_map;
struct kernel_types;
struct probe;
struct trace_maps;

#define PROBE_PROGRAMS_MAX 24
#define PROBE_BACKENDS_MAX 4
#define PROBE_PARTS_MAX 8
#define PROBE_REASON_SIZE 96

enum probe_attach {
	PROBE_ATTACH_NONE,	     /* never attached: user space runs it */
	PROBE_ATTACH_BTF,	     /* fentry, fexit */
	PROBE_ATTACH_KPROBE,	     /* through an event in tracefs */
	PROBE_ATTACH_KRETPROBE,	     /* the same, for the return */
	PROBE_ATTACH_TRACEPOINT,     /* target "category/name" */
	PROBE_ATTACH_RAW_TRACEPOINT, /* target "name|older name": the first that exists */
};

struct probe_program {
	const char *name; /* of the BPF program */
	enum probe_attach attach;
	const char *target;
};

struct probe_backend {
	enum config_backend id;
	enum record_backend name;
	const struct probe_program *programs;
	unsigned int programs_count;
	/*
	 * The kernel skips runs of it where it preempts BPF programs; not of kprobes, which run
	 * with preemption off.
	 */
	bool loses_when_preempted;
	/*
	 * System calls whose every operation this backend reports, so that `wait` need not: their
	 * numbers, ended by -1. NULL: none.
	 */
	const int *reported_syscalls;
	/* The same of programs of 32 bits, by the numbers that others have for these calls. */
	const int *reported_syscalls_32;
};

/* Programs that a probe can do without: a kernel that refuses one of them costs these alone. */
struct probe_part {
	/* In the names of them all; of two parts that match, the first has it. */
	const char *programs;
	enum record_io_path path; /* what is not seen then; NONE: a part of what the probe sees */
	const char *costs;	  /* what that means, as a clause */
	/* "structure.member" of the kernel without which they load but say nothing; NULL: none. */
	const char *member;
};

/* Why a part is missing. */
struct probe_loss {
	const char *step; /* what the kernel refused; NULL: nothing */
	int error;	  /* 0: it has no such member of a structure */
	bool passes;	  /* only for the last time: its programs are loaded */
};

/* What cannot change after an object has been loaded. */
struct probe_settings {
	struct event_settings common; /* probe_open.h adds `probe` */
	enum config_pairing pairing;  /* of vfs */
	uint64_t offcpu_min_ns;	      /* of offcpu */
	bool offcpu_wakers;	      /* of offcpu */
	/* NULL: the kernel's types cannot be read, and libbpf will say why. */
	const struct kernel_types *types;
	uint64_t ring_bytes;
	uint64_t inflight_max; /* operations of threads */
	struct preemption preemption;
	/* Why common.registers_offset is not known, see registers_find(); 0: it is. */
	int registers_error;
	uint32_t generation; /* in the names of kprobe events: differs between loaded sets */
	/* For what the verifier says of a program that it refuses; only while it is loaded. */
	char *log;
	size_t log_bytes;
	/* The backends of the probes before this one in probes.def; NULL: not loaded. */
	const struct probe_backend *loaded[CONFIG_PROBE_COUNT];
};

/* What is needed beside a line's members to find the names that it mentions. */
struct probe_line_names {
	bool path_in_fs; /* the path begins at the root of its file system */
	uint32_t fs_major;
	uint32_t fs_minor;
	char cgroup_names[EVENT_CGROUP_NAMES][EVENT_CGROUP_NAME_SIZE]; /* its own, its parent's */
	uint64_t process_start_ns;				       /* CLOCK_BOOTTIME */
	const uint64_t *kernel; /* functions of a kernel stack, the innermost first */
	uint32_t kernel_len;
	const uint64_t *waker; /* the same of who woke the thread */
	uint32_t waker_len;
};

/* What a thread of a database works on. */
struct probe_statement {
	uint64_t key;	/* the same for all that have this text; 0: nothing is known */
	int32_t leader; /* whose statement it is, usually its own */
	bool is_io_worker;
};

/* A probe writes its own lines through these: `begin` gives an empty record, `write` writes it. */
struct probe_report {
	uint64_t now_ns;
	uint64_t attached_ns; /* when attaching began */
	bool final; /* the last call, when nothing is attached any more; else once a second */
	bool whole; /* it is asked for all that is known by now, not only for news; if final, too */
	uint64_t *account_full; /* counts what no table of a probe has room for, for `lost` */
	void *userdata;
	struct record *(*begin)(void *userdata, enum record_type type);
	void (*write)(void *userdata, const struct probe_line_names *names);
	void (*find_statement)(void *userdata, int32_t pid, int32_t tid,
		struct probe_statement *ret_statement);
	/*
	 * Has the kernel stack of a thread read from /proc, which is passed to offcpu_note_stack()
	 * later.
	 */
	void (*ask_stack)(void *userdata, uint32_t tid, uint64_t off_ns);
};

/* The descriptor of a probe: one for each line of probes.def. */
struct probe_ops {
	const char *name;
	/* How it comes to know when an operation began; NONE: it has no choice. */
	enum record_pairing pairing;
	/* It, with more programs, for settings that want these. NULL: there are none. */
	const struct probe_ops *more;
	bool (*wants_more)(const struct probe_settings *settings);
	const enum record_io_path *paths;     /* those it sees, for `coverage`; ends with NONE */
	const struct probe_backend *backends; /* cheapest first */
	unsigned int backends_count;
	/*
	 * The object's map of its operations in flight, whose values begin with a struct
	 * event_inflight; NULL: it has none.
	 */
	const char *inflight_map;
	/* The program that describes one of them, see bpf/wait.bpf.c; NULL: there is none. */
	const char *resolve_program;
	/* It only adds the result to operations that `wait` has noted. */
	bool needs_wait;
	/*
	 * The program of the initial task scan, which notes in what a thread already sleeps, see
	 * bpf/wait.bpf.c and bpf/offcpu.bpf.c; NULL: there is none.
	 */
	const char *task_scan_program;
	/*
	 * The programs that say who holds a lock of the kernel, and where that thread is, see
	 * bpf/locks.bpf.h. Their answer is in the map `locks`. NULL: there are none.
	 */
	const char *lock_program;
	const char *lock_stack_program;
	/* The one that says what a socket is connected to, see bpf/sockets.bpf.h; NULL: none. */
	const char *socket_program;
	/* Who is refused locks of files, see bpf/refusals.bpf.h; NULL: it does not tell. */
	const char *refusals_map;
	/* A backend needs each program that is of no part. */
	const struct probe_part *parts;
	unsigned int parts_count;
	/*
	 * What the backend in use does not see of its paths, besides lost parts, for `coverage`.
	 * May be NULL, and may return NULL.
	 */
	const char *(*describe_limit)(const struct probe *probe);
	/* The object file, which kernel_types_new() reads. */
	const void *(*elf)(size_t *ret_size);
	/* Opens the object with its settings: PROBE_OPEN. ret_skeleton is passed to `destroy`. */
	int (*open)(const struct probe_settings *settings, const struct probe_backend *backend,
		void **ret_skeleton, struct bpf_object **ret_object);
	void (*destroy)(void *skeleton);
	/* Called before each attach to clear the maps of the last incident. May be NULL. */
	void (*reset)(struct probe *probe);
	/* Writes lines of its own, while tracing and at the end. May be NULL. */
	void (*summarize)(struct probe *probe, const struct probe_report *report);
};

struct probe {
	const struct probe_ops *ops;
	const struct probe_backend *backend; /* in use; NULL: none works */
	void *skeleton;
	struct bpf_object *object;
	struct bpf_link *links[PROBE_PROGRAMS_MAX];
	unsigned int links_count;
	/* On 5.10 a loaded fentry program can be attached only once (ENOENT): load it again. */
	bool load_before_attach_again;
	bool attached_once;
	uint32_t generation;
	struct probe_loss lost[PROBE_BACKENDS_MAX][PROBE_PARTS_MAX];
	const struct probe_part *alone; /* what is tried now, without any other program */
	/* Why backends[i] does not work; empty for the one in use and for those not tried. */
	char reasons[PROBE_BACKENDS_MAX][PROBE_REASON_SIZE];
	/* What to do about it; for doctor and the log. */
	const char *hints[PROBE_BACKENDS_MAX];
	bool tried[PROBE_BACKENDS_MAX];
	bool failed_by_chance; /* a backend was refused by an error that may pass */
};

const struct probe_ops *probe_ops_get(enum config_probe_name name);
/* The same as the settings want it. */
const struct probe_ops *probe_ops_choose(enum config_probe_name name,
	const struct probe_settings *settings);
/* Its name in a record, which is of the same list. */
enum record_probe probe_in_record(enum config_probe_name name);

/* What trace.backend means for this probe: AUTO when it has no backend of that kind. */
enum config_backend probe_wanted_backend(const struct probe_ops *ops, enum config_backend wanted);

/*
 * Tries the backends by really loading and attaching, best first; only the `wanted` one if the
 * probe has it. The cheapest is the best, but where the kernel preempts BPF programs one that loses
 * nothing comes first. 0, or the error of the last one tried; the reasons are in the probe.
 */
int probe_load(struct probe *probe, const struct probe_ops *ops, enum config_backend wanted,
	const struct probe_settings *settings, const struct trace_maps *maps);

/*
 * Loads it with the backend of `like`, which works on this host, and tries nothing: what `like` has
 * in its maps, which are these, stays as it is. 0, or why it could not be loaded.
 */
int probe_load_like(struct probe *probe, const struct probe *like,
	const struct probe_settings *settings, const struct trace_maps *maps);

/* Tries every backend and leaves none loaded. For doctor. */
void probe_try_all(struct probe *probe, const struct probe_ops *ops,
	const struct probe_settings *settings, const struct trace_maps *maps);
void probe_unload(struct probe *probe);

/* Whether it cannot be attached before it has been loaded again. */
bool probe_needs_prepare(const struct probe *probe);
/* Loads it again if it needs that; detaches it before. */
int probe_prepare(struct probe *probe, const struct probe_settings *settings,
	const struct trace_maps *maps);

/* Attaches the programs of the backend that are not attached, or on an error none. */
int probe_attach(struct probe *probe);

/*
 * Detaches the program that was attached last. It can take 0.1 s. False: none was attached.
 */
bool probe_detach_next(struct probe *probe);

/* Runs that the kernel has skipped since load; 0 before 5.12, which does not count them. */
uint64_t probe_skipped_runs(const struct probe *probe);

/* Why the backend in use does without one of ops->parts; NULL: it has it. */
const struct probe_loss *probe_find_loss(const struct probe *probe, unsigned int part);

/* "cannot load: Invalid argument" */
void probe_explain_loss(const struct probe_loss *loss, char *ret_text, size_t size);

bool probe_uses_kprobes(const struct probe *probe);

int probe_program_fd(const struct probe *probe, const char *program);

/* A map of the loaded object; NULL when there is none of that name. */
struct bpf_map *probe_map(const struct probe *probe, const char *map);

/* The map of its operations in flight. False: it has none, or no backend works. */
bool probe_inflight_map(const struct probe *probe, struct inflight_map *ret_map);
/*
 * Removes what the probe has noted, since no program is left to see its end. Of `wait` the session
 * has done so in parts when its incident was closed, so there is hardly anything left.
 */
void probe_clear_maps(const struct probe *probe);

#endif
