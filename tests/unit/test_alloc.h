/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts every call of the allocator by the calling thread.
 * Included by the one file of a test program.
 * Never counts before counting_setup().
 */
#ifndef IOSTALL_TEST_ALLOC_H
#define IOSTALL_TEST_ALLOC_H

#include <stddef.h>
#include <stdlib.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define WITH_SANITIZER 1
#endif

/*
 * Of this thread: others may allocate. volatile: a compiler knows that malloc() changes no variable
 * of ours.
 */
static __thread volatile unsigned long allocations;

#ifdef WITH_SANITIZER
/* From sanitizer/allocator_interface.h, which gcc of Debian 12 does not bring. */
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
	void (*free_hook)(const volatile void *));

static void count_malloc(const volatile void *p, size_t size)
{
	(void)p;
	(void)size;
	allocations++;
}

static void count_free(const volatile void *p)
{
	(void)p;
}

static void counting_setup(void)
{
	__sanitizer_install_malloc_and_free_hooks(count_malloc, count_free);
}
#else
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	allocations++;
	return __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
	allocations++;
	return __libc_realloc(p, size);
}

static void counting_setup(void)
{
}
#endif

#endif
