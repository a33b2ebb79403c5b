/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes/maps.h"
#include "probes/tracefs.h"
#include "util/cleanup.h"
#include "util/file.h"
#include "util/text.h"

static const struct probe_program *find_program(const struct probe_backend *backend,
	const char *name)
{
	for (unsigned int i = 0; i < backend->programs_count; i++)
		if (strcmp(backend->programs[i].name, name) == 0)
			return &backend->programs[i];
	return NULL;
}

static const char *optional_path(const struct probe *probe, const char *program)
{
	return probe->ops->optional_path ? probe->ops->optional_path(program) : NULL;
}

/* Of a backend that does without its optional programs, only the others. */
static bool is_used(const struct probe *probe, const struct probe_backend *backend, const char *program)
{
	return !probe->partial[backend - probe->ops->backends][0] || !optional_path(probe, program);
}

static bool is_kprobe(const struct probe_program *p)
{
	return p->attach == PROBE_ATTACH_KPROBE || p->attach == PROBE_ATTACH_KRETPROBE;
}

static struct tracefs_event event_of(const struct probe *probe, const struct probe_program *p)
{
	return (struct tracefs_event){
		.function = p->target,
		.is_return = p->attach == PROBE_ATTACH_KRETPROBE,
		.generation = probe->generation,
	};
}

static int create_events(const struct probe *probe, const struct probe_backend *backend)
{
	for (unsigned int i = 0; i < backend->programs_count; i++) {
		const struct probe_program *p = &backend->programs[i];
		const struct tracefs_event event = event_of(probe, p);
		int r;

		if (!is_kprobe(p) || !is_used(probe, backend, p->name))
			continue;
		r = tracefs_create_event(&event);
		if (r < 0)
			return r;
	}
	return 0;
}

static void remove_events(const struct probe *probe, const struct probe_backend *backend)
{
	for (unsigned int i = 0; i < backend->programs_count; i++) {
		const struct probe_program *p = &backend->programs[i];
		const struct tracefs_event event = event_of(probe, p);

		if (is_kprobe(p))
			tracefs_remove_event(&event);
	}
}

static void close_object(struct probe *probe)
{
	if (probe->skeleton)
		probe->ops->destroy(probe->skeleton);
	probe->skeleton = NULL;
	probe->object = NULL;
	probe->attached_once = false;
}

static int open_object(struct probe *probe, const struct probe_backend *backend,
	const struct probe_settings *settings, const struct trace_maps *maps)
{
	struct bpf_program *program;
	int r;

	r = probe->ops->open(settings, backend, &probe->skeleton, &probe->object);
	if (r < 0)
		return r;
	r = trace_maps_lend(maps, probe->object);
	bpf_object__for_each_program(program, probe->object)
		bpf_program__set_autoload(program,
			find_program(backend, bpf_program__name(program)) &&
				is_used(probe, backend, bpf_program__name(program)));
	if (r == 0)
		r = bpf_object__load(probe->object);
	if (r < 0)
		close_object(probe);
	return r;
}

static struct bpf_link *attach_raw_tracepoint(const struct probe_program *p,
	struct bpf_program *program)
{
	const char *older = strchr(p->target, '|');
	struct bpf_link *link;
	char name[64];

	if (!older)
		return bpf_program__attach_raw_tracepoint(program, p->target);
	snprintf(name, sizeof(name), "%.*s", (int)(older - p->target), p->target);
	link = bpf_program__attach_raw_tracepoint(program, name);
	if (!link && errno == ENOENT)
		link = bpf_program__attach_raw_tracepoint(program, older + 1);
	return link;
}

static struct bpf_link *attach_program(const struct probe *probe, const struct probe_program *p,
	struct bpf_program *program)
{
	const struct tracefs_event event = event_of(probe, p);
	char name[TRACEFS_EVENT_SIZE], category[TRACEFS_EVENT_SIZE];
	const char *slash;

