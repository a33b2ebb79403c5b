/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the name of a disk says about its relation to another one.
 * Used by rooms that have names from the kernel, or from a record.
 * Never asks the kernel: in an incident its answer may come too late.
 */
#ifndef IOSTALL_UTIL_DISK_NAME_H
#define IOSTALL_UTIL_DISK_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* "sdb1" is a partition of "sdb", "nvme0n1p2" one of "nvme0n1". */
bool disk_name_is_partition_of(const char *name, const char *disk);

/*
 * NVMe with native multipath: file systems are on the disk "nvme0n1", and requests go to one of
 * its paths, such as "nvme0c1n1" by controller 1, which is hidden. The kernel chooses both names in
 * nvme_mpath_set_disk_name() or nvme_alloc_ns(). Writes the name of the disk; false, and it is
 * empty: the name is not that of a path, or has no room.
 */
bool disk_name_of_path(const char *path, char *ret_disk, size_t size);
/* Whether disks of that name stand on others as a rule: those of dm, md and loop. */
bool disk_name_is_stacked(const char *name);

/* Whether the one is the other, a partition of it, or has it as a path. */
bool disk_name_is_on(const char *name, const char *disk);

#endif
