/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/probe.h"

#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes/kernel_types.h"
#include "probes/programs.h"
#include "snapshot/inflight.h"
#include "util/error.h"
#include "util/memory.h"
#include "util/text.h"

#define STEP_ATTACH "cannot attach"

#define TRIES 3
static const struct timespec try_pause = { .tv_nsec = 100 * 1000 * 1000 };
static const struct timespec memory_pause = { .tv_nsec = 20 * 1000 * 1000 };

/* False: the backend needs the program. */
static bool lose_for_now(struct probe *probe, const struct probe_backend *backend,
	const struct probe_program *refused, int error)
{
	const struct probe_part *part = programs_part_of(probe, refused->name);

	if (part)
		probe->lost[backend - probe->ops->backends][part - probe->ops->parts] =
			(struct probe_loss){ STEP_ATTACH, error, true };
	return part;
}

int probe_attach(struct probe *probe)
{
	const struct probe_backend *backend = probe->backend;
	const struct probe_program *refused;
	int r;

	if (!probe->object)
		return -ENOENT;
	/* Else some programs are attached still, and they are counted without those. */
	if (probe->links_count == 0)
		programs_forget_passing_losses(probe, backend);
	r = programs_attach(probe, backend, &refused);
	/* Whoever clears up in tracefs, as `perf probe -d` does, has removed the events. */
	if (r == -ENOENT && probe_uses_kprobes(probe) &&
		programs_create_events(probe, backend) == 0)
		r = programs_attach(probe, backend, &refused);
	/* Of memory for each CPU the kernel has little at hand, and makes more at once. */
	if (r == -ENOMEM) {
		nanosleep(&memory_pause, NULL);
		r = programs_attach(probe, backend, &refused);
	}
	/* The module of these programs has gone, or there is no room: next time there may be. */
	while (r < 0 && lose_for_now(probe, backend, refused, r))
		r = programs_attach(probe, backend, &refused);
	if (r < 0)
		programs_forget_passing_losses(probe, backend);
	return r;
}

bool probe_detach_next(struct probe *probe)
{
	if (probe->links_count == 0)
		return false;
	bpf_link__destroy(probe->links[--probe->links_count]);
	return true;
}

/* What to do about an error of load or attach. The kernel's own text is in the debug log. */
static const char *hint_of_error(const struct probe_backend *backend, int error)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return "boot a kernel with BTF (/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)";
	if ((error == -EPERM || error == -EACCES) && geteuid() != 0)
		return "run it as root";
	if (error == -EACCES)
		return "the verifier refused the program, or a capability is missing; "
		       "`iostall doctor --verbose` shows what the kernel says";
	if (error == -EPERM)
		return "the kernel refuses this even to root: check the capabilities CAP_BPF, "
		       "CAP_PERFMON and CAP_SYS_ADMIN, kernel lockdown and the kernel's configuration";
	if (backend->id == CONFIG_BACKEND_KPROBE && error == -ENOENT)
		return "mount tracefs, or boot a kernel with kprobe events (CONFIG_KPROBE_EVENTS)";
	if (backend->id == CONFIG_BACKEND_TRACEPOINT && error == -ENOENT)
		return "mount tracefs, or boot a kernel with these tracepoints (CONFIG_FTRACE_SYSCALLS "
		       "for system calls)";
	if (backend->id == CONFIG_BACKEND_FENTRY)
		return "this kernel has no BPF trampolines for these functions; leave trace.backend at auto";
	return "`iostall doctor --verbose` shows what the kernel says";
}

/* Only these are refused a second time (5.10). Trying it costs 0.1 s, since closing is slow. */
static bool has_trampolines(const struct probe_backend *backend)
{
	for (unsigned int i = 0; i < backend->programs_count; i++)
		if (backend->programs[i].attach == PROBE_ATTACH_BTF)
			return true;
	return false;
}

