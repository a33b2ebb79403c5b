/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/set.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes/filter.h"
#include "probes/kernel_types.h"
#include "probes/registers.h"
#include "probes/tracefs.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"
#include "util/log.h"
#include "util/parse.h"
#include "watch/loadavg.h"

/* The verifier's log may have 100,000 lines, of which the last ones tell why. */
#define LIBBPF_LINES_MAX 60

/* Those of trace.inflight_max and trace.ring_bytes, src/config/table.c. */
#define INFLIGHT_MAX (1 << 20)
#define RING_MAX (64 << 20)

/* include/linux/sched.h up to 6.0. Later kernels may use the bit for something else. */
#define PF_FROZEN 0x00010000

/* The event of a return takes 0.2 to 0.3 KB, and more with a long path. */
#define EVENT_ROOM 384

__attribute__((format(printf, 2, 0))) static int print_libbpf(enum libbpf_print_level level,
	const char *format, va_list ap)
{
	_cleanup_free_ char *text = NULL;
	char *rest, *line;
	size_t lines = 0;

	if (level == LIBBPF_DEBUG || vasprintf(&text, format, ap) < 0)
		return 0;
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	rest = text;
	while ((line = strsep(&rest, "\n")))
		if (*line && lines-- <= LIBBPF_LINES_MAX)
			log_debug("%s", line);
	return 0;
}

void probe_set_redirect_libbpf_log(void)
{
	libbpf_set_print(print_libbpf);
}

/* A lack of memory is an error: without the types nothing loads, and that would look final. */
static int read_kernel_types(struct kernel_types **types)
{
	struct kernel_types_user users[CONFIG_PROBE_COUNT + 1];
	int r;

	if (*types)
		return 0;
	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++)
		users[i].elf = probe_ops_get(i)->elf(&users[i].size);
	users[CONFIG_PROBE_COUNT].elf = registers_elf(&users[CONFIG_PROBE_COUNT].size);
	r = kernel_types_new(users, CONFIG_PROBE_COUNT + 1, types);
	if (r < 0)
		log_warning("the kernel's type information (BTF) cannot be read: %s", strerror(-r));
	return error_is_transient(r) ? r : 0;
}

/* 0: unknown. */
static uint64_t count_threads(void)
{
	struct loadavg loadavg;

	return loadavg_read(AT_FDCWD, "/proc/loadavg", &loadavg) == 0 ? loadavg.threads : 0;
}

uint32_t probe_set_parse_cpus(const char *text)
{
	const char *end = text + strcspn(text, "\n"), *last = end;
	struct cursor c;
	uint64_t cpu;

	while (last > text && last[-1] != ',' && last[-1] != '-')
		last--;
	c = (struct cursor){ last, end };
	return cursor_u64(&c, &cpu) == 0 && c.p == end && cpu < UINT32_MAX ? (uint32_t)cpu + 1 : 0;
}

/* The highest number of a CPU that is on-line, plus 1; or, unknown, of one that may come to be. */
static uint32_t count_cpus(void)
{
	char text[1024];
	ssize_t n = file_read_at(AT_FDCWD, "/sys/devices/system/cpu/online", text, sizeof(text));
	uint32_t cpus = n > 0 ? probe_set_parse_cpus(text) : 0;
	int possible = libbpf_num_possible_cpus();

	if (cpus == 0)
		cpus = possible > 0 ? (uint32_t)possible : 1;
	return cpus;
}

/*
 * How many operations can be in flight on this host: two for each of its threads, since more of
 * them may come, or what is configured.
 */
static uint64_t inflight_max(const struct config *config, uint64_t threads)
{
	uint64_t max = config->trace.inflight_max;

	if (2 * threads > max)
		max = 2 * threads;
	return max < INFLIGHT_MAX ? max : INFLIGHT_MAX;
}

/*
 * All threads may return at the same time, and then keep the daemon from the CPU: their events have
 * room, or what is configured.
 */
static uint64_t ring_bytes(const struct config *config, uint64_t threads)
{
	uint64_t bytes = config->trace.ring_bytes;

	while (bytes < RING_MAX && bytes < threads * EVENT_ROOM)
		bytes *= 2;
	return bytes;
}

bool probe_set_is_outgrown(const struct probe_set *set, uint32_t cpus)
{
	const struct probe_settings *settings = &set->settings;
	const uint64_t threads = count_threads();

	return cpus > settings->common.cpus ||
		(settings->ring_bytes < RING_MAX && threads * EVENT_ROOM > settings->ring_bytes) ||
		(settings->inflight_max < INFLIGHT_MAX && threads > settings->inflight_max / 4 * 3);
}

