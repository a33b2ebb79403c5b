/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps the process from waiting for the disk that it watches when the kernel is short of memory.
 * Called at the start, before threads and processes are made, which inherit it.
 * Never fails: where the kernel refuses it, the log says so.
 */
#ifndef IOSTALL_DAEMON_RECLAIM_H
#define IOSTALL_DAEMON_RECLAIM_H

/*
 * PR_SET_IO_FLUSHER: an allocation of this process does not write back or wait for pages of any
 * file system. Needs CAP_SYS_RESOURCE, which is given up afterwards.
 */
void reclaim_avoid_disks(void);

/* One heap for all threads, since each heap is locked in memory. */
void reclaim_set_heap(void);

/*
 * Code and data that were evicted are read back from the disk, which may be the one that stalls: a
 * call that took 1 s was measured. Called once more when probes have been loaded: the heap cannot
 * give back locked pages, and libbpf has used and freed some hundred kilobytes of them.
 */
void reclaim_lock_memory(void);

#endif
