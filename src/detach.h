/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thread that detaches probes: closing them waits for RCU grace periods, 0.05 to 0.3 s.
 * Owned by the session.
 * Never touches anything but the links it was given.
 */
#ifndef IOSTALL_DETACH_H
#define IOSTALL_DETACH_H

#include <stdint.h>

struct bpf_link;
struct detacher;

int detacher_new(struct detacher **ret_detacher);
/* Waits for work under way. NULL is accepted. */
struct detacher *detacher_free(struct detacher *detacher);

/* Becomes readable when a batch is done. */
int detacher_fd(const struct detacher *detacher);

/* Takes the links, which are copied; one batch at a time. */
void detacher_start(struct detacher *detacher, struct bpf_link *const *links, unsigned int count);

/* After detacher_fd() was readable: how long the batch took. */
uint64_t detacher_finish(struct detacher *detacher);

#endif
