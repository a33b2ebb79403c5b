/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How often a test looks for a state that comes at some time. A host that is busy may let it wait
 * for long, so this is no limit of time; a test whose state never comes fails before its program is
 * ended.
 */
#ifndef IOSTALL_TESTS_TEST_WAITS_H
#define IOSTALL_TESTS_TEST_WAITS_H

#define WAITS_MAX 250000

#endif
