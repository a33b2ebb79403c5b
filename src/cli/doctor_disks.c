/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "cli/doctor.h"
#include "util/file.h"
#include "watch/watch.h"

/* In the directory of the device: its name in sysfs is not always that of /proc/diskstats. */
static bool counts_requests(const struct record_disk *disk, char ret_path[PATH_MAX],
	const char *sysfs)
{
	char buf[8];

	snprintf(ret_path, PATH_MAX, "%s/dev/block/%u:%u/queue/iostats", sysfs, disk->dev.major,
		disk->dev.minor);
	return file_read_at(AT_FDCWD, ret_path, buf, sizeof(buf)) <= 0 || *buf != '0';
}

void doctor_report_disks(struct doctor *d, const struct watch *watch)
{
	unsigned int judged = 0;

	for (unsigned int i = 0; i < WATCH_DISKS_MAX; i++) {
		uint32_t serial;
		const struct record_disk *disk = watch_disk_in_slot(watch, i, &serial);
		char path[PATH_MAX];

		if (!disk)
			continue;
		judged++;
		if (!counts_requests(disk, path, d->o->sysfs))
			doctor_report(d, "trigger", "disks", DEGRADED,
				"%s does not count its requests, so no rule sees that it is busy: "
				"echo 1 >%s",
				disk->dev_name, path);
	}
	if (judged)
		doctor_report(d, "trigger", "disks", WORKS, "%u %s judged", judged,
			judged == 1 ? "disk is" : "disks are");
	else
		doctor_report(d, "trigger", "disks", DEGRADED,
			"watch.device matches no disk of %s/diskstats", d->o->procfs);
}