static int try_once(struct probe *probe, const struct probe_backend *backend,
	const struct probe_settings *settings, const struct trace_maps *maps, const char **ret_step)
{
	const struct probe_program *refused;
	int r;

	*ret_step = "cannot create kprobe events";
	r = programs_create_events(probe, backend);
	if (r == 0) {
		*ret_step = "cannot load";
		r = programs_open(probe, backend, settings, maps);
	}
	if (r == 0) {
		*ret_step = STEP_ATTACH;
		r = programs_attach(probe, backend, &refused);
		programs_detach(probe);
	}
	return r;
}

/* Loads, attaches and attaches again: nothing less proves that the next arming will work. */
static int try_programs(struct probe *probe, const struct probe_backend *backend,
	const struct probe_settings *settings, const struct trace_maps *maps, const char **ret_step)
{
	const struct probe_program *refused;
	int r = try_once(probe, backend, settings, maps, ret_step);

	if (r == 0 && has_trampolines(backend)) {
		*ret_step = "cannot attach a second time";
		probe->load_before_attach_again = programs_attach(probe, backend, &refused) < 0;
		programs_detach(probe);
		if (probe->load_before_attach_again) {
			programs_close(probe);
			r = programs_open(probe, backend, settings, maps);
		}
	}
	if (r == 0 && !probe->load_before_attach_again)
		probe->attached_once = false;
	if (r < 0) {
		programs_close(probe);
		programs_remove_events(probe, backend);
	}
	return r;
}

/* The programs of these parts would load, and never say anything. */
static void lose_parts_without_types(struct probe *probe, const struct probe_backend *backend,
	const struct kernel_types *types)
{
	struct probe_loss *lost = probe->lost[backend - probe->ops->backends];

	for (unsigned int i = 0; i < probe->ops->parts_count; i++) {
		const struct probe_part *part = &probe->ops->parts[i];

		if (part->member && !kernel_types_have_member(types, part->member))
			lost[i] = (struct probe_loss){ .step = part->member };
	}
}

/*
 * Tries each part of a backend that was refused without all other programs, since libbpf does not
 * say which program it was. Returns how many parts are lost, or an error that may pass.
 */
static int find_losses(struct probe *probe, const struct probe_backend *backend,
	const struct probe_settings *settings, const struct trace_maps *maps)
{
	struct probe_loss *lost = probe->lost[backend - probe->ops->backends];
	int count = 0;

	for (unsigned int i = 0; i < probe->ops->parts_count; i++) {
		const char *step;
		int r;

		if (lost[i].step)
			continue;
		probe->alone = &probe->ops->parts[i];
		r = try_once(probe, backend, settings, maps, &step);
		programs_close(probe);
		programs_remove_events(probe, backend);
		probe->alone = NULL;
		if (error_is_transient(r))
			return r;
		if (r == 0)
			continue;
		lost[i] = (struct probe_loss){ .step = step, .error = r };
		count++;
	}
	return count;
}

/*
 * Whether programs of this backend send events from where they must not sleep. Programs of fentry
 * run like the function that they are attached to. A probe without operations sends no events.
 */
static bool sends_where_sleeping_hangs(const struct probe *probe,
	const struct probe_backend *backend)
{
	return (probe->ops->resolve_program || probe->ops->needs_wait) &&
		backend->id != CONFIG_BACKEND_FENTRY;
}

/* Whether it learns from them in which system call a thread is. `block` does without. */
static bool reads_registers(const struct probe *probe)
{
	return probe->ops->task_scan_program || probe->ops->needs_wait;
}

