/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/history.h"

#include <errno.h>
#include <stdlib.h>

static unsigned int place_of(const struct history *h, unsigned int i)
{
	return (h->newest + h->size - (h->count - 1) + i) % h->size;
}

int history_resize(struct history *h, unsigned int size)
{
	struct record_reading *samples;
	unsigned int kept = h->count < size ? h->count : size;

	if (size == h->size)
		return 0;
	samples = calloc(size, sizeof(*samples));
	if (!samples)
		return -ENOMEM;
	for (unsigned int i = 0; i < kept; i++)
		samples[i] = h->samples[place_of(h, h->count - kept + i)];
	free(h->samples);
	*h = (struct history){
		.samples = samples,
		.size = size,
		.count = kept,
		.newest = kept ? kept - 1 : size - 1,
	};
	return 0;
}

void history_free(struct history *h)
{
	free(h->samples);
	*h = (struct history){ 0 };
}

void history_add(struct history *h, const struct record_reading *sample)
{
	h->newest = (h->newest + 1) % h->size;
	h->samples[h->newest] = *sample;
	if (h->count < h->size)
		h->count++;
}

const struct record_reading *history_last(const struct history *h)
{
	return h->count ? &h->samples[h->newest] : NULL;
}

const struct record_reading *history_get(const struct history *h, unsigned int i)
{
	return i < h->count ? &h->samples[place_of(h, i)] : NULL;
}
