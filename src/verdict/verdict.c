/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "verdict/words.h"
#include "util/cleanup.h"
#include "util/number.h"

/* So much of a sentence is read on a telephone, without the text of statements. */
#define SENTENCE_MAX 300

/* The end that is the verdict */

static bool is_end(const struct node *n)
{
	return n->next == NULL;
}

/*
 * Threads of a server work for its clients: where many of them stand still for work of their own
 * server, the clients do, too.
 */
static bool is_crowd(const struct graph *g, const struct node *n)
{
	return n->victims.own_threads >= CROWD && n->victims.own_longest_ns >= TROUBLE_NS &&
		g->m->host.blocked_most >= CROWD;
}

/* Whether somebody would miss what it is about, other than who caused it. */
static bool has_victims(const struct graph *g, const struct node *n)
{
	const struct victims *v = &n->victims;
	uint64_t longest_ns = n->basis == RECORD_BASIS_inferred && !n->culprit
		? v->longest_ns / TENTH
		: v->longest_ns;

	return longest_ns >= NOTICED_NS || v->statements > 0 || is_crowd(g, n) ||
		(n->extra.waited_ns > 0 && v->threads == 0);
}

/*
 * Beside a disk at its limit, threads that wait for a lock for less than a second mostly wait for
 * somebody who waits for that disk, but each time too short to be recorded. And such waits are
 * common on a busy host.
 */
static bool is_common(const struct graph *g, const struct node *n)
{
	return n->class == RECORD_CLASS_waiting && n->victims.statements == 0 &&
		(n->victims.longest_ns < NOTICED_NS ||
			(n->kind == NODE_map && n->victims.longest_ns < TROUBLE_NS &&
				condition_is_any(g->m)));
}

/*
 * Causes with victims, symptoms with victims, causes without, symptoms without; what is unknown is
 * the last.
 */
static unsigned int rank_of(const struct graph *g, const struct node *n)
{
	if (n->kind == NODE_unknown)
		return 0;
	if (is_common(g, n))
		return 1;
	if (!has_victims(g, n))
		return n->is_symptom ? 1 : 2;
	return n->is_symptom ? 3 : 4;
}

static bool is_better(const struct graph *g, const struct node *a, const struct node *b)
{
	if (!b)
		return true;
	if (rank_of(g, a) != rank_of(g, b))
		return rank_of(g, a) > rank_of(g, b);
	return graph_weight_ns(a) > graph_weight_ns(b);
}

/* but: not that one, and no symptoms; NULL: of all. */
static const struct node *find_worst(const struct graph *g, const struct node *but)
{
	const struct node *worst = NULL;

	for (uint32_t i = 0; i < g->count; i++) {
		const struct node *n = &g->nodes[i];

		if (is_end(n) && n != but && !(but && n->is_symptom) && is_better(g, n, worst))
			worst = n;
	}
	return worst;
}

/* What else went wrong, for others than the victims of the first; NULL: nothing did. */
static const struct node *find_second(const struct graph *g, const struct node *first)
{
	const struct node *n = find_worst(g, first);

	if (!n || first->kind == NODE_unknown)
		return NULL;
	/* A disk that hangs or becomes full is worth a remark even if nobody waits for it. */
	if (n->victims.waited_ns >= TROUBLE_NS || is_crowd(g, n) || n->class == RECORD_CLASS_hung ||
		n->class == RECORD_CLASS_full)
		return n;
	/* Where it is not known why, so is any disk at fault. */
	if (first->kind == NODE_silence && n->kind == NODE_disk)
		return n;
	return NULL;
}

/* The sentence */

static void end_sentence(struct text *t)
{
	words_capitalise(t);
	text_add(t, ".");
}

/* Adds a sentence if it fits. */
static void add_if_it_fits(struct text *t, const struct text *clause, size_t most)
{
	if (clause->len == 0 || t->len + 1 + clause->len > most)
		return;
	text_add(t, t->len ? " " : "");
	text_add_bytes(t, clause->buf, clause->len);
}

/* The volume that they know, above the disk that is the reason. */
static void add_volume(const struct graph *g, const struct node *n, struct text *t)
{
	int disk = n->victims.disk;

	if (n->kind == NODE_disk && disk >= 0 && disk != n->index && *g->m->disks.list[disk].label)
		text_addf(t, " on %s", g->m->disks.list[disk].label);
}

