/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kinds of waiting that offcpu.bpf.c adds times to: by process, name, state, system call and
 * the two stacks. Included by it alone.
 */
#ifndef IOSTALL_OFFCPU_KINDS_BPF_H
#define IOSTALL_OFFCPU_KINDS_BPF_H

#include "tasks.bpf.h"

/* Nobody can make stacks that have the hash of another one. */
const volatile __u64 cfg_seed[2] = {};

#define STACK_PERIOD_NS 1000000ull
/* A thread that slept long has so many in advance. */
#define STACKS_AHEAD_NS (20 * STACK_PERIOD_NS)
/*
 * The kernel unwinds with the queue of the CPU locked. A host where thousands of threads sleep for
 * milliseconds would have little else to do; a second's worth may be taken at once.
 */
#define CPU_STACK_PERIOD_NS 200000ull
#define CPU_STACKS_AHEAD_NS 1000000000ull
/*
 * Without room a look at the program's files would be for nothing, for each sleep of another kind.
 */
#define FULL_PAUSE_NS 100000000ull
/* Of stacks of bare addresses; see entry_try_places(). */
#define BARE_TRIES 8
#define BARE_PAUSE_NS 100000000ull

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_OFFCPU_KINDS_MAX);
	__type(key, struct event_offcpu_key);
	__type(value, struct event_offcpu);
} offcpu_kinds SEC(".maps");

/* Of those kinds that have one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_OFFCPU_STACKS_MAX);
	__type(key, struct event_offcpu_key);
	__type(value, struct event_offcpu_stack);
} offcpu_stacks SEC(".maps");

/* Where an entry is put together. The program runs with interrupts off; the scan has its own. */
struct offcpu_scratch {
	__u64 full_until_ns; /* for so long no stack is taken */
	__u64 paid_ns;	     /* until when those that were taken have used up what is allowed */
	struct event_offcpu entry;
	struct event_offcpu_stack stack;
	__u64 user[EVENT_OFFCPU_USER_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_scratch);
} offcpu_scratch SEC(".maps");

/* NULL: this CPU came on-line after the object was loaded. */
static __always_inline struct offcpu_scratch *scratch_of_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return cpu < cfg_common.cpus ? bpf_map_lookup_elem(&offcpu_scratch, &cpu) : NULL;
}

/* Two multiplicative hashes side by side: what is equal in both is equal. */
static __always_inline void key_add(struct event_offcpu_key *key, __u64 x)
{
	key->hash[0] = (key->hash[0] ^ x) * 0x9e3779b97f4a7c15ull;
	key->hash[0] ^= key->hash[0] >> 32;
	key->hash[1] = (key->hash[1] + x) * 0xc2b2ae3d27d4eb4full;
	key->hash[1] ^= key->hash[1] >> 29;
}

static __always_inline void key_of(const struct offcpu_scratch *made, struct event_offcpu_key *key)
{
	const struct event_offcpu *e = &made->entry;

	key->hash[0] = cfg_seed[0];
	key->hash[1] = cfg_seed[1];
	key_add(key, e->process_start_ns);
	key_add(key, (__u64)e->pid << 32 | (__u32)e->syscall);
	key_add(key, ((const __u64 *)e->comm)[0]);
	key_add(key, ((const __u64 *)e->comm)[1]);
	key_add(key, (__u64)e->state << 32 | e->kernel_len << 8 | e->user_len);
	for (unsigned int i = 0; i < EVENT_OFFCPU_KERNEL_DEPTH; i++) {
		if (i >= e->kernel_len)
			break;
		key_add(key, made->stack.kernel[i]);
	}
	for (unsigned int i = 0; i < EVENT_OFFCPU_USER_DEPTH; i++) {
		if (i >= e->user_len)
			break;
		key_add(key, made->user[i]);
	}
}

/* Fills in everything but sums and stacks. */
static __always_inline void entry_describe(struct event_offcpu *e, struct task_struct *task,
	__u32 pid, __u8 state)
{
	e->pid = pid;
	e->process_start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	e->syscall = compat_task_is_kernel(BPF_CORE_READ(task, flags))
		? -1
		: (__s32)compat_syscall_number(task);
	e->state = state;
	e->has_stack = e->kernel_len = e->user_len = e->bare = 0;
	BPF_CORE_READ_INTO(&e->comm, task, comm);
}

static __always_inline __u8 frames_of(long bytes)
{
	return bytes > 0 ? (__u8)((__u64)bytes / sizeof(__u64)) : 0;
}

/*
 * The two stacks of the current thread, the kernel's without its first frame, which is this
 * program. The program's own is one of addresses so far.
 */
