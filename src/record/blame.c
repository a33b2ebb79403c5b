/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record.h"

#include <string.h>

#include "util/text.h"

bool record_blame_is_news(struct record_blame *kept, const struct record_verdict *v)
{
	struct record_blame blame = { .class = v->class, .dev = v->dev };
	bool is_news;

	text_copy(blame.waits_for, sizeof(blame.waits_for), v->waits_for);
	for (uint32_t i = 0; i < v->parts_count && i < RECORD_PARTS_MAX; i++)
		if (v->parts[i].what == RECORD_WHAT_culprit)
			blame.pid = v->parts[i].pid;
	is_news = blame.class != kept->class || strcmp(blame.waits_for, kept->waits_for) != 0 ||
		blame.dev.major != kept->dev.major || blame.dev.minor != kept->dev.minor ||
		blame.pid != kept->pid;
	*kept = blame;
	return is_news;
}