/* Whoever waited longest may be one of those who loaded the disk. */
static bool may_be_among(const struct graph *g, const struct culprit *c, const struct victims *v)
{
	return (c->kind == CULPRIT_PROGRAM || c->kind == CULPRIT_UNIT) &&
		model_sessions_find_runner(&g->m->sessions, v->who.tid);
}

static void add_threads(const struct graph *g, const struct node *n, struct text *t)
{
	const struct victims *v = &n->victims;

	if (v->threads == 0)
		return;
	if (g->m->waits.left_out)
		text_add(t, "at least ");
	if (n->culprit && n->culprit->has_half && !may_be_among(g, n->culprit, v))
		text_add_count(t, v->threads, "other thread", "other threads");
	else
		text_add_count(t, v->threads, "thread", "threads");
	text_add(t, v->threads == 1 ? " waited " : " waited up to ");
	words_add_time(t, v->longest_ns);
	text_add(t, graph_kind_of(g, n)->waited_for ? graph_kind_of(g, n)->waited_for : "");
	add_volume(g, n, t);
	if (!*v->who.comm)
		return;
	text_add(t, v->threads == 1 ? ": " : ", ");
	words_add_who(t, &v->who);
	text_add(t, v->threads == 1 ? "" : " the longest");
}

/* No session is counted twice: those that did it are not among those who suffered. */
static uint32_t count_statements(const struct node *n)
{
	uint32_t own = n->culprit && n->culprit->has_half && n->culprit->statement.present
		? n->culprit->statement.sessions
		: 0;

	return n->victims.statements > own ? n->victims.statements - own : 0;
}

/* A freeze is what somebody suffers from who did not make it. */
static bool is_suffered_by_nobody(const struct graph *g, const struct node *n)
{
	return n->kind == NODE_disk && n->class == RECORD_CLASS_saturated &&
		n->victims.threads == 0 && count_statements(n) == 0 && !is_crowd(g, n) &&
		!g->m->waits.left_out && g->m->host.health_failing_s <= 0;
}

/* Waits below trace.min_stall are not seen; many of them make others late, if there are others. */
static bool is_used_alone(const struct culprit *c)
{
	return c && c->has_half && c->pct + c->untraced_pct >= 100 * NEARLY_ALL;
}

/* Only the longest are known one by one; statements that are counted ran for a second at least. */
static uint64_t longest_statement_ns(const struct graph *g, const struct node *n)
{
	uint64_t longest_ns = 0;

	if (n->victims.statements == count_statements(n))
		return n->victims.statements_longest_ns;
	for (uint32_t i = 0; i < g->m->sessions.count; i++) {
		uint64_t ns = model_database_longest_ns(&g->m->sessions.list[i],
			n->culprit->statement.text);

		if (graph_end(g->of_database[i]) == n ||
			graph_end(graph_find(g, NODE_queue, (int)i)) == n)
			longest_ns = ns > longest_ns ? ns : longest_ns;
	}
	return longest_ns;
}

/* What most of the statements wait for that end with it; NULL: the same as it. */
static const struct node *find_behind(const struct graph *g, const struct node *n)
{
	for (uint32_t i = 0; i < g->count; i++) {
		const struct node *from = &g->nodes[i], *end = from;

		while (end->next)
			end = end->next;
		if (from != n && end == n && graph_kind_of(g, from)->say_behind &&
			2 * from->extra.statements > n->victims.statements)
			return from;
	}
	return NULL;
}

static void add_statements(const struct graph *g, const struct node *n, struct text *t)
{
	const struct node *behind = find_behind(g, n);
	const uint32_t statements = count_statements(n);
	const uint64_t longest_ns = longest_statement_ns(g, n);

	if (statements == 0)
		return;
	text_add_count(t, statements, "statement", "statements");
	if (longest_ns == 0) {
		text_add(t, " waited for at least 1 s");
	} else {
		text_add(t, statements == 1 ? " waited " : " waited up to ");
		words_add_time(t, longest_ns);
	}
	if (behind)
		graph_kind_of(g, behind)->say_behind(g, behind, n, t);
	else
		text_add(t, n->kind == NODE_queue ? graph_kind_of(g, n)->waited_for : "");
}

