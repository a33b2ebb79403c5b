/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's own alarm for I/O pressure (Documentation/accounting/psi.rst): it is told before the
 * next sample is due. Owned by the daemon; the rule psi_io_full decides whether an incident opens.
 * Costs nothing while no task waits for I/O.
 */
#ifndef IOSTALL_WATCH_PRESSURE_TRIGGER_H
#define IOSTALL_WATCH_PRESSURE_TRIGGER_H

/* So much of the last half second, in percent. */
#define PRESSURE_TRIGGER_PCT 80

/*
 * A descriptor on which poll() returns POLLPRI, at most once in 500 ms, when all tasks that were
 * not idle waited for I/O in 400 of 500 ms. Such a window needs CAP_SYS_RESOURCE, which can be
 * given up afterwards. -ENOENT: a kernel without pressure stall information; -EINVAL or -EPERM:
 * without the capability; -EACCES: 5.10 without CAP_DAC_OVERRIDE, which suffices there;
 * -EOPNOTSUPP: with psi=0.
 */
int pressure_trigger_open(const char *procfs);

#endif
