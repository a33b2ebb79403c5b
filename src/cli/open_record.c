/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/open_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/exit.h"
#include "util/log.h"
#include "util/text.h"

/* Of the incidents that a name may mean, the newest are listed. */
#define CANDIDATES_MAX 10

static void cleanup_store(struct record_store **store)
{
	record_store_free(*store);
}

struct record_store *open_store(const struct config *c)
{
	struct record_store *store;
	const char *dir;
	int r = record_store_new(c->record.spool_dir, c->record.dir, &store, &dir);

	if (r < 0) {
		log_error("cannot read %s: %s", dir, strerror(-r));
		return NULL;
	}
	dir = record_store_silent_dir(store);
	if (dir)
		log_warning("%s does not answer, so what is recorded there is left out", dir);
	return store;
}

static int open_file(const char *name, char ret_path[RECORD_PATH_SIZE])
{
	/* A FIFO would wait for a writer. */
	_cleanup_close_ int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	text_copy(ret_path, RECORD_PATH_SIZE, name);
	if (fd < 0 || fstat(fd, &st) < 0) {
		log_error("cannot open %s: %s", name, strerror(errno));
		return -1;
	}
	if (!S_ISREG(st.st_mode)) {
		log_error("%s is not a regular file; expected the file of an incident", name);
		return -1;
	}
	return TAKE_FD(fd);
}

static void log_candidates(const struct record_store *store, const char *name)
{
	const char *ids[CANDIDATES_MAX];
	size_t count = record_store_match(store, name, ids, CANDIDATES_MAX);
	char buf[64 + CANDIDATES_MAX * (RECORD_ID_SIZE + 2)];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	for (size_t i = 0; i < count && i < CANDIDATES_MAX; i++) {
		text_add(&t, i ? ", " : "");
		text_add(&t, ids[i]);
	}
	if (count > CANDIDATES_MAX)
		text_addf(&t, " and %zu older ones", count - CANDIDATES_MAX);
	log_error("\"%s\" is part of %zu incidents: %s", name, count, buf);
}

/* Why there is none. */
static void log_not_found(const struct config *c, const struct record_store *store,
	const char *name)
{
	size_t count = record_store_count(store);

	if (strncmp(name, "last", strlen("last")) != 0)
		log_error("no incident %s in %s and %s", name, c->record.spool_dir, c->record.dir);
	else if (count == 0)
		log_error("no incidents in %s and %s", c->record.spool_dir, c->record.dir);
	else
		log_error("no incident %s: there are %zu in %s and %s", name, count,
			c->record.spool_dir, c->record.dir);
}

int open_record(const struct config *c, const char *name, char ret_path[RECORD_PATH_SIZE])
{
	_cleanup_(cleanup_store) struct record_store *store = NULL;
	const char *id = NULL;
	int fd, r;

	if (strchr(name, '/'))
		return open_file(name, ret_path);
	store = open_store(c);
	if (!store)
		return -1;
	r = record_store_find(store, name, &id);
	if (r == -ENOTUNIQ) {
		log_candidates(store, name);
		return -1;
	}
	/* An incident's file name is not an id, so it is looked for where the caller stands. */
	if (r < 0 && access(name, F_OK) == 0)
		return open_file(name, ret_path);
	if (r < 0) {
		log_not_found(c, store, name);
		return -1;
	}
	fd = record_store_open(store, id, ret_path);
	if (fd < 0)
		log_error("cannot open %s: %s", ret_path, record_store_strerror(fd));
	return fd < 0 ? -1 : fd;
}

int log_passed_lines(const char *path, const struct record_reader_counts *counts,
	const char *newer_are)
{
	if (counts->newer)
		log_warning("%s has %" PRIu64 " lines of a later version%s", path, counts->newer,
			newer_are);
	if (counts->unknown_values)
		log_warning("%s has %" PRIu64 " values of a later version, which count as unknown",
			path, counts->unknown_values);
	if (counts->garbage)
		log_error("%s has %" PRIu64 " lines that are not records", path, counts->garbage);
	return counts->garbage ? EXIT_CODE_RECORD : EXIT_CODE_OK;
}