static void add_victims(const struct graph *g, const struct node *n, size_t most, struct text *t)
{
	char buf[512];
	struct text clause = TEXT_ON(buf);

	text_reset(&clause);
	if (n->kind == NODE_unknown)
		return;
	if (n->kind == NODE_queue)
		add_statements(g, n, &clause);
	else if (n->kind != NODE_stopped)
		add_threads(g, n, &clause);
	if (is_suffered_by_nobody(g, n))
		text_add(&clause, "nobody else was seen to wait for it");
	if (n->victims.threads == 0 && is_crowd(g, n)) {
		text_addf(&clause, "%" PRIu32 " threads that loaded it themselves waited up to ",
			n->victims.own_threads);
		words_add_time(&clause, n->victims.own_longest_ns);
	}
	if (clause.len)
		end_sentence(&clause);
	add_if_it_fits(t, &clause, most);
	text_reset(&clause);
	if (n->kind != NODE_queue)
		add_statements(g, n, &clause);
	if (clause.len)
		end_sentence(&clause);
	add_if_it_fits(t, &clause, most);
}

/* A database may have been silent for a reason of its own, which stands for itself. */
static bool is_another_trouble(const struct graph *g, const struct node *n, int database)
{
	struct node *silence = graph_find(g, NODE_silence, database);

	return n->kind == NODE_silence || (silence && graph_end(silence) != n);
}

/* A database that was silent because of that, a failed health check, what was killed. */
static void add_remarks(const struct graph *g, const struct node *n, size_t most, struct text *t)
{
	char buf[512];
	struct text clause = TEXT_ON(buf);

	for (uint32_t i = 0; i < g->m->sessions.count; i++) {
		const struct model_database *d = &g->m->sessions.list[i];

		text_reset(&clause);
		if (d->refused)
			text_addf(&clause, "Database %s refused a login: it was %s.", d->target,
				d->refused);
		add_if_it_fits(t, &clause, most);
		if (d->silence.longest_ns < SILENT_NS || is_another_trouble(g, n, (int)i))
			continue;
		text_reset(&clause);
		text_addf(&clause, "Database %s did not answer for ", d->target);
		words_add_time(&clause, d->silence.longest_ns);
		text_add(&clause, ".");
		add_if_it_fits(t, &clause, most);
	}
	text_reset(&clause);
	if (g->m->host.health_failing_s > 0) {
		text_add(&clause, "The health check failed for ");
		words_add_time(&clause, to_u64(g->m->host.health_failing_s * NSEC_PER_SEC));
		text_add(&clause, ".");
	}
	add_if_it_fits(t, &clause, most);
	text_reset(&clause);
	if (g->m->host.kernel.killed && n->kind != NODE_killed) {
		node_killed.say(g, n, &clause);
		end_sentence(&clause);
	}
	add_if_it_fits(t, &clause, most);
	text_reset(&clause);
	if ((g->m->host.errors[0].number || g->m->host.kernel.failures) && n->kind != NODE_failed) {
		node_failed.say(g, n, &clause);
		end_sentence(&clause);
	}
	add_if_it_fits(t, &clause, most);
}

static void add_second(const struct graph *g, const struct node *second, size_t most,
	struct text *t)
{
	char buf[RECORD_SENTENCE_SIZE];
	struct text clause = TEXT_ON(buf);

	text_reset(&clause);
	if (!second)
		return;
	text_add(&clause, "Besides, ");
	graph_kind_of(g, second)->say(g, second, &clause);
	text_add(&clause, ".");
	add_if_it_fits(t, &clause, most);
}

static void add_remark(const struct graph *g, const struct node *n, size_t most, struct text *t)
{
	char buf[128];
	struct text clause = TEXT_ON(buf);

	text_reset(&clause);
	if (graph_kind_of(g, n)->remark)
		graph_kind_of(g, n)->remark(g, n, &clause);
	if (clause.len)
		end_sentence(&clause);
	add_if_it_fits(t, &clause, most);
}

static void make_sentence(struct graph *g, const struct node *n, const struct node *second,
	bool with_statement, struct text *t)
{
	size_t most = SENTENCE_MAX, without;

	text_reset(t);
	graph_kind_of(g, n)->say(g, n, t);
	without = t->len;
	g->with_statement = with_statement;
	if (with_statement) {
		text_reset(t);
		graph_kind_of(g, n)->say(g, n, t);
		if (t->len > without)
			most += t->len - without;
	}
	end_sentence(t);
	add_victims(g, n, most, t);
	add_remarks(g, n, most, t);
	add_second(g, second, most, t);
	add_remark(g, n, most, t);
	g->with_statement = false;
}

/* Parts */

