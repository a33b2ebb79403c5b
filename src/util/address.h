/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addresses of stream sockets as a person writes them.
 * Used by every room; depends on nothing above.
 * Never asks a name server.
 */
#ifndef IOSTALL_UTIL_ADDRESS_H
#define IOSTALL_UTIL_ADDRESS_H

#include <sys/socket.h>

/* "unix:/path", "192.0.2.1:3306" or "[2001:db8::1]:3306". 0 or -EINVAL. */
int address_parse(const char *s, struct sockaddr_storage *ret_address, socklen_t *ret_size);

#endif
