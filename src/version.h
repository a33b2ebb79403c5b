/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef IOSTALL_VERSION_H
#define IOSTALL_VERSION_H

#define IOSTALL_VERSION "0.1.0"

#endif
