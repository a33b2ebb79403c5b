/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who waited for what in an incident, by its `stall` and `stuck` lines: groups of threads of one
 * program that waited for the same, and each of these threads.
 * Part of struct model; filled by model_add(), read by the verdict and the session.
 * Never says what was behind that: see verdict/graph.h.
 */
#ifndef IOSTALL_MODEL_WAITS_H
#define IOSTALL_MODEL_WAITS_H

#include "model/map_holders.h"
#include "model/used_files.h"
#include "model/who.h"
#include "record/record.h"

#define MODEL_GROUPS_MAX 128
/* A power of two, of which three quarters are used. */
#define MODEL_THREADS_MAX 4096

/* Threads of one program that waited for the same. */
struct model_wait {
	enum record_cause cause;
	int disk;	       /* index of that of their files; -1: none */
	struct record_dev dev; /* of the file system of the longest */
	bool is_kernel : 1;    /* they are kernel threads */
	bool is_early : 1;     /* they hung while the host was well */
	bool is_pile_up : 1;   /* of these, for so short that it may have been the begin of it */
	bool is_several : 1;   /* of several processes */
	bool has_alike : 1;    /* lines that stand for many */
	struct model_who who;  /* the longest */
	char process[RECORD_COMM_SIZE]; /* name of its program; "": as who.comm, or not known */
	enum record_op op;		/* what the longest did */
	uint64_t cgroup;
	uint64_t longest_ns;
	uint64_t start_ns;   /* of the longest, CLOCK_MONOTONIC */
	uint64_t writing_ns; /* the longest in a write or a sync */
	uint64_t waited_ns;  /* since MODEL_LEAD_NS before the trigger, no time of a thread twice */
	uint32_t threads;    /* that are in the table */
	uint32_t lock;	     /* id of the lock that one of the last waited for; 0: not known */
	/*
	 * Of lines that stand for many, each of which tells of one look at what hangs: how many did
	 * in the last look that has such, the most in one, and which these were.
	 */
	uint32_t now;
	uint32_t last_look;
	uint32_t at_once;
	uint32_t at_look;
	uint64_t alike_ns;
	uint64_t alike_hanging;
	uint64_t alike_before; /* the same before the present look */
	uint64_t alike_hanging_ns;
	uint64_t alike_hanging_max_ns;	 /* how long the longest of those has hung */
	uint64_t alike_at_ns;		 /* by the last line about them */
	char path[MODEL_PATH_SIZE];	 /* of the longest */
	char function[RECORD_NAME_SIZE]; /* that the longest waited in; "" */
};

/* What tells groups apart that wait for the same on the same disk; see waits.c. */
struct model_wait_key {
	uint64_t program;
	uint64_t inode;
	struct record_dev dev;
	int32_t pid;
};

struct model_thread {
	int32_t tid;	   /* 0: free; less: it was forgotten */
	int32_t pid;	   /* 0: not known */
	uint16_t group;	   /* index */
	bool hangs;	   /* by its last line, the operation that ended last had not returned */
	uint32_t from_ms;  /* from when on it is counted, since MODEL_LEAD_NS before the trigger */
	uint32_t until_ms; /* up to when */
	uint32_t waited_ms;
	uint32_t longest_ms;
	uint32_t longest_until_ms;
	uint32_t hangs_ms; /* age by that line */
	uint32_t file;	   /* key of what the longest worked on; 0: of nothing, or not known */
};

/* Operations that hung all the time while the host was well. */
struct model_earlier {
	uint64_t longest_ns;
	struct model_who who; /* of the longest */
	enum record_cause cause;
	char path[MODEL_PATH_SIZE];
};

struct model_waits {
	uint32_t groups_count;
	struct model_wait groups[MODEL_GROUPS_MAX];
	struct model_wait_key keys[MODEL_GROUPS_MAX]; /* of the groups */
	uint32_t looks;	  /* at what hangs, of which there are lines that stand for many */
	uint64_t look_ns; /* when the last one began */
	uint32_t threads_count;
	struct model_thread threads[MODEL_THREADS_MAX]; /* a hash table by thread and group */
	uint32_t left_out;				/* operations without room */
	uint32_t hanging;				/* threads that hang, by their last lines */
	uint32_t noted;		       /* operations of programs that are not earlier */
	uint64_t longest_ns;	       /* of those */
	struct model_used_files files; /* of programs, and not earlier */
	struct model_map_holders map_holders;
	struct model_earlier earlier;
};

struct model;

void model_waits_add(struct model *model, const struct record *line);

/* How long it waited altogether, and how many threads these are, at least. */
static inline uint64_t model_wait_ns(const struct model_wait *w)
{
	return w->waited_ns + w->alike_ns + w->alike_hanging_ns;
}
uint32_t model_wait_threads(const struct model_wait *wait);

/* How long the thread has hung by its last line; 0: it does not hang. */
uint64_t model_waits_hanging_ns(const struct model_waits *waits, int32_t tid);

#endif
