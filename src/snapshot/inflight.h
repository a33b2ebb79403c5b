/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The maps in which BPF programs note operations in flight, and the scan that reads them.
 * Maps are made by src/probes/maps.c; the session scans them each second while tracing.
 * Never deletes an entry while programs are attached: the thread may be writing a new one.
 */
#ifndef IOSTALL_SNAPSHOT_INFLIGHT_H
#define IOSTALL_SNAPSHOT_INFLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "iostall/event.h"

/* As many as an incident follows (INCIDENT_STUCK_MAX). */
#define INFLIGHT_SCAN_MAX 12288
#define INFLIGHT_SCAN_ROOM 1024
#define INFLIGHT_BATCH 64
#define INFLIGHT_VALUE_MAX 1024

/*
 * A map of operations in flight: keys of 4 or 8 bytes, values that begin with a struct
 * event_inflight.
 */
struct inflight_map {
	int fd;
	uint32_t key_size;
	uint32_t value_size;
};

struct inflight_item {
	uint64_t key; /* thread id, or the key of a request */
	uint64_t start_ns;
	uint32_t tid;
	uint8_t op; /* enum event_op */
};

struct inflight_scan {
	uint32_t count;
	uint32_t left_out;    /* the youngest ones, beyond INFLIGHT_SCAN_MAX */
	uint64_t youngest_ns; /* of those that are kept, once there are so many; else UINT64_MAX */
	/* Oldest first; what is beyond INFLIGHT_SCAN_MAX is room to sort in. 0.4 MB in all. */
	struct inflight_item items[INFLIGHT_SCAN_MAX + INFLIGHT_SCAN_ROOM];
	_Alignas(8) unsigned char keys[INFLIGHT_BATCH * sizeof(uint64_t)];
	_Alignas(8) unsigned char values[INFLIGHT_BATCH * INFLIGHT_VALUE_MAX];
};

/* Reads all operations in flight for at least min_age_ns. Returns 0 or a negative errno. */
int inflight_collect(const struct inflight_map *map, uint64_t now_ns, uint64_t min_age_ns,
	struct inflight_scan *ret_scan);

/* Reads one entry; false when the key has none or its operation is not in flight. */
bool inflight_find(const struct inflight_map *map, uint64_t key, struct event_inflight *ret_op);

/*
 * Deletes all entries; only while no program is attached. -ETIME: there are more, and each call
 * deletes some. Other errors are those of the map.
 */
int inflight_clear(const struct inflight_map *map, uint64_t deadline_ns);

#endif
