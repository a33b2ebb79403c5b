/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns the text of a socket address into the address itself.
 * Used by the configuration and by the health check; depends on no room.
 * Never asks a name server: a host is given by its number.
 */
#ifndef IOSTALL_UTIL_ADDRESS_H
#define IOSTALL_UTIL_ADDRESS_H

#include <sys/socket.h>

/* "unix:/path", "192.0.2.1:3306" or "[2001:db8::1]:3306". 0 or -EINVAL. */
int address_parse(const char *s, struct sockaddr_storage *ret_address, socklen_t *ret_size);

#endif
