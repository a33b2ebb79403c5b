/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks of the kernel that threads wait for: who held one, and how that is said. */
#include <inttypes.h>
#include <sys/syscall.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "verdict/rules.h"
#include "verdict/words.h"

/* A holder that waited so long for a device held the lock meanwhile, perhaps. */
#define HOLDER_NS (NSEC_PER_SEC / 4)

void verdict_note_lock(struct verdict_facts *f, const struct record_lock_wait *lock)
{
	struct verdict_kernel_lock *l = NULL;
	const struct record_lock_holder *h = &lock->holder;

	if (lock->kind == RECORD_KERNEL_LOCK_mutex && !verdict_mutex_matters(lock))
		return;
	for (unsigned int i = 0; i < VERDICT_LOCKS_MAX && !l; i++)
		if (f->locks[i].id == 0 || f->locks[i].id == lock->id)
			l = &f->locks[i];
	if (!l)
		return;
	l->id = lock->id;
	l->kind = lock->kind;
	verdict_set_who(&l->process, lock->pid, 0, lock->comm);
	verdict_set_path(l->path, lock->path);
	if (lock->waiters * lock->longest_ns > l->waited_ns)
		l->waited_ns = lock->waiters * lock->longest_ns;
	if (lock->waiters > l->waiters)
		l->waiters = lock->waiters;
	if (lock->longest_ns > l->longest_ns) {
		l->longest_ns = lock->longest_ns;
		l->readers = lock->readers;
	}
	if (!h->present || (l->holder.tid && h->held_ns <= l->held_ns))
		return;
	verdict_set_who(&l->holder, h->pid, h->tid, h->comm);
	l->held_ns = h->held_ns;
	l->syscall = h->syscall;
	l->holder_state = h->state;
	l->holder_waits_for = h->waits_for;
	l->deadlocked_with = h->deadlocked_with;
	l->connection_id = h->connection_id;
}

/* Of an inode the facts about waiting threads do not tell which one it is. */
static bool is_lock_of(const struct verdict_kernel_lock *l, const struct verdict_waiter *w)
{
	if (l->id == 0 || w->tid == 0 || w->kernel || w->wait != VERDICT_WAIT_lock)
		return false;
	return l->kind == RECORD_KERNEL_LOCK_inode || w->pid == l->process.pid;
}

static uint64_t sum_ns(const struct verdict_facts *f, const struct verdict_kernel_lock *l)
{
	uint64_t ns = 0;

	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (l ? is_lock_of(l, &f->waiters[i])
		      : f->waiters[i].tid != 0 && !f->waiters[i].kernel &&
					f->waiters[i].wait == VERDICT_WAIT_lock)
			ns += f->waiters[i].waited_ns;
	return ns;
}

const struct verdict_kernel_lock *verdict_find_lock(const struct verdict_facts *f)
{
	const struct verdict_kernel_lock *worst = NULL;
	uint64_t ns;

	for (unsigned int i = 0; i < VERDICT_LOCKS_MAX && f->locks[i].id; i++)
		if (f->locks[i].kind != RECORD_KERNEL_LOCK_mutex &&
			(!worst || f->locks[i].waited_ns > worst->waited_ns))
			worst = &f->locks[i];
	if (!worst)
		return NULL;
	ns = sum_ns(f, worst);
	/* Which inode a thread waited for is not known: what was seen of this lock has to do. */
	if (worst->kind == RECORD_KERNEL_LOCK_inode && worst->waited_ns < ns)
		ns = worst->waited_ns;
	return ns >= sum_ns(f, NULL) / 2 ? worst : NULL;
}

bool verdict_waits_for_lock(const struct verdict_finding *v, const struct verdict_waiter *w)
{
	const struct verdict_kernel_lock *l = verdict_find_lock(v->f);

	return l && is_lock_of(l, w);
}

bool verdict_is_kernel_lock(const struct verdict_finding *v)
{
	return v->rule->class == RECORD_CLASS_locked && v->wait == VERDICT_WAIT_lock;
}

bool verdict_is_queue(const struct verdict_finding *v)
{
	return v->rule->class == RECORD_CLASS_locked && v->wait != VERDICT_WAIT_lock &&
		!verdict_is_mutex(v);
}

static bool waits_for_storage(const struct verdict_facts *f, const struct verdict_kernel_lock *l)
{
	if (l->holder_waits_for)
		return true;
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++) {
		const struct verdict_waiter *w = &f->waiters[i];

		if (w->tid == l->holder.tid && w->wait != VERDICT_WAIT_lock &&
			w->longest_ns >= HOLDER_NS)
			return true;
	}
	return false;
}

