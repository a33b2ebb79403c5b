// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE 1
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stallio_options.h"

/* Below this the numbers belong to what the process needs itself while it opens its files. */
#define HOLD_FD_MIN 10u

static const struct operation operations[] = {
	{ .name = "read" },
	{ .name = "write", .writes = true },
	{ .name = "pread", .positional = true },
	{ .name = "pwrite", .writes = true, .positional = true },
	{ .name = "preadv", .positional = true, .vectored = true },
	{ .name = "pwritev", .writes = true, .positional = true, .vectored = true },
	{ .name = "spin-read", .positional = true, .spins = true },
	{ .name = "pipe-read", .source = SOURCE_PIPE },
	{ .name = "socket-read", .source = SOURCE_SOCKET },
	{ .name = "tty-read", .source = SOURCE_TTY },
};

static const char usage_text[] =
	"usage: stallio --op read|write|pread|pwrite|preadv|pwritev --file PATH [OPTION]...\n"
	"       stallio --op spin-read --file PATH [--threads N] [--seconds N]\n"
	"       stallio --op pipe-read|socket-read|tty-read [--threads N] [--seconds N]\n"
	"\n"
	"Each thread opens the file itself, does its operations at offsets of its own, and prints one\n"
	"JSON line for each: pid, tid, comm, fd, path, dev, inode, op, offset, bytes, ret, start_mono_ns,\n"
	"dur_ns.\n"
	"\n"
	"  --op OP        what each thread does; the pipe, socket and tty reads block for --seconds and\n"
	"                 return, spin-read reads one cached byte as often as it can and prints how often\n"
	"  --file PATH    file or block device; created if it is to be written\n"
	"  --direct       O_DIRECT; offset and length must be multiples of 512\n"
	"  --offset N     where the first thread starts (0); N may end in K, M or G\n"
	"  --length N     bytes per operation (4096); each operation has pages of its own\n"
	"  --threads N    threads (1)\n"
	"  --count N      operations per thread (1)\n"
	"  --segments N   a vectored operation has N segments, each the same buffer of --length bytes\n"
	"  --fsync        fsync after each write, with a line of its own\n"
	"  --again        do what comes last, fsync or operation, once more, the same call\n"
	"                 and without leaving the CPU between them\n"
	"  --hold-fd N    thread i holds its file as descriptor N+i (10 or more); --fd is the same\n"
	"  --comm NAME    name of each thread\n"
	"  --seconds N    length of the waiting and spinning operations (1)\n"
	"  --ready FILE   created when all threads have opened their file\n"
	"  --go FILE      start when this file exists, at most 120 s later\n"
	"  --stay FILE    all threads stay until this file exists, at most 600 s\n"
	"  --done FILE    created when all operations have returned; needs --stay\n"
	"  --json         one JSON line per operation; the only format\n"
	"  --clock        print the time of that clock now, in nanoseconds, and end\n"
	"\n"
	"Exit status: 0 every operation moved all its bytes, 1 one did not or could not begin,\n"
	"2 usage error.\n";

enum option_id {
	OPT_OP = 1,
	OPT_FILE,
	OPT_DIRECT,
	OPT_OFFSET,
	OPT_LENGTH,
	OPT_THREADS,
	OPT_COUNT,
	OPT_SEGMENTS,
	OPT_FSYNC,
	OPT_AGAIN,
	OPT_HOLD_FD,
	OPT_COMM,
	OPT_SECONDS,
	OPT_READY,
	OPT_GO,
	OPT_STAY,
	OPT_DONE,
	OPT_JSON,
	OPT_CLOCK,
	OPT_HELP,
};

static const struct option long_options[] = {
	{ "op", required_argument, NULL, OPT_OP },
	{ "file", required_argument, NULL, OPT_FILE },
	{ "direct", no_argument, NULL, OPT_DIRECT },
	{ "offset", required_argument, NULL, OPT_OFFSET },
	{ "length", required_argument, NULL, OPT_LENGTH },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ "segments", required_argument, NULL, OPT_SEGMENTS },
	{ "fsync", no_argument, NULL, OPT_FSYNC },
	{ "again", no_argument, NULL, OPT_AGAIN },
	{ "hold-fd", required_argument, NULL, OPT_HOLD_FD },
	{ "fd", required_argument, NULL, OPT_HOLD_FD },
	{ "comm", required_argument, NULL, OPT_COMM },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "ready", required_argument, NULL, OPT_READY },
	{ "go", required_argument, NULL, OPT_GO },
	{ "stay", required_argument, NULL, OPT_STAY },
	{ "done", required_argument, NULL, OPT_DONE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "clock", no_argument, NULL, OPT_CLOCK },
	{ "help", no_argument, NULL, OPT_HELP },
	{},
};

static int usage_error(const char *what, const char *detail)
{
	fprintf(stderr, "stallio: %s: %s (see stallio --help)\n", what, detail);
	return -EINVAL;
}

