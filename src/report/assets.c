/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files are those that mk/report.mk makes of report/. */
#include "report/assets.h"

/* A compiler of C 11 has no better way to embed a file. The assembler searches where it is told. */
#define EMBED(name, file)                                                                          \
	__asm__(".pushsection .rodata\n"                                                           \
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
