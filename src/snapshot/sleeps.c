/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/sleeps.h"

bool sleeps_add_up(const struct event_sleep *sleep, uint64_t start_ns, uint64_t now_ns,
	uint64_t *ret_slept_ns)
{
	uint64_t age_ns = now_ns - start_ns, slept_ns = sleep->slept_ns;

	if (sleep->op.start_ns == 0 || sleep->op.start_ns < start_ns || now_ns <= start_ns)
		return false;
	if (sleep->asleep_ns && now_ns > sleep->asleep_ns)
		slept_ns += now_ns - sleep->asleep_ns;
	*ret_slept_ns = slept_ns < age_ns ? slept_ns : age_ns;
	return true;
}
