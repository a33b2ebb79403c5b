/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/host_stats.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "watch/lines.h"

static const char *const pressure_paths[HOST_PRESSURES] = {
	"pressure/io",
	"pressure/memory",
	"pressure/cpu",
};

void host_stats_init(struct host_stats *h)
{
	*h = (struct host_stats){ .stat_fd = -1, .vmstat_fd = -1 };
	for (unsigned int i = 0; i < HOST_PRESSURES; i++)
		h->pressures[i].fd = -1;
}

static int open_read(int dir_fd, const char *path)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int host_stats_open(struct host_stats *h, int procfs_fd)
{
	h->ticks_per_sec = (double)sysconf(_SC_CLK_TCK);
	h->stat_fd = open_read(procfs_fd, "stat");
	if (h->stat_fd < 0)
		return h->stat_fd;
	h->vmstat_fd = open_read(procfs_fd, "vmstat");
	for (unsigned int i = 0; i < HOST_PRESSURES; i++)
		h->pressures[i].fd = open_read(procfs_fd, pressure_paths[i]);
	return 0;
}

void host_stats_close(struct host_stats *h)
{
	for (unsigned int i = 0; i < HOST_PRESSURES; i++)
		h->pressures[i].fd = close_fd(h->pressures[i].fd);
	h->vmstat_fd = close_fd(h->vmstat_fd);
	h->stat_fd = close_fd(h->stat_fd);
}

static double clamp(double value, double max)
{
	return value > max ? max : value;
}

/* iowait may decrease, see proc_stat(5), and so may any of them when a CPU goes off-line. */
static double delta_sec(const struct host_stats *h, uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) / h->ticks_per_sec : 0;
}

static void take_stat_line(void *arg, struct cursor line)
{
	/* A line that cannot be parsed is ignored. */
	(void)watch_parse_stat_line(line, arg);
}

int host_stats_take_cpus(struct host_stats *h, const struct watch_clock *clock, char *buf,
	size_t size, struct record_reading *s)
{
	uint64_t now_ns = watch_clock_ns(clock);
	struct watch_stat stat = { 0 };
	double passed_sec, cpus;
	int r;

	r = lines_read_fd(h->stat_fd, buf, size, take_stat_line, &stat);
	if (r < 0)
		return r;
	if (!stat.has_cpu)
		return -EINVAL;
	s->procs_running = stat.procs_running;
	s->procs_blocked = stat.procs_blocked;
	s->cpu.cpus = stat.cpus;
	if (h->stat_before.has_cpu && now_ns > h->stat_before_ns) {
		passed_sec = (double)(now_ns - h->stat_before_ns) / (double)NSEC_PER_SEC;
		cpus = stat.cpus ? stat.cpus : 1;
		s->cpu.iowait_cpus = delta_sec(h, stat.iowait_ticks, h->stat_before.iowait_ticks);
		s->cpu.iowait_cpus = clamp(s->cpu.iowait_cpus / passed_sec, cpus);
		s->cpu.iowait_pct = 100 * s->cpu.iowait_cpus / cpus;
		s->cpu.busy_pct = delta_sec(h, stat.busy_ticks, h->stat_before.busy_ticks);
		s->cpu.busy_pct = clamp(100 * s->cpu.busy_pct / passed_sec / cpus, 100);
	}
	h->stat_before = stat;
	h->stat_before_ns = now_ns;
	return 0;
}

static double pressure_pct(uint64_t now_us, uint64_t before_us, uint64_t passed_ns)
{
	if (now_us <= before_us)
		return 0;
	return clamp(100.0 * 1e3 * (double)(now_us - before_us) / (double)passed_ns, 100);
}

static void take_pressure(struct host_pressure_state *state, const struct watch_clock *clock,
	char *buf, size_t size, struct record_pressure *psi)
{
	uint64_t now_ns = watch_clock_ns(clock);
	struct watch_pressure pressure;
	ssize_t n;

	n = state->fd < 0 ? -ENOENT : file_read_fd(state->fd, buf, size);
	/*
	 * With psi=0 on the kernel's command line the file exists, but reading it gives EOPNOTSUPP.
	 */
	if (n < 0 || watch_parse_pressure(buf, (size_t)n, &pressure) < 0) {
		state->has_before = false;
		return;
	}
	psi->present = true;
	if (state->has_before && now_ns > state->before_ns) {
		uint64_t passed_ns = now_ns - state->before_ns;

		psi->some_pct = pressure_pct(pressure.some_us, state->before.some_us, passed_ns);
		if (pressure.has_full && state->before.has_full)
			psi->full_pct =
				pressure_pct(pressure.full_us, state->before.full_us, passed_ns);
	}
	state->has_before = true;
	state->before = pressure;
	state->before_ns = now_ns;
}

void host_stats_take_pressures(struct host_stats *h, const struct watch_clock *clock, char *buf,
	size_t size, struct record_reading *s)
{
	take_pressure(&h->pressures[HOST_PRESSURE_IO], clock, buf, size, &s->psi.io);
	take_pressure(&h->pressures[HOST_PRESSURE_MEMORY], clock, buf, size, &s->psi.memory);
	take_pressure(&h->pressures[HOST_PRESSURE_CPU], clock, buf, size, &s->psi.cpu);
}

static void take_refaults_line(void *arg, struct cursor line)
{
	refaults_take_line(line, arg);
}

void host_stats_read_vmstat(struct host_stats *h, char *buf, size_t size)
{
	h->vmstat = (struct refaults){ 0 };
	h->vmstat_is_read = h->vmstat_fd >= 0 &&
		lines_read_fd(h->vmstat_fd, buf, size, take_refaults_line, &h->vmstat) == 0;
}

void host_stats_take_memory(struct host_stats *h, const struct disks_zram *zram,
	struct record_memory *memory)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const struct refaults now = h->vmstat;
	struct refaults since;

	if (!h->vmstat_is_read) {
		h->has_vmstat_before = false;
		return;
	}
	memory->present = h->has_vmstat_before;
	since = refaults_since(&now, h->has_vmstat_before ? &h->vmstat_before : &now);
	memory->reread_bytes = since.file * page;
	memory->swapped_in_bytes = since.swapped_in * page;
	memory->swapped_out_bytes = since.swapped_out * page;
	memory->zram_in_bytes = zram->read_bytes;
	memory->zram_out_bytes = zram->written_bytes;
	memory->active_bytes = (since.file_active + since.anon_active) * page;
	memory->reclaimed_bytes = (since.reclaimed_kswapd + since.reclaimed_direct) * page;
	memory->major_faults = since.major_faults;
	h->vmstat_before = now;
	h->has_vmstat_before = true;
}

bool host_stats_has_no_io(const struct host_stats *h)
{
	const struct refaults *now = &h->vmstat, *before = &h->vmstat_before;

	return h->vmstat_is_read && h->has_vmstat_before && now->read_kib > 0 &&
		now->read_kib == before->read_kib && now->written_kib == before->written_kib;
}
