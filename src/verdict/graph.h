/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who waited for whom: nodes, and the time of those who waited, which flows from what they waited
 * for to what is at the end of it. A holder that waits itself passes it on.
 * Made from a model; the verdict is its end with most time of others than who holds or loads it.
 * Pure. A new kind of node is a file with a struct node_kind, and a line in kinds.def.
 */
#ifndef IOSTALL_VERDICT_GRAPH_H
#define IOSTALL_VERDICT_GRAPH_H

#include "verdict/blame.h"
#include "verdict/condition.h"
#include "model/model.h"
#include "util/text.h"

/* What each group waits for, each disk, and what databases, samples and the kernel say. */
#define GRAPH_NODES_MAX (MODEL_GROUPS_MAX + MODEL_DISKS_MAX + 64)
/* Of each disk, and of what has filled a file system. */
#define GRAPH_CULPRITS_MAX (MODEL_DISKS_MAX + 1)

enum node_kind_id {
#define KIND(name) NODE_##name,
#include "verdict/kinds.def"
#undef KIND
	NODE_KINDS,
};

struct graph;
struct node;

/* Those who would be missed, and for how long. Not who is to blame. */
struct victims {
	uint32_t threads; /* at least */
	uint64_t waited_ns;
	uint64_t longest_ns;
	/* Those who are to blame, which waited for their own work. */
	uint32_t own_threads;
	uint64_t own_ns;
	uint64_t own_longest_ns;
	struct model_who who;	    /* the longest; pid 0: nobody is known by name */
	char path[MODEL_PATH_SIZE]; /* of its file; "" */
	int disk;		    /* index of that of its file; -1: none */
	/* Statements that wait in a database, whose threads need not be in the kernel. */
	uint32_t statements;
	uint64_t statements_longest_ns;
	uint64_t statements_ns; /* the part of waited_ns that these waited */
};

struct node_kind {
	const char *name; /* for `iostall judge --explain` */
	/*
	 * Adds the nodes of its kind that nobody need be seen to wait for: what a database, a
	 * sample or the kernel's log says. May be NULL.
	 */
	void (*find)(struct graph *graph);
	/* Where whoever holds it waits itself; NULL: nowhere. May be NULL. */
	struct node *(*follow)(struct graph *graph, struct node *node);
	/* Of its nodes, unless judge knows better. */
	enum record_class class;
	enum record_basis basis; /* none: measured */
	/* Fills class, basis and culprit, when the node is an end. May be NULL. */
	void (*judge)(struct graph *graph, struct node *node);
	/* What happened, without the last full stop. */
	void (*say)(const struct graph *graph, const struct node *node, struct text *t);
	/* A sentence that goes behind the victims if there is room; "": none. May be NULL. */
	void (*remark)(const struct graph *graph, const struct node *node, struct text *t);
	/* Its parts of the record's verdict, beside those of all. May be NULL. */
	void (*add_parts)(const struct graph *graph, const struct node *node,
		struct record_verdict *verdict);
	/* Behind "waited up to 3.0 s": " for it"; NULL: nothing. */
	const char *waited_for;
	/*
	 * The same where it passes the time of statements on: " for the metadata lock of t, which
	 * session 3 holds". May be NULL.
	 */
	void (*say_behind)(const struct graph *graph, const struct node *node,
		const struct node *end, struct text *t);
};

struct node {
	enum node_kind_id kind;
	int index;  /* of its object, as the kind has it */
	int detail; /* the same */
	enum record_class class;
	enum record_basis basis;
	struct node *next; /* that it passes its time to; NULL: it is an end */
	bool is_link_inferred;
	/* Time that somebody else than threads in the model waited, as the kind knows it. */
	struct victims extra;
	struct culprit *culprit; /* NULL: nobody, or the kind says it itself */
	struct victims victims;	 /* of an end: all that flows to it */
	bool is_symptom;	 /* only if nothing else explains what was seen */
};

struct graph {
	const struct model *m;
	const struct node_kind *const *kinds;
	bool with_statement; /* what is said quotes statements; see struct record_verdict */
	uint32_t count;
	struct node nodes[GRAPH_NODES_MAX];
	uint32_t culprits_count;
	struct culprit culprits[GRAPH_CULPRITS_MAX];
	struct node *of_group[MODEL_GROUPS_MAX]; /* what each group waited for; NULL: left out */
	/* The database of whose threads it is not known which serve a session; NULL: it is. */
	const struct model_database *unnamed[MODEL_GROUPS_MAX];
	/* The same of statements of each database; NULL: of none is that known. */
	struct node *of_database[CONFIG_SQL_TARGETS_MAX];
	enum condition conditions[MODEL_DISKS_MAX];
	int folded[MODEL_DISKS_MAX];	 /* the disk that is at fault where one is waited for */
	int32_t tids[MODEL_THREADS_MAX]; /* to count threads once, and what each of them waited */
	uint64_t waited_ns[MODEL_THREADS_MAX];
};

void graph_make(const struct model *model, struct graph *ret_graph);

/* The end that the time of a node flows to. */
struct node *graph_end(struct node *node);
/* The node of that kind and object, which is made if there is none. NULL: there is no room. */
struct node *graph_get(struct graph *graph, enum node_kind_id kind, int index);
/* NULL: there is none. */
struct node *graph_find(const struct graph *graph, enum node_kind_id kind, int index);
/* The node of what a group waited for; NULL: there is no room. */
struct node *graph_of_wait(struct graph *graph, uint32_t group);
/*
 * The node of what the thread that holds `held` waited for in most of that time; NULL: for nothing,
 * or for less than 250 ms each time. It may have waited for `held` itself before.
 */
struct node *graph_of_thread(struct graph *graph, const struct node *held, int32_t tid,
	struct model_span span);
/*
 * Whether what two groups wait for is the same lock as far as is known: that of a memory map is of
 * a process, that of an inode of its file; any other, as that of a journal, may be the same for all
 * processes of the program.
 */
bool graph_is_same_lock(const struct model_waits *waits, uint32_t a, uint32_t b);
/*
 * The node that threads of a process waited for most then; NULL: none of them waited for half of
 * that time.
 */
struct node *graph_of_process(struct graph *graph, int32_t pid, struct model_span span);
/* The same of the threads of a database, which may be those of many processes. */
struct node *graph_of_server(struct graph *graph, const struct model_database *database,
	struct model_span span);
/* Which groups are threads of a database's processes. */
void graph_find_groups_of(const struct graph *graph, const struct model_database *database,
	bool ret_is_of[MODEL_GROUPS_MAX]);
/*
 * The node of what a thread that is at work on that file, by its key, waited for in nearly all of
 * that time, if it may have had the lock of the file's inode with others; NULL: there is none.
 */
struct node *graph_of_file(struct graph *graph, uint32_t file, struct model_span span);
/* The disk at fault that the thread, or with tid 0 any of the process, loads; NULL: none. */
struct node *graph_of_load(struct graph *graph, int32_t pid, int32_t tid);
/* Whether a group waited for what flows to that end. */
bool graph_flows_to(const struct graph *graph, uint32_t group, const struct node *end);
/* What speaks for it as the verdict: the time of its victims. */
uint64_t graph_weight_ns(const struct node *end);

/* Fills in the victims of an end; graph_make() has done it. */
void graph_add_victims(struct graph *graph, struct node *end);

static inline const struct node_kind *graph_kind_of(const struct graph *graph,
	const struct node *node)
{
	return graph->kinds[node->kind];
}

#define KIND(name) extern const struct node_kind node_##name;
#include "verdict/kinds.def"
#undef KIND

#endif