/*
 * Whether each probe of the set can be loaded as it is in the other, into the same maps, which have
 * room for as many threads.
 */
static bool is_alike(const struct probe_set *set, const struct probe_set *like)
{
	bool any = false;

	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe *probe = &like->probes[i];

		if (!set->enabled[i])
			continue;
		if (!like->enabled[i] || !probe->ops || probe->failed_by_chance)
			return false;
		any |= probe->backend != NULL;
	}
	return any && set->backend == like->backend &&
		set->settings.pairing == like->settings.pairing &&
		set->settings.offcpu_min_ns == like->settings.offcpu_min_ns &&
		set->settings.offcpu_wakers == like->settings.offcpu_wakers &&
		set->ring_bytes == like->ring_bytes && set->inflight_max == like->inflight_max &&
		set->settings.common.cpus == like->settings.common.cpus &&
		set->settings.ring_bytes <= like->settings.ring_bytes &&
		set->settings.inflight_max <= like->settings.inflight_max;
}

static int make_maps(struct probe_set *set, const struct trace_maps *shared)
{
	const struct probe_settings *settings = &set->settings;
	const struct trace_maps_sizes sizes = {
		.ring_bytes = settings->ring_bytes,
		.inflight_max = settings->inflight_max,
		.filter_pids = settings->common.filter_pid ? EVENT_FILTER_PIDS_MAX : 1,
		.filter_devs = settings->common.filter_dev ? EVENT_FILTER_DEVS_MAX : 1,
		.vfs_calls = settings->pairing == CONFIG_PAIRING_ENTRY ? settings->inflight_max : 1,
		.offcpu_wakers = settings->offcpu_wakers ? EVENT_OFFCPU_STACKS_MAX : 1,
		.cpus = settings->common.cpus,
	};

	return trace_maps_new(&sizes, shared, &set->maps);
}

/*
 * The flag of a frozen thread. The commit that took it away made a function of what had been
 * inline, frozen(). Its variable freezer_active is not in /proc/kallsyms of each kernel.
 */
static uint32_t frozen_flag(const struct kernel_types *types)
{
	uint64_t address;

	return kernel_types_find_address(types, "frozen", &address) == -ENOENT ? PF_FROZEN : 0;
}

/* `like` becomes NULL where the set has to be loaded by trying. */
static int set_begin(struct probe_set *set, const struct config *config, const char *sysfs,
	uint32_t generation, struct kernel_types **types, const struct probe_set **like)
{
	const uint64_t threads = count_threads();
	int r;

	*set = (struct probe_set){ .maps = TRACE_MAPS_NONE };
	r = read_kernel_types(types);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		set->enabled[i] = config->probes[i].enabled;
	set->backend = config->trace.backend;
	set->ring_bytes = config->trace.ring_bytes;
	set->inflight_max = config->trace.inflight_max;
	set->settings = (struct probe_settings){
		.common.min_stall_ns = config->trace.min_stall_ns,
		.common.self_pid = (uint32_t)getpid(),
		.common.cpus = count_cpus(),
		.common.frozen_flag = frozen_flag(*types),
		.common.page_shift = (uint8_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE)),
		.pairing = config->probes[CONFIG_PROBE_vfs].pairing,
		.offcpu_min_ns = config->probes[CONFIG_PROBE_offcpu].min_ns,
		.offcpu_wakers = config->probes[CONFIG_PROBE_offcpu].wakers,
		.ring_bytes = ring_bytes(config, threads),
		.inflight_max = inflight_max(config, threads),
		.generation = generation,
		.types = *types,
	};
	preemption_read(*types, &set->settings.preemption);
	r = registers_find(*types, &set->settings.common.registers_offset);
	if (error_is_transient(r))
		return r;
	set->settings.registers_error = r;
	r = tracefs_mount();
	if (r < 0)
		log_info(
			"cannot mount tracefs at /sys/kernel/tracing: %s; kprobes and tracepoints need it",
			strerror(-r));
	r = tracefs_clear_stale(generation);
	if (r > 0)
		log_info("removed %d tracefs events of an iostall that has ended", r);
	filter_settings(config, &set->settings);
	if (*like && !is_alike(set, *like))
		*like = NULL;
	if (*like) {
		set->settings.ring_bytes = (*like)->settings.ring_bytes;
		set->settings.inflight_max = (*like)->settings.inflight_max;
	}
	r = make_maps(set, *like ? &(*like)->maps : NULL);
	if (r < 0)
		return r;
	return filter_fill(&set->maps, config, sysfs, NULL);
}