	switch (p->attach) {
	case PROBE_ATTACH_BTF:
		return bpf_program__attach_trace(program);
	case PROBE_ATTACH_RAW_TRACEPOINT:
		return attach_raw_tracepoint(p, program);
	case PROBE_ATTACH_KPROBE:
	case PROBE_ATTACH_KRETPROBE:
		tracefs_event_name(&event, name);
		return bpf_program__attach_tracepoint(program, TRACEFS_GROUP, name);
	case PROBE_ATTACH_TRACEPOINT:
		slash = strchr(p->target, '/');
		snprintf(category, sizeof(category), "%.*s", (int)(slash - p->target), p->target);
		return bpf_program__attach_tracepoint(program, category, slash + 1);
	case PROBE_ATTACH_NONE:
		break;
	}
	errno = EINVAL;
	return NULL;
}

static void destroy_links(struct probe *probe)
{
	while (probe->links_count > 0)
		bpf_link__destroy(probe->links[--probe->links_count]);
}

static int attach_backend(struct probe *probe, const struct probe_backend *backend)
{
	/* Also when it ends half-way: what was attached once may not be a second time. */
	probe->attached_once = true;
	for (unsigned int i = 0; i < backend->programs_count; i++) {
		const struct probe_program *p = &backend->programs[i];
		struct bpf_link *link;

		if (p->attach == PROBE_ATTACH_NONE || !is_used(probe, backend, p->name))
			continue;
		link = attach_program(probe, p,
			bpf_object__find_program_by_name(probe->object, p->name));
		if (!link) {
			int r = -errno;

			destroy_links(probe);
			return r;
		}
		probe->links[probe->links_count++] = link;
	}
	return 0;
}

int probe_attach(struct probe *probe)
{
	return probe->object ? attach_backend(probe, probe->backend) : -ENOENT;
}

unsigned int probe_take_links(struct probe *probe, struct bpf_link *ret_links[PROBE_PROGRAMS_MAX])
{
	unsigned int count = probe->links_count;

	memcpy(ret_links, probe->links, count * sizeof(probe->links[0]));
	probe->links_count = 0;
	return count;
}

/* What a person can do about an error of load or attach; the kernel's own text is in the debug log. */
static const char *hint_of_error(const struct probe_backend *backend, int error)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return "the kernel has no BTF (/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)";
	if ((error == -EPERM || error == -EACCES) && geteuid() != 0)
		return "root is needed";
	if (error == -EACCES)
		return "the verifier refused the program (`iostall doctor --verbose` shows why), or a "
		       "capability is missing";
	if (error == -EPERM)
		return "refused to root: a capability is missing (CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN), "
		       "or kernel lockdown or the kernel's configuration forbids it";
	if (backend->id == CONFIG_BACKEND_KPROBE && error == -ENOENT)
		return "the kernel has no kprobe events (CONFIG_KPROBE_EVENTS), or tracefs is not mounted";
	if (backend->id == CONFIG_BACKEND_TRACEPOINT && error == -ENOENT)
		return "the kernel has no such tracepoints (CONFIG_FTRACE_SYSCALLS for system calls), or "
		       "tracefs is not mounted";
	if (backend->id == CONFIG_BACKEND_FENTRY)
		return "the kernel has no BPF trampolines, or not for these functions";
	return "`iostall doctor --verbose` shows what the kernel says";
}

/* Only these are refused a second time (5.10); closing what was attached takes 0.1 s each time. */
static bool has_trampolines(const struct probe_backend *backend)
{
	for (unsigned int i = 0; i < backend->programs_count; i++)
		if (backend->programs[i].attach == PROBE_ATTACH_BTF)
			return true;
	return false;
}

