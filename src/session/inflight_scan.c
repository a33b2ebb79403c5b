/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The in-flight scan: each second while tracing it reports operations that have not returned. */
#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "session/internal.h"
#include "snapshot/task_scan.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * A part of the scan occupies the event loop for so long, and then rests three times as long, so
 * that thousands of stuck threads cost at most a quarter of a CPU.
 */
#define SCAN_BUDGET_NS (10 * NSEC_PER_MSEC)
#define SCAN_REST 3
/*
 * The ring buffer is drained after so many operations, so that it does not fill during a scan and a
 * line is written while the thread still hangs.
 */
#define SCAN_CONSUME_EACH 8
/*
 * The initial task scan of 10,000 threads took 34 to 82 ms with all CPUs busy (6.18), attaching
 * included. Its first part shares a turn of the loop with the rest of arming.
 */
#define TASK_SCAN_BUDGET_NS (15 * NSEC_PER_MSEC)

/* A probe's map of operations in flight and the program that describes them. */
struct scan_source {
	struct inflight_map map;
	int program_fd;
	bool is_sleeps;
};

static bool find_source(const struct session *s, unsigned int index, struct scan_source *ret_source)
{
	const struct probe *probe = &s->probes.probes[index];
	struct scan_source source;

	if (!session_find_own_map(s, index, &source.map))
		return false;
	source.is_sleeps = probe->ops->task_scan_program != NULL;
	source.program_fd = probe_program_fd(probe, probe->ops->resolve_program);
	*ret_source = source;
	return source.program_fd >= 0;
}

/*
 * Has the BPF program describe an operation, which arrives through the ring buffer like any other
 * event. `drain`: the probes are detached, and the operation may have ended unreported. Returns 1
 * when it is still in flight, and 2 when only its stack tells whether it is one on a file.
 */
static unsigned int resolve(int program_fd, const struct inflight_item *item, bool drain)
{
	uint64_t args[3] = { item->key, item->start_ns, drain };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	return bpf_prog_test_run_opts(program_fd, &opts) == 0 ? opts.retval : 0;
}

/* Reports an operation if a line is due. Returns whether it hangs on what is traced. */
static bool scan_item(struct session *s, const struct scan_source *source,
	const struct inflight_item *item, uint64_t now_ns, bool final)
{
	const struct incident_stuck *known;
	uint64_t age_ns = now_ns - item->start_ns;
	unsigned int in_flight;

	/*
	 * It is noted when its line is written; an operation that cannot be resolved may never have
	 * one.
	 */
	known = incident_find_stuck(&s->incident, item->tid, item->start_ns);
	if (known && !final && !incident_stuck_is_due(known, age_ns))
		return !known->may_be_elsewhere;
	in_flight = resolve(source->program_fd, item, false);
	if (known && known->may_be_elsewhere)
		return false;
	return in_flight == 1 || (in_flight == 2 && known && known->is_proven);
}

/*
 * Whether it keeps the incident open while it hangs. A thread of the kernel may sleep for as long
 * as it likes, as that of a RAID does which is resynchronized at its limit. Whom it keeps waiting
 * counts.
 */
static bool keeps_open(const struct session *s, const struct inflight_item *item)
{
	return item->op != EVENT_OP_KERNEL && item->start_ns >= s->well_ns;
}

/*
 * There is no time left to report the operation. One that has had a line is no loss, and one that
 * has returned meanwhile has sent its own event.
 */
static void count_unreported(struct session *s, const struct scan_source *source,
	const struct inflight_item *item)
{
	const struct incident_stuck *known =
		incident_find_stuck(&s->incident, item->tid, item->start_ns);
	struct event_inflight op;

	if (known && known->reported_age_ns > 0)
		return;
	if (clock_mono_ns() - item->start_ns >= s->o.config->trace.min_stall_ns &&
		inflight_find(&source->map, item->key, &op) && op.start_ns == item->start_ns)
		s->incident.stuck_unreported++;
}

static bool collect(struct session *s, const struct scan_source *source)
{
	int r = inflight_collect(&source->map, clock_mono_ns(), s->o.config->trace.min_stall_ns,
		&s->scan);

	if (r == 0)
		return true;
	log_warning("cannot read the operations in flight: %s", strerror(-r));
	return false;
}

