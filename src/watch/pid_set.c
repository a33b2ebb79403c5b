/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/pid_set.h"

#include <string.h>

static uint32_t find_slot(const struct pid_set *set, int32_t pid)
{
	/* Pids in use at the same time are mostly consecutive, so the pid itself is a good hash. */
	uint32_t i = (uint32_t)pid % PID_SET_SLOTS;

	while (set->slots[i] != 0 && set->slots[i] != pid)
		i = (i + 1) % PID_SET_SLOTS;
	return i;
}

bool pid_set_has(const struct pid_set *set, int32_t pid)
{
	return set->slots[find_slot(set, pid)] == pid;
}

bool pid_set_add(struct pid_set *set, int32_t pid)
{
	uint32_t i = find_slot(set, pid);

	if (set->slots[i] == pid)
		return true;
	if (set->count >= PID_SET_MAX)
		return false;
	set->slots[i] = pid;
	set->count++;
	return true;
}

/* Moves up those behind it that would not be found any more. */
void pid_set_remove(struct pid_set *set, int32_t pid)
{
	uint32_t hole = find_slot(set, pid), i = hole;

	if (set->slots[hole] != pid)
		return;
	set->count--;
	for (;;) {
		i = (i + 1) % PID_SET_SLOTS;
		if (set->slots[i] == 0)
			break;
		/* How far it is from where the search for it begins, and how far the hole is. */
		if ((i - (uint32_t)set->slots[i]) % PID_SET_SLOTS < (i - hole) % PID_SET_SLOTS)
			continue;
		set->slots[hole] = set->slots[i];
		hole = i;
	}
	set->slots[hole] = 0;
}

void pid_set_clear(struct pid_set *set)
{
	memset(set, 0, sizeof(*set));
}
