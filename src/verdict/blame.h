/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who loaded a disk.
 * Used by the graph; the sentences say it.
 * Blames by the time of the disk, and nobody with less than half of it.
 */
#ifndef IOSTALL_VERDICT_BLAME_H
#define IOSTALL_VERDICT_BLAME_H

#include "model/model.h"

enum culprit_kind {
	CULPRIT_NOBODY,
	CULPRIT_STATEMENT, /* one session, or several with the same statement */
	CULPRIT_THREAD,	   /* of a program with others */
	CULPRIT_PROCESS,
	CULPRIT_PROGRAM,    /* several processes of one name */
	CULPRIT_UNIT,	    /* all processes of a systemd unit or container */
	CULPRIT_RESYNC,	    /* the resync, check or rebuild of an array */
	CULPRIT_WRITE_BACK, /* kernel threads, for programs that are not known */
	CULPRIT_KERNEL,	    /* the same, for what is not known either */
};

struct culprit {
	enum culprit_kind kind;
	struct model_who who;
	char role[RECORD_NAME_SIZE]; /* of a thread of a database server; "" */
	char unit[MODEL_PATH_SIZE];
	uint64_t cgroup; /* of the unit, or of who sent the requests; 0: not known */
	/* Of CULPRIT_STATEMENT. `likely`: its server did it, most probably for this statement. */
	struct record_io_statement statement;
	bool is_likely;
	uint32_t count;	  /* of processes */
	uint64_t busy_ns; /* of the disk */
	uint64_t bytes;
	uint64_t read_bytes;
	uint64_t requests[MODEL_KINDS];
	double pct;		    /* of all that the disk did */
	bool has_half;		    /* it is to blame; else it only did most */
	bool is_probable;	    /* others may have done a part of it */
	bool is_by_counters;	    /* most of it was before tracing, by its own counters */
	struct model_who through;   /* the kernel thread that did it for the culprit; pid 0: none */
	char file[MODEL_PATH_SIZE]; /* with at least half of it; "" */
	char relation[RECORD_RELATION_SIZE];
	double untraced_pct; /* of what the disk did, what is known of nobody */
};

/* Of a disk that is saturated, or behind a limit. kind NOBODY: nobody is known. */
void blame(const struct model *model, int disk, struct culprit *ret_culprit);

#endif