/* Returns false when the time is over. */
static bool scan_source(struct session *s, uint64_t deadline_ns)
{
	struct session_scan_pass *pass = &s->pass;
	struct scan_source source;

	if (!find_source(s, pass->source, &source) || (!pass->collected && !collect(s, &source)))
		return true;
	pass->collected = true;
	for (; pass->next < s->scan.count; pass->next++) {
		const struct inflight_item *item = &s->scan.items[pass->next];
		uint64_t now_ns = clock_mono_ns();

		if (now_ns > deadline_ns)
			return false;
		if (pass->gives_up) {
			count_unreported(s, &source, item);
			continue;
		}
		if (scan_item(s, &source, item, now_ns, pass->last) && keeps_open(s, item))
			pass->stuck++;
		if (pass->next % SCAN_CONSUME_EACH == SCAN_CONSUME_EACH - 1)
			session_consume_ring(s);
	}
	if (pass->last)
		s->incident.stuck_unreported += s->scan.left_out;
	/* Operations that were not checked may still hang. */
	pass->stuck += s->scan.left_out;
	session_consume_ring(s);
	return true;
}

/* Returns false when the time is over. */
static bool scan_sources(struct session *s, uint64_t deadline_ns)
{
	struct session_scan_pass *pass = &s->pass;

	for (; pass->source < CONFIG_PROBE_COUNT; pass->source++) {
		if (!scan_source(s, deadline_ns))
			return false;
		pass->collected = false;
		pass->next = 0;
	}
	return true;
}

uint64_t session_scan_inflight(struct session *s)
{
	struct session_scan_pass *pass = &s->pass;
	uint64_t start_ns = clock_mono_ns();

	if (!pass->start_ns)
		*pass = (struct session_scan_pass){ .start_ns = start_ns };
	if (!scan_sources(s, start_ns + SCAN_BUDGET_NS)) {
		if (pass->stuck > s->stuck_now)
			s->stuck_now = pass->stuck;
		return SCAN_REST * (clock_mono_ns() - start_ns);
	}
	s->stuck_now = pass->stuck;
	pass->start_ns = 0;
	session_write_alike(s);
	return 0;
}

/* It was to be attached for this incident, and was not, or not yet. */
static bool lacks_wait(const struct session *s)
{
	return s->probes.enabled[CONFIG_PROBE_wait] &&
		s->probes.probes[CONFIG_PROBE_wait].backend &&
		!s->probes.attached[CONFIG_PROBE_wait];
}

uint32_t session_choose_scanned(struct session *s)
{
	const struct session_pids *a = session_pids_now(&s->filtered);
	const struct session_pids *b = session_pids_now(&s->watched);
	int32_t *pid = s->scan_pids;

	for (uint32_t i = 0, j = 0; i < a->count || j < b->count; pid++) {
		*pid = j == b->count || (i < a->count && a->pids[i] < b->pids[j]) ? a->pids[i]
										  : b->pids[j];
		i += i < a->count && a->pids[i] == *pid;
		j += j < b->count && b->pids[j] == *pid;
	}
	return (uint32_t)(pid - s->scan_pids);
}

void session_begin_last_scan(struct session *s)
{
	const struct task_scan_options wanted = { .procfs_fd = s->procfs_fd,
		.only = s->filter ? s->scan_pids : NULL };

	/* Who has not been visited by now is counted as that. */
	task_scan_reset(&s->tasks);
	if (lacks_wait(s))
		s->incident.not_visited = task_scan_count_left(&s->tasks, &wanted);
	s->tasks.complete = true;
	/* The scan that is under way would count the same operations. */
	session_write_alike(s);
	s->pass = (struct session_scan_pass){ .start_ns = clock_mono_ns(), .last = true };
}

bool session_continue_last_scan(struct session *s, bool give_up)
{
	s->pass.gives_up = give_up;
	if (!scan_sources(s, clock_mono_ns() + SCAN_BUDGET_NS))
		return false;
	s->pass = (struct session_scan_pass){ 0 };
	session_write_alike(s);
	return true;
}

/* The source whose map is written at context switches; false: it is not attached. */
static bool find_sleeps(const struct session *s, struct scan_source *ret_source)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		if (find_source(s, i, ret_source) && ret_source->is_sleeps)
			return true;
	return false;
}

