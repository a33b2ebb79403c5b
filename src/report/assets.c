/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files are those that mk/report.mk makes of report/. */
#include "report/assets.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * A compiler of C 11 has no better way to embed a file. The assembler searches where it is told. By
 * the name of the section the linker tells where it begins and ends.
 */
#define EMBED(name, file)                                                                          \
	__asm__(".pushsection report_assets, \"a\"\n"                                              \
		".globl " #name "\n" #name ":\n"                                                   \
		".incbin \"" file "\"\n"                                                           \
		".byte 0\n"                                                                        \
		".popsection\n")

EMBED(report_page, "page.html");
EMBED(report_pair_page, "pair.html");
EMBED(report_style, "page.css");
EMBED(report_script, "page.js");
EMBED(report_style_hash, "page.css.hash");
EMBED(report_script_hash, "page.js.hash");

extern const char __start_report_assets[], __stop_report_assets[];

void report_unlock_assets(void)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t begin = ((uintptr_t)__start_report_assets + page - 1) / page * page;
	const uintptr_t end = (uintptr_t)__stop_report_assets / page * page;

	/* A file has them, so there is nothing to lose. */
	if (end > begin && munlock((void *)begin, end - begin) == 0)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}