/* Loads and attaches for real, twice, since nothing less tells whether it will work at night. */
static int try_programs(struct probe *probe, const struct probe_backend *backend,
	const struct probe_settings *settings, const struct trace_maps *maps, const char **ret_step)
{
	int r;

	*ret_step = "make kprobe events";
	r = create_events(probe, backend);
	if (r == 0) {
		*ret_step = "load";
		r = open_object(probe, backend, settings, maps);
	}
	if (r == 0) {
		*ret_step = "attach";
		r = attach_backend(probe, backend);
		destroy_links(probe);
	}
	if (r == 0 && has_trampolines(backend)) {
		*ret_step = "attach again";
		probe->load_before_attach_again = attach_backend(probe, backend) < 0;
		destroy_links(probe);
		if (probe->load_before_attach_again) {
			close_object(probe);
			r = open_object(probe, backend, settings, maps);
		}
	}
	if (r == 0 && !probe->load_before_attach_again)
		probe->attached_once = false;
	if (r < 0) {
		close_object(probe);
		remove_events(probe, backend);
	}
	return r;
}

static bool has_optional(const struct probe *probe, const struct probe_backend *backend)
{
	for (unsigned int i = 0; i < backend->programs_count; i++)
		if (optional_path(probe, backend->programs[i].name))
			return true;
	return false;
}

static int try_backend(struct probe *probe, const struct probe_backend *backend,
	const struct probe_settings *settings, const struct trace_maps *maps)
{
	ptrdiff_t index = backend - probe->ops->backends;
	const char *step;
	int r = try_programs(probe, backend, settings, maps, &step);

	if (r < 0 && has_optional(probe, backend)) {
		snprintf(probe->partial[index], PROBE_REASON_SIZE, "%s: %s: %s", backend->name, step,
			strerror(-r));
		r = try_programs(probe, backend, settings, maps, &step);
	}
	if (r < 0) {
		snprintf(probe->reasons[index], PROBE_REASON_SIZE, "%s: %s", step, strerror(-r));
		probe->hints[index] = hint_of_error(backend, r);
		probe->partial[index][0] = '\0';
	}
	return r;
}

/*
 * Whether a BPF program can be preempted; then the others that come by on its CPU are skipped: up to a
 * quarter of the fexit runs of 7.2 with 16 busy threads. "none voluntary full (lazy)", of kernels
 * with dynamic preemption; without the file nothing is known and nothing assumed.
 */
static bool programs_are_preempted(void)
{
	char modes[128];

	if (file_read_at(AT_FDCWD, "/sys/kernel/debug/sched/preempt", modes, sizeof(modes)) < 0)
		return false;
	return strstr(modes, "(full)") || strstr(modes, "(lazy)");
}

/* The backends as indices, best first. */
static void order_backends(const struct probe_ops *ops, unsigned int ret_order[PROBE_BACKENDS_MAX])
{
	bool preempted = programs_are_preempted();
	unsigned int count = 0;

	for (unsigned int i = 0; i < ops->backends_count; i++)
		if (!(preempted && ops->backends[i].loses_when_preempted))
			ret_order[count++] = i;
	for (unsigned int i = 0; i < ops->backends_count; i++)
		if (preempted && ops->backends[i].loses_when_preempted)
			ret_order[count++] = i;
}

static void probe_init(struct probe *probe, const struct probe_ops *ops,
	const struct probe_settings *settings)
{
	*probe = (struct probe){
		.ops = ops,
		.generation = settings->generation,
	};
}

/* A probe that has no backend of the kind asked for takes the best it has. */
static bool is_wanted(const struct probe_ops *ops, enum config_backend wanted, enum config_backend id)
{
	for (unsigned int i = 0; i < ops->backends_count; i++)
		if (ops->backends[i].id == wanted)
			return id == wanted;
	return true;
}

/* A cheaper one that was passed over: the record says why. */
static void explain_preference(struct probe *probe)
{
	for (unsigned int i = 0; &probe->ops->backends[i] < probe->backend; i++) {
		if (probe->tried[i])
			continue;
		text_copy(probe->reasons[i], PROBE_REASON_SIZE,
			"passed over: this kernel preempts BPF programs and then skips runs");
		probe->hints[i] = "trace.backend forces it";
	}
}

enum config_backend probe_wanted_backend(const struct probe_ops *ops, enum config_backend wanted)
{
	for (unsigned int i = 0; i < ops->backends_count; i++)
		if (ops->backends[i].id == wanted)
			return wanted;
	return CONFIG_BACKEND_AUTO;
}