static void log_without_backend(const struct probe *probe)
{
	log_warning(
		"probe %s: no backend works on this host, so it is not armed; `iostall doctor` explains why",
		probe->ops->name);
}

static void log_losses(const struct probe *probe)
{
	char why[PROBE_REASON_SIZE];

	for (unsigned int i = 0; i < probe->ops->parts_count; i++) {
		const struct probe_loss *loss = probe_find_loss(probe, i);

		if (!loss)
			continue;
		probe_explain_loss(loss, why, sizeof(why));
		log_info("probe %s: %s (%s)", probe->ops->name, probe->ops->parts[i].costs, why);
	}
}

static int load_like(struct probe_set *set, const struct probe_set *like)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		int r;

		if (!set->enabled[i])
			continue;
		if (!like->probes[i].backend) {
			set->probes[i] = like->probes[i];
			log_without_backend(&set->probes[i]);
			continue;
		}
		r = probe_load_like(&set->probes[i], &like->probes[i], &set->settings, &set->maps);
		if (r < 0) {
			log_warning("probe %s: cannot be loaded again: %s",
				like->probes[i].ops->name, strerror(-r));
			return r;
		}
		set->settings.loaded[i] = set->probes[i].backend;
	}
	return 0;
}

/* 0 when at least one probe works. */
static int load_by_trying(struct probe_set *set, const struct config *config)
{
	bool any = false;
	int error = -ENOENT, r;

	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++) {
		struct probe *probe = &set->probes[i];

		if (!set->enabled[i])
			continue;
		r = probe_load(probe, probe_ops_choose(i, &set->settings), config->trace.backend,
			&set->settings, &set->maps);
		for (unsigned int b = 0; b < probe->ops->backends_count; b++)
			if (probe->reasons[b][0])
				log_info("probe %s: no %s backend: %s; %s", probe->ops->name,
					record_backend_text(probe->ops->backends[b].name),
					probe->reasons[b], probe->hints[b]);
		if (r < 0) {
			log_without_backend(probe);
			error = error_is_transient(error) ? error : r;
			continue;
		}
		log_info("probe %s: %s backend%s", probe->ops->name,
			record_backend_text(probe->backend->name),
			probe->ops->pairing == RECORD_PAIRING_entry ? ", pairing entry" : "");
		log_losses(probe);
		set->settings.loaded[i] = probe->backend;
		any = true;
	}
	/* What was noted while the backends were tried. */
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		probe_clear_maps(&set->probes[i]);
	return any ? 0 : error;
}

static uint64_t count_kernel_bytes(const struct probe_set *set)
{
	uint64_t bytes = trace_maps_bytes(&set->maps);

	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		struct bpf_object *object = set->probes[i].object;
		struct bpf_program *program;
		struct bpf_map *map;

		if (!object)
			continue;
		bpf_object__for_each_map(map, object) if (!trace_maps_have(bpf_map__name(map)))
			bytes += trace_fd_bytes(bpf_map__fd(map));
		bpf_object__for_each_program(program, object) bytes +=
			trace_fd_bytes(bpf_program__fd(program));
	}
	return bytes;
}

int probe_set_load(struct probe_set *set, const struct config *config, const char *sysfs,
	uint32_t generation, struct kernel_types **types, const struct probe_set *like)
{
	int r = set_begin(set, config, sysfs, generation, types, &like);

	if (r == 0)
		r = like ? load_like(set, like) : load_by_trying(set, config);
	if (r < 0)
		probe_set_unload(set);
	else
		set->kernel_bytes = count_kernel_bytes(set);
	return r;
}

int probe_set_remember(const struct probe_set *set, struct probe_set *ret_copy)
{
	*ret_copy = *set;
	return trace_maps_share(&set->maps, &ret_copy->maps);
}

void probe_set_forget(struct probe_set *copy)
{
	trace_maps_close(&copy->maps);
}

/* Loading all probes takes half a minute on an emulated CPU. */
#define TRY_LIMIT_NS (600 * NSEC_PER_SEC)

static void try_in_child(struct probe_set *set, enum config_probe_name i, struct probe *ret_found)
{
	probe_try_all(&set->probes[i], probe_ops_choose(i, &set->settings), &set->settings,
		&set->maps);
	*ret_found = set->probes[i];
	/* What stands in the buffers of stdio is the parent's to write. */
	_exit(0);
}