static void add_victims_part(const struct graph *g, const struct node *n, struct record_verdict *r)
{
	const struct victims *v = &n->victims;
	struct record_verdict_part *part;
	struct text t;

	/* Of statements only those of the culprit itself. */
	if (v->threads == 0 && count_statements(n) == 0)
		return;
	part = words_add_part(r, RECORD_WHAT_victims, RECORD_BASIS_measured, &t);
	if (!part)
		return;
	add_threads(g, n, &t);
	if (count_statements(n)) {
		text_add(&t, t.len ? "; " : "");
		add_statements(g, n, &t);
	}
	if (*v->path) {
		text_add(&t, "; ");
		words_add_path(&t, v->path);
	}
	part->threads = v->threads;
	part->longest_ns =
		v->longest_ns > v->statements_longest_ns ? v->longest_ns : v->statements_longest_ns;
	part->total_ns = v->waited_ns;
	part->pid = v->who.pid;
	part->tid = v->who.tid;
	text_copy(part->comm, sizeof(part->comm), v->who.comm);
	text_copy(part->path, sizeof(part->path), v->path);
}

static void add_node_part(const struct graph *g, const struct node *n, enum record_what what,
	struct record_verdict *r)
{
	struct record_verdict_part *part;
	struct text t;

	if (!n)
		return;
	part = words_add_part(r, what, n->basis, &t);
	if (!part)
		return;
	graph_kind_of(g, n)->say(g, n, &t);
	part->threads = n->victims.threads;
	part->longest_ns = n->victims.longest_ns;
	part->total_ns = n->victims.waited_ns;
}

/* Threads that hung before and do not flow to the verdict. */
static void add_earlier_part(const struct graph *g, const struct node *n, struct record_verdict *r)
{
	const struct model_waits *waits = &g->m->waits;
	const struct model_earlier *e = &waits->earlier;
	struct record_verdict_part *part;
	uint32_t threads = 0;
	struct text t;

	for (uint32_t i = 0; i < waits->groups_count; i++)
		if (waits->groups[i].is_early && !waits->groups[i].is_kernel &&
			!graph_flows_to(g, i, n))
			threads += model_wait_threads(&waits->groups[i]);
	if (threads == 0 || waits->noted == 0)
		return;
	part = words_add_part(r, RECORD_WHAT_earlier, RECORD_BASIS_measured, &t);
	if (!part)
		return;
	text_add_count(&t, threads, "thread was", "threads were");
	text_add(&t, " blocked long before the incident: ");
	words_add_who(&t, &e->who);
	text_add(&t, " for ");
	record_add_duration(&t, e->longest_ns);
	if (*e->path) {
		text_add(&t, ", ");
		words_add_path(&t, e->path);
	}
	part->threads = threads;
	words_set_who(part, &e->who);
	text_copy(part->path, sizeof(part->path), e->path);
	part->longest_ns = e->longest_ns;
}

static void add_pressure_part(const struct graph *g, struct record_verdict *r)
{
	struct text t;

	if (g->m->host.memory_full_max_pct < TENTH ||
		!words_add_part(r, RECORD_WHAT_memory, RECORD_BASIS_measured, &t))
		return;
	text_add(&t, "all non-idle tasks were stalled on memory for up to ");
	words_add_pct(&t, g->m->host.memory_full_max_pct);
	text_add(&t, " of the time (PSI memory full)");
}

static void add_log_part(const struct graph *g, struct record_verdict *r)
{
	struct text t;

	if (g->m->host.kernel.lines == 0 ||
		!words_add_part(r, RECORD_WHAT_kernel, RECORD_BASIS_measured, &t))
		return;
	text_add(&t, "the kernel logged ");
	text_add_count(&t, g->m->host.kernel.lines, "line", "lines");
	text_addf(&t, " about storage; the first%s: %s", g->m->host.kernel.errors ? " problem" : "",
		g->m->host.kernel.text);
}

static void add_silence_parts(const struct graph *g, const struct node *n, struct record_verdict *r)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (g->nodes[i].kind == NODE_silence && &g->nodes[i] != n)
			node_silence.add_parts(g, &g->nodes[i], r);
}