bool verdict_holder_runs(const struct verdict_facts *f, const struct verdict_waiter *w)
{
	const struct verdict_kernel_lock *l = verdict_find_lock(f);

	return l && is_lock_of(l, w) && l->holder.tid && !waits_for_storage(f, l);
}

const char *verdict_syscall_name(int32_t number)
{
#define NAME(call)                                                                                 \
	{                                                                                          \
		SYS_##call, #call                                                                  \
	}
	static const struct {
		int32_t number;
		const char *name;
	} names[] = {
		NAME(mmap),
		NAME(munmap),
		NAME(mremap),
		NAME(mprotect),
		NAME(madvise),
		NAME(mlock),
		NAME(mlock2),
		NAME(mlockall),
		NAME(munlock),
		NAME(brk),
		NAME(clone),
		NAME(clone3),
		NAME(write),
		NAME(pwrite64),
		NAME(writev),
		NAME(pwritev),
		NAME(pwritev2),
		NAME(fallocate),
		NAME(truncate),
		NAME(ftruncate),
		NAME(fsync),
		NAME(fdatasync),
		NAME(copy_file_range),
		NAME(io_uring_enter),
		NAME(io_submit),
		NAME(futex),
		NAME(nanosleep),
		NAME(clock_nanosleep),
		NAME(ppoll),
		NAME(pselect6),
		NAME(epoll_pwait),
		NAME(read),
		NAME(pread64),
		NAME(readv),
		NAME(preadv),
		NAME(recvfrom),
		NAME(recvmsg),
		NAME(sendto),
		NAME(sendmsg),
		NAME(accept),
		NAME(accept4),
		NAME(connect),
		NAME(wait4),
		NAME(waitid),
		NAME(semop),
		NAME(semtimedop),
		NAME(msgrcv),
		NAME(flock),
		NAME(fcntl),
		NAME(rt_sigtimedwait),
#ifdef SYS_poll /* which newer architectures do not have */
		NAME(poll),
		NAME(select),
		NAME(epoll_wait),
#endif
	};
#undef NAME

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].number == number)
			return names[i].name;
	return NULL;
}

/* "the memory map lock (mmap_lock) of process mariadbd pid 7" */
static void add_lock(struct text *t, const struct verdict_kernel_lock *l)
{
	if (l->kind == RECORD_KERNEL_LOCK_inode) {
		text_add(t, "the lock of the inode of ");
		verdict_add_path(t, *l->path ? l->path : "a file");
		return;
	}
	text_add(t, "the memory map lock (mmap_lock) of process ");
	verdict_add_who(t, &l->process);
}

void verdict_add_lock_holder(const struct verdict_kernel_lock *l, struct text *t)
{
	const char *call = verdict_syscall_name(l->syscall);

	text_addf(t, "thread %" PRId32 " (", l->holder.tid);
	record_add_printable(t, l->holder.comm);
	text_add(t, ")");
	if (l->holder.pid != l->process.pid)
		text_addf(t, " of process %" PRId32, l->holder.pid);
	if (l->connection_id)
		text_addf(t, ", session %" PRIu64 ",", l->connection_id);
	text_add(t, " held it, ");
	if (l->holder_waits_for)
		text_addf(t, "waiting for %s", record_cause_text(l->holder_waits_for));
	else
		text_add(t, "running");
	if (call)
		text_addf(t, " in %s", call);
	text_add(t, " for at least ");
	record_add_duration(t, l->held_ns);
}

void verdict_say_kernel_lock(const struct verdict_finding *v, struct text *t)
{
	const struct verdict_kernel_lock *l = verdict_find_lock(v->f);

	text_add_count(t, v->victims, "thread", "threads");
	text_add(t, v->victims == 1 ? " waited " : " waited up to ");
	record_add_duration(t, v->victims_longest_ns);
	text_add(t, " for ");
	add_lock(t, l);
	text_add(t, ": ");
	if (l->holder.tid)
		verdict_add_lock_holder(l, t);
	else if (l->readers > 1)
		text_addf(t, "%" PRIu32 " readers held it together", l->readers);
	else
		text_add(t, "a reader held it, whom the kernel does not name");
	if (verdict_is_no_device_at_fault(v->f))
		text_add(t, "; no disk was at its limit");
}