/* Whether the child has ended well. One that hangs in the kernel is left behind. */
static bool wait_for_child(pid_t pid, uint64_t deadline_ns)
{
	const struct timespec pause = { .tv_nsec = 5 * NSEC_PER_MSEC };
	int status = -1;
	pid_t r;

	while ((r = waitpid(pid, &status, WNOHANG)) == 0 && clock_mono_ns() < deadline_ns)
		nanosleep(&pause, NULL);
	if (r == 0) {
		log_warning("a check of a probe does not end; ignoring it");
		kill(pid, SIGKILL);
	}
	return r == pid && status == 0;
}

/*
 * A process for each probe: the verifier takes a CPU for 2 s in all, and detaching waits in the
 * kernel. What a child finds points to constants only, which are where they are here. Of one that
 * cannot be started, or dies, nothing has been tried.
 */
static void try_in_children(struct probe_set *set, struct probe found[CONFIG_PROBE_COUNT])
{
	const uint64_t deadline_ns = clock_mono_ns() + TRY_LIMIT_NS;
	pid_t pids[CONFIG_PROBE_COUNT];
	bool all_well = true;

	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			try_in_child(set, i, &found[i]);
	}
	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++) {
		if (pids[i] > 0 && wait_for_child(pids[i], deadline_ns))
			set->probes[i] = found[i];
		else
			all_well = false;
	}
	/* A child that died has left its kprobe events. */
	if (!all_well)
		tracefs_clear_stale(set->settings.generation);
}

int probe_set_try_all(struct probe_set *set, const struct config *config, const char *sysfs)
{
	const size_t size = CONFIG_PROBE_COUNT * sizeof(struct probe);
	const struct probe_set *like = NULL;
	struct kernel_types *types = NULL;
	int r = set_begin(set, config, sysfs, 0, &types, &like);
	struct probe *found;

	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++)
		set->probes[i].ops = probe_ops_choose(i, &set->settings);
	found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r == 0 && found == MAP_FAILED)
		r = -errno;
	if (r == 0)
		try_in_children(set, found);
	if (found != MAP_FAILED)
		munmap(found, size);
	trace_maps_close(&set->maps);
	kernel_types_free(types);
	return r;
}

void probe_set_unload(struct probe_set *set)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		if (set->probes[i].ops)
			probe_unload(&set->probes[i]);
	trace_maps_close(&set->maps);
}

void probe_set_prepare(struct probe_set *set)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		struct probe *probe = &set->probes[i];
		int r;

		if (!set->enabled[i] || !probe->backend)
			continue;
		r = probe_prepare(probe, &set->settings, &set->maps);
		if (r < 0)
			log_warning("probe %s: cannot load it for the next incident: %s",
				probe->ops->name, strerror(-r));
	}
}

bool probe_set_needs_prepare(const struct probe_set *set)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		if (set->enabled[i] && probe_needs_prepare(&set->probes[i]))
			return true;
	return false;
}

void probe_set_tell_server_waits(struct probe_set *set, const struct event_server_waits *waits,
	bool known)
{
	const struct probe *wait = &set->probes[CONFIG_PROBE_wait];
	const struct bpf_map *map = wait->object ? probe_map(wait, "server_waits") : NULL;
	const uint32_t zero = 0;

	set->server_waits_unknown =
		!known || (map && bpf_map_update_elem(bpf_map__fd(map), &zero, waits, BPF_ANY) < 0);
}

void probe_set_summarize(struct probe_set *set, const struct probe_report *report)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		struct probe *probe = &set->probes[i];

		if (set->attached[i] && probe->object && probe->ops->summarize)
			probe->ops->summarize(probe, report);
	}
}

bool probe_set_uses_kprobes(const struct probe_set *set)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		if (probe_uses_kprobes(&set->probes[i]))
			return true;
	return false;
}

uint64_t probe_set_count_misses(const struct probe_set *set)
{
	return probe_set_uses_kprobes(set) ? tracefs_count_misses(set->settings.generation) : 0;
}

void probe_set_read_counters(const struct probe_set *set, struct probe_counters *ret_counters)
{
	*ret_counters = (struct probe_counters){};
	if (trace_maps_read_losses(&set->maps, ret_counters->losses) < 0)
		log_warning("cannot read the loss counters; losses are missing from the record");
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		ret_counters->skipped_runs += probe_skipped_runs(&set->probes[i]);
}
