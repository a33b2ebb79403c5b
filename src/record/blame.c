/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record.h"

bool record_blame_is_news(struct record_blame *kept, const struct record_verdict *v)
{
	struct record_blame blame = { v->class, v->waits_for, v->dev, 0 };
	bool is_news;

	for (uint32_t i = 0; i < v->parts_count && i < RECORD_PARTS_MAX; i++)
		if (v->parts[i].what == RECORD_WHAT_culprit)
			blame.pid = v->parts[i].pid;
	is_news = blame.class != kept->class || blame.waits_for != kept->waits_for ||
		blame.dev.major != kept->dev.major || blame.dev.minor != kept->dev.minor ||
		blame.pid != kept->pid;
	*kept = blame;
	return is_news;
}
