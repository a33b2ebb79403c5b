/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FNV-1a with 64 bits: a number for bytes, the same on each host and in each version.
 * Used for tables and to tell whether texts are the same.
 * Never for what somebody could choose to make others collide with.
 */
#ifndef IOSTALL_UTIL_HASH_H
#define IOSTALL_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The hash of nothing. XORed with a number it begins one of its own. */
#define HASH_BEGIN 0xcbf29ce484222325ull

/* Goes on from the hash of what was before. */
static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ull;
	return hash;
}

static inline uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = hash_bytes(hash, text, 1);
	return hash;
}

#endif