void judge(const struct model *m, struct graph *g, struct record_verdict *r)
{
	struct text sentence = TEXT_ON(r->sentence), message = TEXT_ON(r->message);
	const struct node *n, *second;

	memset(r, 0, sizeof(*r));
	graph_make(m, g);
	n = find_worst(g, NULL);
	second = find_second(g, n);
	r->class = n->class;
	if (!second && is_suffered_by_nobody(g, n) && is_used_alone(n->culprit))
		r->class = RECORD_CLASS_busy;
	r->basis = n->basis;
	if (n->kind != NODE_unknown)
		text_copy(r->waits_for, sizeof(r->waits_for), graph_kind_of(g, n)->name);
	make_sentence(g, n, second, true, &sentence);
	make_sentence(g, n, second, false, &message);
	if (graph_kind_of(g, n)->add_parts)
		graph_kind_of(g, n)->add_parts(g, n, r);
	add_victims_part(g, n, r);
	add_node_part(g, second, RECORD_WHAT_second, r);
	add_silence_parts(g, n, r);
	if (!second && graph_weight_ns(n) > 0) {
		const struct node *alternative = find_worst(g, n);

		if (alternative && graph_weight_ns(alternative) > 0)
			add_node_part(g, alternative, RECORD_WHAT_alternative, r);
	}
	add_earlier_part(g, n, r);
	add_pressure_part(g, r);
	if (m->host.kernel.killed && n->kind != NODE_killed)
		node_killed.add_parts(g, n, r);
	add_log_part(g, r);
}

/* The table */

void judge_add_object(const struct graph *g, const struct node *n, struct text *out)
{
	if (n->kind == NODE_disk || n->kind == NODE_journal || n->kind == NODE_frozen ||
		n->kind == NODE_io_limit) {
		if (n->index >= 0)
			text_add(out, words_disk_name(g->m, n->index));
	} else if (n->kind == NODE_map) {
		text_addf(out, "of process %d", g->m->waits.groups[n->index].who.pid);
	} else if (n->kind == NODE_queue || n->kind == NODE_silence) {
		text_add(out, g->m->sessions.list[n->index].target);
	}
}

static void add_node_name(const struct graph *g, const struct node *n, struct text *out)
{
	size_t len;

	text_add(out, graph_kind_of(g, n)->name);
	text_add(out, " ");
	len = out->len;
	judge_add_object(g, n, out);
	if (out->len == len && len > 0)
		out->buf[--out->len] = '\0';
}

static void add_row(const struct graph *g, const char *who, uint32_t count, const struct node *to,
	uint64_t ns, bool is_inferred, struct text *out)
{
	if (count > 0)
		text_addf(out, "%-28.28s %6" PRIu32 "  %9.2f s", who, count,
			(double)ns / NSEC_PER_SEC);
	else
		text_addf(out, "%-28.28s %6s  %11s", who, "", "");
	text_addf(out, "  %-9s ", is_inferred ? "inferred" : "measured");
	add_node_name(g, to, out);
	text_add(out, "\n");
}

void judge_explain(const struct graph *g, struct text *out)
{
	const struct model_waits *waits = &g->m->waits;
	char name[64];
	struct text who = TEXT_ON(name);

	text_addf(out, "%-28s %6s  %11s  %-9s %s\n", "WAITER", "COUNT", "TIME", "BASIS",
		"WAITS FOR");
	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct model_wait *w = &waits->groups[i];

		if (g->of_group[i])
			add_row(g, w->who.comm, model_wait_threads(w), g->of_group[i],
				model_wait_ns(w), false, out);
	}
	for (uint32_t i = 0; i < g->count; i++) {
		const struct node *n = &g->nodes[i];

		if (n->extra.threads + n->extra.statements + n->extra.waited_ns > 0)
			add_row(g, n->extra.statements ? "statements" : n->extra.who.comm,
				n->extra.threads + n->extra.statements, n, n->extra.waited_ns,
				false, out);
		if (!n->next)
			continue;
		text_reset(&who);
		add_node_name(g, n, &who);
		add_row(g, name, 0, n->next, 0, n->is_link_inferred, out);
	}
	text_addf(out, "\n%-28s %6s  %11s  %-10s %s\n", "END", "COUNT", "TIME", "CLASS", "WHAT");
	for (uint32_t i = 0; i < g->count; i++) {
		const struct node *n = &g->nodes[i];

		if (!is_end(n))
			continue;
		text_reset(&who);
		add_node_name(g, n, &who);
		text_addf(out, "%-28.28s %6" PRIu32 "  %9.2f s  %-10s ", name,
			n->victims.threads + n->victims.statements,
			(double)graph_weight_ns(n) / NSEC_PER_SEC, record_class_text(n->class));
		graph_kind_of(g, n)->say(g, n, out);
		text_add(out, "\n");
	}
}
