/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports locks of programs at which threads stand still, and pipes. */
#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "enrich/waits.h"
#include "model/thresholds.h"
#include "session/internal.h"
#include "util/clock.h"

/* What was seen so long before the trigger may have been over then. */
#define OLD_NS (2 * NSEC_PER_SEC)

static bool is_lock_of(const struct session_lock *lock, const struct held_lock *seen)
{
	const struct model_file_id file = model_file_id_of(seen->dev, seen->inode, "");

	if (lock->kind != seen->kind)
		return false;
	if (seen->kind == RECORD_KERNEL_LOCK_mutex && lock->pid != seen->pid)
		return false;
	if (seen->address)
		return lock->address == seen->address;
	return model_is_same_file(&lock->file, &file) && lock->range_begin == seen->range_begin &&
		lock->range_end == seen->range_end && lock->file_kind == seen->file_kind;
}

/* NULL: it has no place yet. */
static struct session_lock *find_lock(struct session *s, const struct held_lock *seen)
{
	for (uint32_t i = SESSION_KERNEL_LOCKS_MAX; i < SESSION_LOCKS_MAX; i++)
		if (s->locks.list[i].id && is_lock_of(&s->locks.list[i], seen))
			return &s->locks.list[i];
	return NULL;
}

/*
 * A place that is free, or of the lock that has been gone for longest: there are as many as locks
 * in an answer, and those of this one have been marked.
 */
static struct session_lock *take_place(struct session *s, const struct held_lock *seen)
{
	struct session_lock *place = s->locks.list + SESSION_KERNEL_LOCKS_MAX;

	for (uint32_t i = SESSION_KERNEL_LOCKS_MAX; i < SESSION_LOCKS_MAX; i++)
		if (s->locks.list[i].look_ns < place->look_ns)
			place = &s->locks.list[i];
	session_release_lock(s, place);
	*place = (struct session_lock){
		.kind = seen->kind,
		.id = ++s->locks.last_id,
		.address = seen->address,
		.file = model_file_id_of(seen->dev, seen->inode, ""),
		.range_begin = seen->range_begin,
		.range_end = seen->range_end,
		.file_kind = seen->file_kind,
	};
	return place;
}

static void fill_holder(const struct session *s, const struct held_lock *seen, uint64_t look_ns,
	struct record_lock_holder *h)
{
	const struct sql_operation operation = { .tid = seen->holder,
		.start_ns = seen->held_since_ns,
		.end_ns = look_ns };

	h->present = true;
	h->basis = seen->is_inferred ? RECORD_BASIS_inferred : RECORD_BASIS_measured;
	h->pid = seen->holder_pid;
	h->tid = seen->holder;
	text_copy(h->comm, sizeof(h->comm), seen->holder_comm);
	h->state = seen->holder_state;
	h->syscall = seen->holder_syscall;
	h->held_ns = look_ns - seen->held_since_ns;
	h->deadlocked_with = seen->deadlocked_with;
	h->connection_id = sql_find_connection(s->o.sql, &operation);
	text_copy(h->kstack, sizeof(h->kstack), seen->holder_stack);
	h->waits_for = waits_for(h->kstack);
}

/*
 * Threads may wait for each other for days, and nobody is worse off by it now. But a pile-up may
 * take longer than the rule that notices it at last.
 */
static bool is_of_incident(const struct session *s, const struct held_lock *seen)
{
	const struct record_trigger *trigger = &s->opened.trigger;

	return seen->since_ns + PILE_UP_NS >= s->well_ns ||
		(trigger->pid == seen->pid &&
			(strcmp(trigger->rule, rules_name(CONFIG_RULE_mutex)) == 0 ||
				strcmp(trigger->rule, rules_name(CONFIG_RULE_lock)) == 0));
}

static void write_held(struct session *s, const struct held_lock *seen, uint64_t look_ns)
{
	struct session_lock *lock = find_lock(s, seen);
	const int32_t holder = seen->holder ? seen->holder : seen->holder_pid;
	struct record_lock_wait *r;

	if (!lock)
		lock = take_place(s, seen);
	lock->look_ns = look_ns;
	if (lock->holder != holder)
		lock->reported_ns = 0;
	lock->holder = holder;
	r = &session_begin_line(s, RECORD_LOCK)->lock_wait;
	r->kind = lock->kind;
	r->id = lock->id;
	lock->pid = r->pid = seen->pid;
	text_copy(lock->comm, sizeof(lock->comm), seen->comm);
	text_copy(r->comm, sizeof(r->comm), seen->comm);
	model_set_path(lock->path, seen->path);
	text_copy(r->path, sizeof(r->path), lock->path);
	r->dev = seen->dev;
	r->inode = record_lock_has_reader(seen->kind) ? seen->address : seen->inode;
	r->fd = record_lock_has_reader(seen->kind) ? seen->fd : -1;
	r->waiters = seen->waiters;
	r->tries = seen->tries;
	r->longest_ns = look_ns - seen->since_ns;
	if (holder)
		fill_holder(s, seen, look_ns, &r->holder);
	session_write_lock(s, lock);
}