bool session_drain_inflight(struct session *s, bool give_up)
{
	struct session_scan_pass *pass = &s->pass;
	uint64_t deadline_ns = clock_mono_ns() + SCAN_BUDGET_NS;
	struct scan_source source;

	if (!find_sleeps(s, &source))
		return true;
	if (!pass->collected) {
		if (inflight_collect(&source.map, clock_mono_ns(), 0, &s->scan) < 0)
			return true;
		s->incident.stuck_unreported += s->scan.left_out;
		pass->collected = true;
	}
	for (; pass->next < s->scan.count; pass->next++) {
		const struct inflight_item *item = &s->scan.items[pass->next];

		if (clock_mono_ns() > deadline_ns)
			return false;
		if (give_up) {
			count_unreported(s, &source, item);
			continue;
		}
		resolve(source.program_fd, item, true);
		if (pass->next % SCAN_CONSUME_EACH == SCAN_CONSUME_EACH - 1)
			session_consume_ring(s);
	}
	return true;
}

bool session_clear_inflight(struct session *s)
{
	struct scan_source source;

	return !find_sleeps(s, &source) ||
		inflight_clear(&source.map, clock_mono_ns() + SCAN_BUDGET_NS) != -ETIME;
}

struct scan_tasks {
	struct session *s;
	unsigned int probe;
	struct inflight_map map;
};

/* No program has seen it fall asleep, so its stack can only come from /proc. */
static void on_task_found(void *userdata, int32_t tid)
{
	const struct scan_tasks *scan = userdata;
	struct event_inflight op;

	/* Those that find no room are asked for when their line is written. */
	if (stack_reader_has_room(scan->s->stacks) &&
		inflight_find(&scan->map, (uint32_t)tid, &op) && op.start_ns < scan->s->switches_ns)
		session_ask_stack(scan->s, scan->probe, (uint32_t)tid, op.start_ns);
}

/* The program of the initial task scan; -1: the probe has none, or is not attached. */
static int task_scan_fd(const struct session *s, enum config_probe_name name)
{
	const struct probe *probe = &s->probes.probes[name];

	return s->probes.attached[name] ? probe_program_fd(probe, probe->ops->task_scan_program)
					: -1;
}

static bool find_task_scan(struct session *s, struct scan_tasks *ret_scan,
	struct task_scan_options *ret_options)
{
	*ret_scan = (struct scan_tasks){ s, CONFIG_PROBE_wait, { .fd = -1 } };
	*ret_options = (struct task_scan_options){
		.procfs_fd = s->procfs_fd,
		.program_fd = task_scan_fd(s, CONFIG_PROBE_wait),
		.offcpu_fd = task_scan_fd(s, CONFIG_PROBE_offcpu),
		.only = s->filter ? s->scan_pids : NULL,
		.only_count = session_choose_scanned(s),
		.deadline_ns = clock_mono_ns() + TASK_SCAN_BUDGET_NS,
		.found = on_task_found,
		.userdata = ret_scan,
	};
	if (!session_find_own_map(s, CONFIG_PROBE_wait, &ret_scan->map))
		ret_options->program_fd = -1;
	return ret_options->program_fd >= 0 || ret_options->offcpu_fd >= 0;
}

static void scan_tasks(struct session *s)
{
	struct scan_tasks found;
	struct task_scan_options options;
	struct task_scan_result result;

	if (s->tasks.complete)
		return;
	if (!find_task_scan(s, &found, &options)) {
		s->tasks.complete = true;
		return;
	}
	task_scan_continue(&s->tasks, &options, &result);
	s->incident.not_visited = task_scan_count_left(&s->tasks, &options);
	log_debug("initial task scan: %u threads, %u asleep in an operation, %llu not visited yet",
		result.visited, result.asleep, (unsigned long long)s->incident.not_visited);
	if (s->tasks.complete && options.offcpu_fd >= 0)
		session_ask_offcpu_stacks(s);
}

bool session_begin_task_scan(struct session *s)
{
	scan_tasks(s);
	return s->tasks.complete;
}

bool session_continue_task_scan(struct session *s)
{
	if (s->tasks.complete)
		return false;
	scan_tasks(s);
	return true;
}

void session_scan_new_process(struct session *s, int32_t pid, bool is_watched)
{
	struct scan_tasks found;
	struct task_scan_options options;
	struct task_scan_result result;

	if (!find_task_scan(s, &found, &options))
		return;
	if (is_watched)
		options.program_fd = -1;
	else
		options.offcpu_fd = -1;
	options.deadline_ns = s->new_deadline_ns;
	task_scan_process(&options, pid, &result);
	if (!result.complete)
		s->incident.new_not_visited++;
}
