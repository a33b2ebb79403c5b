/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A watched process that somebody stopped: no other cause is needed for what it did not do
 * meanwhile.
 */
#include "util/clock.h"
#include "verdict/rules.h"
#include "verdict/words.h"

/* Shorter stops are those of a debugger that looks at threads one after the other. */
#define STOPPED_NS (NSEC_PER_SEC / 2)

bool verdict_is_stopped(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	*ret_wait = VERDICT_WAIT_COUNT;
	return f->stopped.who.pid && f->stopped.longest_ns >= STOPPED_NS;
}

bool verdict_is_about_stopped(const struct verdict_finding *v)
{
	return v->rule->say == verdict_say_stopped;
}

uint64_t verdict_stopped_ns(const struct verdict_facts *f)
{
	return f->stopped.in_incident_ns * (f->stopped.threads ? f->stopped.threads : 1);
}

/*
 * "mysqld pid 7 was stopped for at least 9.00 s by the debugger gdb pid 99"; without one ": its
 * control group /docker/5a was frozen, as by docker pause", or "by a signal, such as SIGSTOP"
 */
void verdict_add_stopped(const struct verdict_stopped *s, struct text *t)
{
	verdict_add_who(t, &s->who);
	text_add(t, " was stopped for at least ");
	record_add_duration(t, s->longest_ns);
	if (*s->cgroup) {
		text_addf(t, ": its control group %s was frozen, as by docker pause", s->cgroup);
	} else if (s->tracer.pid) {
		text_add(t, " by the debugger ");
		verdict_add_who(t, &s->tracer);
	} else {
		text_add(t, " by a signal, such as SIGSTOP");
	}
}

void verdict_say_stopped(const struct verdict_finding *v, struct text *t)
{
	verdict_add_stopped(&v->f->stopped, t);
}
