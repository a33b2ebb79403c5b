// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Prints the nanoseconds that a million instructions take by the guest's clock: with -icount a
 * million, unless the guest measured its TSC badly at boot. The fastest of some rounds, since right
 * after the boot others want the only CPU as well.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define MILLIONS 20
#define ROUNDS 20
#define INSTRUCTIONS_PER_LOOP 2

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t take_round(void)
{
	uint64_t loops = MILLIONS * UINT64_C(1000000) / INSTRUCTIONS_PER_LOOP;
	uint64_t start_ns = now_ns();

	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(loops) : : "cc");
	return (now_ns() - start_ns) / MILLIONS;
}

int main(void)
{
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t round_ns = take_round();

		if (round_ns < best_ns)
			best_ns = round_ns;
	}
	printf("%" PRIu64 "\n", best_ns);
	return 0;
}