static int try_backend(struct probe *probe, const struct probe_backend *backend,
	const struct probe_settings *settings, const struct trace_maps *maps)
{
	ptrdiff_t index = backend - probe->ops->backends;
	const char *step;
	int r;

	if (settings->preemption.ring_sleeps && sends_where_sleeping_hangs(probe, backend)) {
		text_copy(probe->reasons[index], PROBE_REASON_SIZE,
			"refused: its events could hang this real-time kernel (CVE-2024-50138)");
		probe->hints[index] = "boot a kernel that has the fix, which 6.12 and later have";
		return -EOPNOTSUPP;
	}
	if (settings->registers_error == -ENODATA && reads_registers(probe)) {
		text_copy(probe->reasons[index], PROBE_REASON_SIZE,
			"refused: where this kernel keeps a program's registers was not found");
		probe->hints[index] = "boot a kernel with stacks of 16 to 128 KB";
		return -EOPNOTSUPP;
	}
	lose_parts_without_types(probe, backend, settings->types);
	step = "cannot load";
	r = reads_registers(probe) ? settings->registers_error : 0;
	if (r == 0)
		r = try_programs(probe, backend, settings, maps, &step);
	if (r < 0 && !error_is_transient(r)) {
		int losses = find_losses(probe, backend, settings, maps);

		if (losses < 0)
			r = losses;
		else if (losses > 0)
			r = try_programs(probe, backend, settings, maps, &step);
	}
	if (r < 0) {
		snprintf(probe->reasons[index], PROBE_REASON_SIZE, "%s: %s", step, strerror(-r));
		probe->hints[index] = hint_of_error(backend, r);
		memset(probe->lost[index], 0, sizeof(probe->lost[index]));
	}
	return r;
}

/* A lack of memory or descriptors may be over soon, and a lesser backend would stay for good. */
static int try_backend_again(struct probe *probe, const struct probe_backend *backend,
	const struct probe_settings *settings, const struct trace_maps *maps)
{
	ptrdiff_t index = backend - probe->ops->backends;
	int r = try_backend(probe, backend, settings, maps);

	for (unsigned int i = 1; error_is_transient(r) && i < TRIES; i++) {
		nanosleep(&try_pause, NULL);
		probe->reasons[index][0] = '\0';
		r = try_backend(probe, backend, settings, maps);
	}
	probe->failed_by_chance |= error_is_transient(r);
	return r;
}

/* The indices of the backends, best first. */
static void order_backends(const struct probe_ops *ops, bool skips_runs,
	unsigned int ret_order[PROBE_BACKENDS_MAX])
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < ops->backends_count; i++)
		if (!(skips_runs && ops->backends[i].loses_when_preempted))
			ret_order[count++] = i;
	for (unsigned int i = 0; i < ops->backends_count; i++)
		if (skips_runs && ops->backends[i].loses_when_preempted)
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

/* A probe without a backend of the wanted kind may use any of its backends. */
static bool is_wanted(const struct probe_ops *ops, enum config_backend wanted,
	enum config_backend id)
{
	for (unsigned int i = 0; i < ops->backends_count; i++)
		if (ops->backends[i].id == wanted)
			return id == wanted;
	return true;
}