static __always_inline void entry_take_stacks(void *ctx, struct offcpu_scratch *made)
{
	struct event_offcpu *e = &made->entry;

	e->kernel_len =
		frames_of(bpf_get_stack(ctx, made->stack.kernel, sizeof(made->stack.kernel), 1));
	e->user_len =
		frames_of(bpf_get_stack(ctx, made->user, sizeof(made->user), BPF_F_USER_STACK));
	e->has_stack = 1;
}

/* The entry of the kind of waiting that stands in `made`. NULL: there is no room. */
static __always_inline struct event_offcpu *entry_get(struct offcpu_scratch *made,
	const struct event_offcpu_key *key)
{
	struct event_offcpu *entry = bpf_map_lookup_elem(&offcpu_kinds, key);

	if (entry)
		return entry;
	bpf_map_update_elem(&offcpu_kinds, key, &made->entry, BPF_NOEXIST);
	return bpf_map_lookup_elem(&offcpu_kinds, key);
}

/*
 * The program's stack as offsets in files, for which the kernel looks into the memory map. While
 * somebody holds that, or has let go of it on this CPU just now, it is one of addresses.
 */
static __always_inline void entry_take_places(void *ctx, struct offcpu_scratch *made)
{
	if (!made->entry.user_len)
		return;
	bpf_get_stack(ctx, made->stack.user, sizeof(made->stack.user),
		BPF_F_USER_STACK | BPF_F_USER_BUILD_ID);
	made->entry.bare = made->stack.user[0].status == EVENT_FRAME_ADDRESS;
}

/*
 * The next thread that waits so may find the memory map free. Programs without build-id have
 * nothing but addresses, so after some times it is tried now and then only.
 */
static __always_inline void entry_try_places(void *ctx, struct offcpu_scratch *made,
	const struct event_offcpu_key *key, struct event_offcpu *entry)
{
	__u64 now = bpf_ktime_get_ns();

	if (entry->bare == BARE_TRIES && now - entry->bare_ns < BARE_PAUSE_NS)
		return;
	made->paid_ns += CPU_STACK_PERIOD_NS;
	entry_take_places(ctx, made);
	if (!made->entry.bare &&
		bpf_map_update_elem(&offcpu_stacks, key, &made->stack, BPF_EXIST) == 0) {
		entry->bare = 0;
		return;
	}
	entry->bare_ns = now;
	if (entry->bare < BARE_TRIES)
		entry->bare++;
}

/* The entry of the kind of waiting that stands in `made`, with the stacks of the current thread. */
static __always_inline struct event_offcpu *entry_get_with_stack(void *ctx,
	struct offcpu_scratch *made, struct event_offcpu_key *key)
{
	struct event_offcpu *entry;

	entry_take_stacks(ctx, made);
	key_of(made, key);
	entry = bpf_map_lookup_elem(&offcpu_kinds, key);
	if (entry && !entry->bare)
		return entry;
	if (entry) {
		entry_try_places(ctx, made, key, entry);
		return entry;
	}
	entry_take_places(ctx, made);
	if (bpf_map_update_elem(&offcpu_stacks, key, &made->stack, BPF_NOEXIST) != -E2BIG) {
		entry = entry_get(made, key);
		if (entry)
			return entry;
		bpf_map_delete_elem(&offcpu_stacks, key);
	}
	made->full_until_ns = bpf_ktime_get_ns() + FULL_PAUSE_NS;
	loss_count(EVENT_LOSS_ACCOUNT_FULL);
	return NULL;
}

/* paid_ns: until when what was taken has used up what is allowed; it may be so far ahead. */
static __always_inline bool can_pay(__u64 *paid_ns, __u64 now, __u64 ahead_ns)
{
	if (*paid_ns < now)
		*paid_ns = now;
	return *paid_ns - now < ahead_ns;
}

/* Whether a stack may be taken now. */
static __always_inline bool stack_is_paid(struct event_offcpu_thread *thread,
	struct offcpu_scratch *cpu, __u64 now)
{
	if (!can_pay(&thread->paid_ns, now, STACKS_AHEAD_NS) ||
		!can_pay(&cpu->paid_ns, now, CPU_STACKS_AHEAD_NS))
		return false;
	thread->paid_ns += STACK_PERIOD_NS;
	cpu->paid_ns += CPU_STACK_PERIOD_NS;
	return true;
}

static __always_inline void entry_add(struct event_offcpu *entry, __u32 tid, __u64 start_ns,
	__u64 ns)
{
	__sync_fetch_and_add(&entry->ns, ns);
	__sync_fetch_and_add(&entry->times, 1);
	entry->tids[tid % EVENT_OFFCPU_TIDS_BITS / 64] |= 1ull << tid % 64;
	if (ns > entry->longest_ns) {
		entry->longest_ns = ns;
		entry->longest_start_ns = start_ns;
		entry->longest_tid = tid;
	}
}

#endif
