/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of programs instead of those of their threads: MariaDB since 11 calls a thread
 * "one_connection", and nobody looks for a program of that name.
 * Called once, before the verdict.
 * Never changes the name of what is no thread of a known process.
 */
#ifndef IOSTALL_VERDICT_PROGRAMS_H
#define IOSTALL_VERDICT_PROGRAMS_H

#include "verdict/facts.h"

/*
 * The names of processes are those that the facts have of disks and databases. What the old name of
 * the busiest thread of a disk tells is kept as its role.
 */
void verdict_name_programs(struct verdict_facts *facts);

#endif