/* The record says why a cheaper backend was not chosen. */
static void explain_preference(struct probe *probe)
{
	for (unsigned int i = 0; &probe->ops->backends[i] < probe->backend; i++) {
		if (probe->tried[i])
			continue;
		text_copy(probe->reasons[i], PROBE_REASON_SIZE,
			"not chosen: this kernel preempts BPF programs and then skips runs");
		probe->hints[i] = "set trace.backend to use it nevertheless";
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
	int r, error = -ENOENT;

	probe_init(probe, ops, settings);
	order_backends(ops, settings->preemption.skips_runs, order);
	wanted = probe_wanted_backend(ops, wanted);
	for (unsigned int i = 0; i < ops->backends_count; i++) {
		const struct probe_backend *backend = &ops->backends[order[i]];

		if (!is_wanted(ops, wanted, backend->id))
			continue;
		probe->tried[order[i]] = true;
		r = try_backend_again(probe, backend, settings, maps);
		if (r < 0) {
			error = error_is_transient(error) ? error : r;
			continue;
		}
		probe->backend = backend;
		if (wanted == CONFIG_BACKEND_AUTO)
			explain_preference(probe);
		return 0;
	}
	return error;
}

int probe_load_like(struct probe *probe, const struct probe *like,
	const struct probe_settings *settings, const struct trace_maps *maps)
{
	int r = 0;

	*probe = *like;
	probe->skeleton = NULL;
	probe->object = NULL;
	probe->links_count = 0;
	probe->attached_once = false;
	probe->generation = settings->generation;
	for (unsigned int i = 0; i < TRIES; i++) {
		if (i > 0)
			nanosleep(&try_pause, NULL);
		r = programs_create_events(probe, like->backend);
		if (r == 0)
			r = programs_open(probe, like->backend, settings, maps);
		if (r == 0 || !error_is_transient(r))
			break;
		programs_remove_events(probe, like->backend);
	}
	if (r < 0)
		probe_unload(probe);
	return r;
}

void probe_try_all(struct probe *probe, const struct probe_ops *ops,
	const struct probe_settings *settings, const struct trace_maps *maps)
{
	unsigned int order[PROBE_BACKENDS_MAX];

	probe_init(probe, ops, settings);
	order_backends(ops, settings->preemption.skips_runs, order);
	for (unsigned int i = 0; i < ops->backends_count; i++) {
		const struct probe_backend *backend = &ops->backends[order[i]];

		probe->tried[order[i]] = true;
		if (try_backend(probe, backend, settings, maps) < 0)
			continue;
		programs_close(probe);
		programs_remove_events(probe, backend);
		if (!probe->backend)
			probe->backend = backend;
	}
}

void probe_unload(struct probe *probe)
{
	programs_detach(probe);
	programs_close(probe);
	if (probe->backend)
		programs_remove_events(probe, probe->backend);
	probe->backend = NULL;
}

bool probe_needs_prepare(const struct probe *probe)
{
	/* Without an object the last load failed; the next may succeed. */
	return probe->backend &&
		(!probe->object || (probe->load_before_attach_again && probe->attached_once));
}

int probe_prepare(struct probe *probe, const struct probe_settings *settings,
	const struct trace_maps *maps)
{
	int r;

	if (!probe_needs_prepare(probe))
		return 0;
	programs_detach(probe);
	programs_close(probe);
	r = programs_open(probe, probe->backend, settings, maps);
	/* libbpf needs 1 MB for it, and memory is locked. */
	malloc_trim(MEMORY_HEAP_RESERVE_BYTES);
	return r;
}

const struct probe_loss *probe_find_loss(const struct probe *probe, unsigned int part)
{
	const struct probe_loss *loss;

	if (!probe->backend)
		return NULL;
	loss = &probe->lost[probe->backend - probe->ops->backends][part];
	return loss->step ? loss : NULL;
}

void probe_explain_loss(const struct probe_loss *loss, char *ret_text, size_t size)
{
	if (loss->error)
		snprintf(ret_text, size, "%s: %s", loss->step, strerror(-loss->error));
	else
		snprintf(ret_text, size, "the kernel's BTF has no %s", loss->step);
}

int probe_program_fd(const struct probe *probe, const char *program)
{
	struct bpf_program *p =
		probe->object ? bpf_object__find_program_by_name(probe->object, program) : NULL;

	return p ? bpf_program__fd(p) : -ENOENT;
}

struct bpf_map *probe_map(const struct probe *probe, const char *map)
{
	return probe->object ? bpf_object__find_map_by_name(probe->object, map) : NULL;
}

bool probe_inflight_map(const struct probe *probe, struct inflight_map *ret_map)
{
	const struct bpf_map *map = probe->backend && probe->ops->inflight_map
		? probe_map(probe, probe->ops->inflight_map)
		: NULL;

	if (!map)
		return false;
	*ret_map = (struct inflight_map){
		.fd = bpf_map__fd(map),
		.key_size = bpf_map__key_size(map),
		.value_size = bpf_map__value_size(map),
	};
	return true;
}

/* What failed in an earlier incident is no failure of the next one. */
static void clear_failures(const struct probe *probe)
{
	const struct bpf_map *failures = probe_map(probe, "failures");
	uint64_t key;

	while (failures && bpf_map_get_next_key(bpf_map__fd(failures), NULL, &key) == 0)
		if (bpf_map_delete_elem(bpf_map__fd(failures), &key) < 0)
			return;
}

void probe_clear_maps(const struct probe *probe)
{
	struct inflight_map map;

	if (probe_inflight_map(probe, &map))
		inflight_clear(&map, UINT64_MAX);
	clear_failures(probe);
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

bool probe_uses_kprobes(const struct probe *probe)
{
	for (unsigned int i = 0; probe->backend && i < probe->backend->programs_count; i++)
		if (programs_is_kprobe(&probe->backend->programs[i]))
			return true;
	return false;
}
