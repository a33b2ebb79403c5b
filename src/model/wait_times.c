/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/wait_times.h"

#include "util/clock.h"
#include "util/number.h"

/*
 * There is a line for an operation that hangs each second, later whenever its age has grown by
 * half, and a last one at the end: if none came for longer, its return was missed.
 */
static bool is_missed(uint64_t line_ns, uint64_t age_ns, uint64_t now_ns)
{
	return now_ns >= line_ns + 5 * NSEC_PER_SEC / 2 + age_ns / 2;
}

struct model_hanging model_waits_find_hanging(const struct model *m, int group, uint64_t now_ns)
{
	const struct model_waits *waits = &m->waits;
	struct model_hanging hanging = { 0 };

	for (uint32_t i = 0; i < MODEL_THREADS_MAX && waits->hanging; i++) {
		const struct model_thread *t = &waits->threads[i];
		const uint64_t line_ns = model_counted_from_ns(m) + t->until_ms * NSEC_PER_MSEC;
		const uint64_t age_ns = t->hangs_ms * NSEC_PER_MSEC;

		if (!t->hangs || (group >= 0 && t->group != group) ||
			is_missed(line_ns, age_ns, now_ns))
			continue;
		hanging.count++;
		if (age_ns + now_ns - line_ns > hanging.longest_ns && now_ns >= line_ns)
			hanging.longest_ns = age_ns + now_ns - line_ns;
	}
	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct model_wait *w = &waits->groups[i];
		const uint64_t age_ns = w->alike_hanging_max_ns;

		if (!w->alike_hanging || (group >= 0 && (int)i != group) ||
			is_missed(w->alike_at_ns, age_ns, now_ns))
			continue;
		hanging.count += w->alike_hanging;
		if (age_ns + now_ns - w->alike_at_ns > hanging.longest_ns &&
			now_ns >= w->alike_at_ns)
			hanging.longest_ns = age_ns + now_ns - w->alike_at_ns;
	}
	return hanging;
}

/* How much longer than by its last line it has hung by then: the next line will tell. */
static uint64_t hangs_on_ns(const struct model *m, const struct model_thread *t, uint64_t now_ns)
{
	const uint64_t line_ns = model_counted_from_ns(m) + t->until_ms * NSEC_PER_MSEC;

	return t->hangs && now_ns > line_ns &&
			!is_missed(line_ns, t->hangs_ms * NSEC_PER_MSEC, now_ns)
		? now_ns - line_ns
		: 0;
}

/* What is counted of its longest wait, in which it may still hang. */
static struct model_span longest_of(const struct model *m, const struct model_thread *t,
	uint64_t now_ns)
{
	const uint32_t ms = t->longest_ms < t->waited_ms ? t->longest_ms : t->waited_ms;
	struct model_span span =
		model_span_to(model_counted_from_ns(m) + t->longest_until_ms * NSEC_PER_MSEC,
			ms * NSEC_PER_MSEC);

	if (t->longest_until_ms + 1 >= t->until_ms)
		span.until_ns += hangs_on_ns(m, t, now_ns);
	return span;
}

uint64_t model_waits_longest_in_ns(const struct model *m, const struct model_thread *t,
	struct model_span span)
{
	return model_span_overlap_ns(longest_of(m, t, span.until_ns), span);
}

uint64_t model_waits_in_ns(const struct model *m, const struct model_thread *t,
	struct model_span span)
{
	const uint64_t from_ns = model_counted_from_ns(m);
	const struct model_span longest = longest_of(m, t, span.until_ns);
	const uint64_t more_ns = hangs_on_ns(m, t, span.until_ns);
	const struct model_span all = { from_ns + t->from_ms * NSEC_PER_MSEC,
		from_ns + t->until_ms * NSEC_PER_MSEC + more_ns };
	const uint64_t rest_ns =
		minus(t->waited_ms * NSEC_PER_MSEC + more_ns, longest.until_ns - longest.from_ns);

	if (all.until_ns <= all.from_ns)
		return 0;
	return model_span_overlap_ns(longest, span) +
		(uint64_t)((double)rest_ns * (double)model_span_overlap_ns(all, span) /
			(double)(all.until_ns - all.from_ns));
}