int probe_load(struct probe *probe, const struct probe_ops *ops, enum config_backend wanted,
	const struct probe_settings *settings, const struct trace_maps *maps)
{
	unsigned int order[PROBE_BACKENDS_MAX];
	int r = -ENOENT;

	probe_init(probe, ops, settings);
	order_backends(ops, order);
	wanted = probe_wanted_backend(ops, wanted);
	for (unsigned int i = 0; i < ops->backends_count; i++) {
		const struct probe_backend *backend = &ops->backends[order[i]];

		if (!is_wanted(ops, wanted, backend->id))
			continue;
		probe->tried[order[i]] = true;
		r = try_backend(probe, backend, settings, maps);
		if (r < 0)
			continue;
		probe->backend = backend;
		if (wanted == CONFIG_BACKEND_AUTO)
			explain_preference(probe);
		return 0;
	}
	return r;
}

void probe_try_all(struct probe *probe, const struct probe_ops *ops,
	const struct probe_settings *settings, const struct trace_maps *maps)
{
	unsigned int order[PROBE_BACKENDS_MAX];

	probe_init(probe, ops, settings);
	order_backends(ops, order);
	for (unsigned int i = 0; i < ops->backends_count; i++) {
		const struct probe_backend *backend = &ops->backends[order[i]];

		probe->tried[order[i]] = true;
		if (try_backend(probe, backend, settings, maps) < 0)
			continue;
		close_object(probe);
		remove_events(probe, backend);
		if (!probe->backend)
			probe->backend = backend;
	}
}

void probe_unload(struct probe *probe)
{
	destroy_links(probe);
	close_object(probe);
	if (probe->backend)
		remove_events(probe, probe->backend);
	probe->backend = NULL;
}

int probe_prepare(struct probe *probe, const struct probe_settings *settings,
	const struct trace_maps *maps)
{
	int r;

	/* No object: the last load failed, and this one may not. */
	if (!probe->backend ||
		(probe->object && !(probe->load_before_attach_again && probe->attached_once)))
		return 0;
	close_object(probe);
	r = open_object(probe, probe->backend, settings, maps);
	/* libbpf had the kernel's whole BTF in memory, 6 MB, and memory is locked. */
	malloc_trim(0);
	return r;
}

const char *probe_misses_path(const struct probe *probe, const char *path)
{
	for (unsigned int i = 0; probe->backend && i < probe->backend->programs_count; i++) {
		const char *program = probe->backend->programs[i].name;
		const char *only = optional_path(probe, program);

		if (only && strcmp(only, path) == 0 && !is_used(probe, probe->backend, program))
			return probe->partial[probe->backend - probe->ops->backends];
	}
	return NULL;
}

int probe_program_fd(const struct probe *probe, const char *program)
{
	struct bpf_program *p = probe->object ?
		bpf_object__find_program_by_name(probe->object, program) : NULL;

	return p ? bpf_program__fd(p) : -ENOENT;
}

struct bpf_map *probe_map(const struct probe *probe, const char *map)
{
	return probe->object ? bpf_object__find_map_by_name(probe->object, map) : NULL;
}

uint64_t probe_skipped_runs(const struct probe *probe)
{
	uint64_t skipped = 0;

	for (unsigned int i = 0; probe->backend && i < probe->backend->programs_count; i++) {
		struct bpf_prog_info info = {};
		uint32_t size = sizeof(info);
		int fd = probe_program_fd(probe, probe->backend->programs[i].name);

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0)
			skipped += info.recursion_misses;
	}
	return skipped;
}

uint64_t probe_missed_hits(const struct probe *probe)
{
	uint64_t missed = 0;

	for (unsigned int i = 0; probe->backend && i < probe->backend->programs_count; i++) {
		const struct probe_program *p = &probe->backend->programs[i];
		const struct tracefs_event event = event_of(probe, p);

		if (is_kprobe(p))
			missed += tracefs_event_misses(&event);
	}
	return missed;
}