static void give_socket_program(struct session *s)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe *probe = &s->probes.probes[i];

		if (probe->ops && probe->ops->socket_program)
			held_locks_set_socket_program(s->held_locks,
				probe_program_fd(probe, probe->ops->socket_program));
	}
}

/* Read at once. */
#define REFUSALS_BATCH 32

static void give_refusal(struct session *s, int map, const struct event_refusal_key *key,
	const struct event_refusal *value, uint64_t now_ns)
{
	if (value->last_ns + EVENT_REFUSAL_PAUSE_NS < now_ns) {
		bpf_map_delete_elem(map, key);
		return;
	}
	if (value->first_ns == value->last_ns)
		return;
	held_locks_add_refusal(s->held_locks,
		&(struct held_locks_refusal){
			.pid = (int32_t)value->pid,
			.tid = (int32_t)key->tid,
			.dev = { key->dev >> 20, key->dev & 0xfffff },
			.inode = key->inode,
			.begin = value->begin,
			.end = value->end,
			.tries_ns = value->last_ns - value->first_ns,
			.is_flock = key->is_flock,
			.is_read = value->is_read,
		});
}

static void give_refusals(struct session *s, int map)
{
	struct event_refusal_key keys[REFUSALS_BATCH];
	struct event_refusal values[REFUSALS_BATCH];
	const uint64_t now_ns = clock_mono_ns();
	uint32_t cursor, *in = NULL;
	int r = 0;

	while (r == 0) {
		uint32_t count = REFUSALS_BATCH;

		r = bpf_map_lookup_batch(map, in, &cursor, keys, values, &count, NULL);
		if (r < 0 && r != -ENOENT)
			return;
		in = &cursor;
		for (uint32_t i = 0; i < count; i++)
			give_refusal(s, map, &keys[i], &values[i], now_ns);
	}
}

static void find_refusals(struct session *s)
{
	held_locks_clear_refusals(s->held_locks);
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe *probe = &s->probes.probes[i];

		if (probe->ops && probe->ops->refusals_map && probe->object)
			give_refusals(s, bpf_map__fd(probe_map(probe, probe->ops->refusals_map)));
	}
}

static const struct held_locks_answer *find(struct session *s)
{
	const struct watch_process *processes;
	unsigned int count;

	if (session_is_open(s)) {
		give_socket_program(s);
		find_refusals(s);
	}
	processes = watch_processes(s->o.watch, &count);
	return held_locks_find(s->held_locks, processes, count, session_is_open(s),
		clock_mono_ns());
}

void session_look_for_held_locks(struct session *s)
{
	const struct held_locks_answer *answer;

	if (!s->held_locks)
		return;
	answer = find(s);
	if (s->state != SESSION_TRACING || answer->look_ns == s->held_locks_look_ns ||
		answer->look_ns + OLD_NS < s->incident.trigger_ns)
		return;
	s->held_locks_look_ns = answer->look_ns;
	for (uint32_t i = 0; i < answer->count; i++) {
		struct session_lock *lock = find_lock(s, &answer->list[i]);

		if (lock)
			lock->look_ns = answer->look_ns;
	}
	for (uint32_t i = 0; i < answer->count; i++)
		if (is_of_incident(s, &answer->list[i]))
			write_held(s, &answer->list[i], answer->look_ns);
}

static bool rule_is_enabled(const struct session *s, enum config_rule_name rule)
{
	return s->o.config->rules[rule].enabled;
}

static void fill_mutex(const struct held_locks_answer *answer, struct record_held_mutex *mutex)
{
	const struct held_lock *worst = held_locks_worst_mutex(answer);

	if (!worst)
		return;
	mutex->present = true;
	mutex->waiters = worst->waiters;
	mutex->pid = worst->pid;
	mutex->holder = worst->holder;
	text_copy(mutex->comm, sizeof(mutex->comm), worst->comm);
}

static void fill_lock(const struct session *s, const struct held_locks_answer *answer,
	struct record_lock_stand *lock)
{
	const struct held_lock *longest = held_locks_longest_lock(s->held_locks);

	if (!longest)
		return;
	lock->present = true;
	lock->waiters = longest->waiters;
	lock->longest_ns = answer->look_ns - longest->since_ns;
	lock->pid = longest->pid;
	text_copy(lock->comm, sizeof(lock->comm), longest->comm);
}

void session_prepare_sample(struct session *s)
{
	const struct held_locks_answer *answer;
	struct record_held_mutex mutex = { 0 };
	struct record_lock_stand lock = { 0 };
	bool is_wanted;

	if (!s->held_locks)
		return;
	is_wanted = session_is_open(s) || rule_is_enabled(s, CONFIG_RULE_mutex) ||
		rule_is_enabled(s, CONFIG_RULE_lock);
	if (is_wanted) {
		answer = find(s);
		fill_mutex(answer, &mutex);
		fill_lock(s, answer, &lock);
	}
	watch_set_mutex(s->o.watch, &mutex);
	watch_set_lock(s->o.watch, &lock);
	if (is_wanted && held_locks_lacks(s->held_locks, clock_mono_ns()))
		watch_count_unread(s->o.watch);
}
