/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A probe: its BPF object, the backends it can be attached by, and which of them this kernel takes.
 * Called by the session (load, attach, detach, walk) and by doctor (load).
 * Never decides when to attach, never writes a record.
 */
#ifndef IOSTALL_PROBES_PROBE_H
#define IOSTALL_PROBES_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "iostall/event.h"
#include "record/record.h"

struct bpf_link;
struct bpf_map;
struct bpf_object;
struct probe;
struct trace_maps;

#define PROBE_PROGRAMS_MAX 24
#define PROBE_BACKENDS_MAX 4
#define PROBE_REASON_SIZE 96

enum probe_attach {
	PROBE_ATTACH_NONE,	     /* run on demand only */
	PROBE_ATTACH_BTF,	     /* fentry, fexit */
	PROBE_ATTACH_KPROBE,	     /* through an event in tracefs */
	PROBE_ATTACH_KRETPROBE,	     /* the same, with instances for every thread that may block */
	PROBE_ATTACH_TRACEPOINT,     /* target "category/name" */
	PROBE_ATTACH_RAW_TRACEPOINT, /* target "name|older name": the first that there is */
};

struct probe_program {
	const char *name; /* of the BPF program */
	enum probe_attach attach;
	const char *target;
};

struct probe_backend {
	enum config_backend id;
	const char *name;
	const struct probe_program *programs;
	unsigned int programs_count;
	/* Runs are skipped where the kernel preempts BPF programs: kprobes run with preemption off. */
	bool loses_when_preempted;
};

/* What is fixed when the object is loaded. */
struct probe_settings {
	uint64_t min_stall_ns;
	uint64_t inflight_max;
	uint32_t generation; /* of kprobe events: differs between two loaded sets */
	uint32_t filter_cgroups_count;
	uint32_t inflight_mask; /* which bits of a thread id are its slot in trace_maps.inflight */
	bool filter_pid;
	bool filter_dev;
	/* Of the probes before this one in probes.def; CONFIG_BACKEND_AUTO: not loaded. */
	enum config_backend loaded[CONFIG_PROBE_COUNT];
};

/* What a line needs beside its own members to get its names. */
struct probe_line_names {
	bool path_in_fs; /* the path is "..." and one from the root of the file system */
	uint32_t fs_major;
	uint32_t fs_minor;
	char cgroup_names[EVENT_CGROUP_NAMES][EVENT_CGROUP_NAME_SIZE]; /* own, parent's */
};

/* By which a probe writes lines of its own: `begin` gives an empty one, `write` ends it. */
struct probe_report {
	uint64_t now_ns;
	bool final; /* nothing is attached any more, `close` comes next; else once a second */
	void *userdata;
	struct record *(*begin)(void *userdata, enum record_type type);
	void (*write)(void *userdata, const struct probe_line_names *names);
};

/* One line of probes.def, one of these. */
struct probe_ops {
	const char *name;
	const char *const *paths; /* the I/O paths it sees, for `coverage`; ends with NULL */
	const struct probe_backend *backends; /* cheapest first */
	unsigned int backends_count;
	/*
	 * Operations in flight: in a map of this name, whose values begin with a struct event_inflight;
	 * NULL: in that of all pairing probes, trace_maps.inflight.
	 */
	const char *inflight_map;
	/* Describes one of them, see bpf/pairing.bpf.h; NULL: the probe has none. */
	const char *resolve_program;
	/* Notes what a thread already sleeps in, see bpf/wait.bpf.c; NULL: the probe cannot. */
	const char *seed_program;
	/* No thread waits for an operation: what the submitter does says nothing about it. */
	bool operations_are_requests;
	/*
	 * The path that only this program and its like see, whose refusal by a kernel costs no more than
	 * that; NULL: the backend cannot do without it. Without the function there are none such.
	 */
	const char *(*optional_path)(const char *program);
	/* What of its paths a backend does not see, for `coverage`; may be NULL and may say NULL. */
	const char *(*describe_limit)(const struct probe_backend *backend);
	/* Opens the object with its settings; ret_skeleton goes to destroy. */
	int (*open)(const struct probe_settings *settings, const struct probe_backend *backend,
		void **ret_skeleton, struct bpf_object **ret_object);
	void (*destroy)(void *skeleton);
	/* Before each attach: what the maps hold is of no incident any more. May be NULL. */
	void (*reset)(struct probe *probe);
	/* Lines about what went by, while tracing and at its end. May be NULL. */
	void (*summarize)(struct probe *probe, const struct probe_report *report);
};

struct probe {
	const struct probe_ops *ops;
	const struct probe_backend *backend; /* the one in use; NULL: none works */
	void *skeleton;
	struct bpf_object *object;
	struct bpf_link *links[PROBE_PROGRAMS_MAX];
	unsigned int links_count;
	/* A loaded fentry program can be attached only once on 5.10 (ENOENT): load it anew. */
	bool load_before_attach_again;
	bool attached_once;
	uint32_t generation;
	/* Why backends[i] is used without its optional programs; empty: it has them all. */
	char partial[PROBE_BACKENDS_MAX][PROBE_REASON_SIZE];
	/* What went wrong with backends[i]; empty for the one in use and for those not tried. */
	char reasons[PROBE_BACKENDS_MAX][PROBE_REASON_SIZE];
	/* What a person can do about it, for doctor. */
	const char *hints[PROBE_BACKENDS_MAX];
	bool tried[PROBE_BACKENDS_MAX];
};

const struct probe_ops *probe_ops_get(enum config_probe_name name);

/* What trace.backend means for this probe: what it does not have leaves it the choice (AUTO). */
enum config_backend probe_wanted_backend(const struct probe_ops *ops, enum config_backend wanted);

/*
 * Tries the backends, best first (only those `wanted`), by really loading and attaching. Best
 * is the cheapest, but what loses nothing comes first where programs are preempted.
 * 0, or the error of the last one tried; the reasons are in the probe.
 */
int probe_load(struct probe *probe, const struct probe_ops *ops, enum config_backend wanted,
	const struct probe_settings *settings, const struct trace_maps *maps);

/* Tries every backend and leaves none loaded; for doctor. */
void probe_try_all(struct probe *probe, const struct probe_ops *ops,
	const struct probe_settings *settings, const struct trace_maps *maps);
void probe_unload(struct probe *probe);

/* Makes a loaded probe attachable again where the kernel needs a new load; a no-op elsewhere. */
int probe_prepare(struct probe *probe, const struct probe_settings *settings,
	const struct trace_maps *maps);

/* All programs of the backend or none. */
int probe_attach(struct probe *probe);

/* Moves the links out, to be destroyed elsewhere: that can take 0.1 s. Returns their number. */
unsigned int probe_take_links(struct probe *probe, struct bpf_link *ret_links[PROBE_PROGRAMS_MAX]);

/* Runs that the kernel skipped, since load; 0 where the kernel does not count (before 5.12). */
uint64_t probe_skipped_runs(const struct probe *probe);

/* Hits that kprobes and kretprobes missed, since load. */
uint64_t probe_missed_hits(const struct probe *probe);

/* Why the backend in use does not see a path that the probe names; NULL when it does. */
const char *probe_misses_path(const struct probe *probe, const char *path);

int probe_program_fd(const struct probe *probe, const char *program);

/* A map of the loaded object; NULL when there is none of the name. */
struct bpf_map *probe_map(const struct probe *probe, const char *map);

#endif