static int parse_number(const char *name, const char *text, uint64_t min, uint64_t max,
	uint64_t *ret_value)
{
	static const char suffixes[] = "KMG";
	char detail[128], *end;
	const char *suffix;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	suffix = *end ? strchr(suffixes, *end) : NULL;
	if (suffix && !end[1]) {
		unsigned int shift = 10 * (unsigned int)(suffix - suffixes + 1);

		end++;
		value = value > (UINT64_MAX >> shift) ? UINT64_MAX : value << shift;
	}
	if (errno || *text < '0' || *text > '9' || *end || value < min || value > max) {
		snprintf(detail, sizeof(detail),
			"'%.40s' is not a number from %" PRIu64 " to %" PRIu64, text, min, max);
		return usage_error(name, detail);
	}
	*ret_value = value;
	return 0;
}

static int parse_operation(const char *name, const struct operation **ret_op)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (!strcmp(name, operations[i].name)) {
			*ret_op = &operations[i];
			return 0;
		}
	}
	return usage_error("--op: no such operation", name);
}

static int parse_option(int id, const char *arg, struct options *ret_opt)
{
	switch (id) {
	case OPT_OP:
		return parse_operation(arg, &ret_opt->op);
	case OPT_FILE:
		ret_opt->path = arg;
		return 0;
	case OPT_DIRECT:
		ret_opt->direct = true;
		return 0;
	case OPT_OFFSET:
		return parse_number("--offset", arg, 0, 1ull << 50, &ret_opt->offset_bytes);
	case OPT_LENGTH:
		return parse_number("--length", arg, 1, 1ull << 30, &ret_opt->length_bytes);
	case OPT_THREADS:
		return parse_number("--threads", arg, 1, 4096, &ret_opt->threads);
	case OPT_COUNT:
		return parse_number("--count", arg, 1, 1000000, &ret_opt->count);
	case OPT_SEGMENTS:
		return parse_number("--segments", arg, 1, STALLIO_SEGMENTS_MAX, &ret_opt->segments);
	case OPT_FSYNC:
		ret_opt->fsync = true;
		return 0;
	case OPT_AGAIN:
		ret_opt->again = true;
		return 0;
	case OPT_HOLD_FD:
		return parse_number("--hold-fd", arg, HOLD_FD_MIN, 1u << 20, &ret_opt->hold_fd);
	case OPT_COMM:
		ret_opt->comm = arg;
		return 0;
	case OPT_SECONDS:
		return parse_number("--seconds", arg, 1, 3600, &ret_opt->seconds);
	case OPT_READY:
		ret_opt->ready_path = arg;
		return 0;
	case OPT_GO:
		ret_opt->go_path = arg;
		return 0;
	case OPT_STAY:
		ret_opt->stay_path = arg;
		return 0;
	case OPT_DONE:
		ret_opt->done_path = arg;
		return 0;
	case OPT_JSON:
		return 0;
	default:
		/* getopt has said what is wrong. */
		return -EINVAL;
	}
}

static void print_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%lld%09ld\n", (long long)now.tv_sec, now.tv_nsec);
}

static int check_options(struct options *opt)
{
	bool timed;

	if (!opt->op)
		return usage_error("--op", "is missing");
	timed = opt->op->source != SOURCE_FILE || opt->op->spins;
	if (opt->op->source == SOURCE_FILE && !opt->path)
		return usage_error("--file", "is missing");
	if (opt->op->source != SOURCE_FILE && (opt->path || opt->direct))
		return usage_error(opt->op->name, "takes no --file and no --direct");
	if (opt->op->spins && opt->direct)
		return usage_error(opt->op->name, "is about cached reads: --direct contradicts");
	if (opt->fsync && !opt->op->writes)
		return usage_error("--fsync", "needs an operation that writes");
	if (opt->again && (timed || !opt->op->positional))
		return usage_error("--again", "needs an operation with an offset of its own");
	if (opt->segments && !opt->op->vectored)
		return usage_error("--segments", "belongs to the vectored operations");
	if (opt->direct && (opt->offset_bytes % 512 || opt->length_bytes % 512))
		return usage_error("--direct", "offset and length must be multiples of 512");
	if (opt->done_path && !opt->stay_path)
		return usage_error("--done", "needs --stay");
	if (!timed && opt->seconds)
		return usage_error("--seconds", "belongs to the waiting and spinning operations");
	if (timed) {
		opt->seconds = opt->seconds ? opt->seconds : 1;
		opt->length_bytes = 1;
		opt->count = 1;
	}
	return 0;
}

int stallio_options_parse(int argc, char **argv, struct options *ret_opt)
{
	struct options opt = { .length_bytes = STALLIO_PAGE_BYTES, .threads = 1, .count = 1 };
	int id, err;

	while ((id = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (id == OPT_HELP) {
			fputs(usage_text, stdout);
			exit(0);
		}
		if (id == OPT_CLOCK) {
			print_clock();
			exit(0);
		}
		err = parse_option(id, optarg, &opt);
		if (err)
			return err;
	}
	if (optind < argc)
		return usage_error("unexpected argument", argv[optind]);
	err = check_options(&opt);
	if (!err)
		*ret_opt = opt;
	return err;
}
