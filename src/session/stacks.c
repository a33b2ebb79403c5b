/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has the stacks read that no BPF program has taken, and keeps them for the next line. */
#include "enrich/waits.h"
#include "probes/offcpu.h"
#include "session/internal.h"
#include "util/clock.h"

static void note(struct session *s, uint32_t tid, uint64_t start_ns, const char *kstack)
{
	struct incident_stuck *stuck = incident_note_stuck(&s->incident, tid, start_ns);

	if (!stuck)
		return;
	incident_set_stack(&s->incident, stuck, kstack);
	stuck->is_proven |= waits_for_server(kstack);
}

void session_ask_stack(struct session *s, unsigned int probe, uint32_t tid, uint64_t start_ns)
{
	const struct stack_request request = { start_ns, tid, probe };
	char kstack[THREAD_STACK_SIZE];

	if (s->stacks) {
		stack_reader_ask(s->stacks, &request, clock_mono_ns());
		return;
	}
	/* A replay reads a copy of /proc, which cannot hang. */
	thread_read_stack(s->procfs_fd, (int32_t)tid, kstack);
	note(s, tid, start_ns, kstack);
}

/*
 * The stack is used only if the thread is still in the same operation: it may have gone on before
 * /proc was read.
 */
static void note_stack(struct session *s, const struct stack_answer *answer)
{
	const struct stack_request *request = &answer->request;

	/* An answer that comes later is of no use, and its probe may be loaded anew just now. */
	if (!session_is_open(s))
		return;
	if (request->probe == SESSION_STACK_OF_HOLDER) {
		session_note_holder_stack(s, answer);
		return;
	}
	if (request->probe == SESSION_STACK_OF_OFFCPU) {
		offcpu_note_stack(&s->probes.probes[CONFIG_PROBE_offcpu], request->tid,
			request->start_ns, answer->kstack);
		return;
	}
	if (s->state == SESSION_DRAINING || !answer->kstack[0] ||
		!session_is_in_flight(s, request->probe, request->tid, request->start_ns))
		return;
	note(s, request->tid, request->start_ns, answer->kstack);
}

void session_take_stacks(struct session *s)
{
	const struct stack_answer *answer;

	while (s->stacks && (answer = stack_reader_take(s->stacks, clock_mono_ns())))
		note_stack(s, answer);
}

void session_check_stacks(struct session *s)
{
	session_take_stacks(s);
	if (s->stacks)
		stack_reader_check(s->stacks, clock_mono_ns());
}
