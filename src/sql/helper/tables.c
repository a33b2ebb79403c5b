/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/tables.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "util/cleanup.h"

/* 64 characters of up to three bytes. */
#define NAME_SIZE 193
/* A statement with more tables is taken for one with these only. */
#define NAMES_MAX 8

enum token_kind {
	TOKEN_END,
	TOKEN_NAME, /* a word, or anything in backquotes */
	TOKEN_OTHER,
};

struct token {
	enum token_kind kind;
	char c;	     /* of OTHER */
	bool quoted; /* then it is no keyword */
	char name[NAME_SIZE];
};

struct table_name {
	char schema[NAME_SIZE];
	char table[NAME_SIZE];
};

struct names {
	unsigned int count;
	struct table_name list[NAMES_MAX];
};

/* --- words ------------------------------------------------------------------------- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* Behind blanks and comments. What a version comment has in it counts. */
static const char *skip_comments(const char *p)
{
	for (;;) {
		const char *end;

		p += strspn(p, " \t\r\n");
		if (strncmp(p, "-- ", 3) == 0 || *p == '#')
			end = strchr(p, '\n');
		else if (strncmp(p, "/*!", 3) == 0)
			return p + 3 + strspn(p + 3, "0123456789");
		else if (strncmp(p, "/*", 2) == 0)
			end = strstr(p + 2, "*/");
		else
			return p;
		if (!end)
			return p + strlen(p);
		p = end + (*end == '\n' ? 1 : 2);
	}
}

/* The end of a literal or name in quotes, behind its last quote. */
static const char *quoted_end(const char *p)
{
	char quote = *p++;

	for (; *p; p++) {
		if (*p == '\\' && quote != '`' && p[1])
			p++;
		else if (*p == quote && p[1] == quote)
			p++;
		else if (*p == quote)
			return p + 1;
	}
	return p;
}

static void set_name(struct token *t, const char *from, size_t len)
{
	t->kind = TOKEN_NAME;
	if (len >= sizeof(t->name))
		len = sizeof(t->name) - 1;
	memcpy(t->name, from, len);
	t->name[len] = '\0';
}

static const char *next_token(const char *p, struct token *t)
{
	const char *end;

	p = skip_comments(p);
	*t = (struct token){ .kind = *p ? TOKEN_OTHER : TOKEN_END, .c = *p };
	if (!*p)
		return p;
	if (*p == '`') {
		end = quoted_end(p);
		t->quoted = true;
		if (end > p + 1)
			set_name(t, p + 1, (size_t)(end - p) - 2);
		return end;
	}
	if (*p == '\'' || *p == '"')
		return quoted_end(p);
	if (!is_word(*p))
		return p + 1;
	for (end = p; is_word(*end); end++)
		;
	set_name(t, p, (size_t)(end - p));
	return end;
}

static bool is_keyword(const struct token *t, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count && t->kind == TOKEN_NAME && !t->quoted; i++)
		if (strcasecmp(t->name, words[i]) == 0)
			return true;
	return false;
}

#define IS(t, ...)                                                                                 \
	is_keyword((t), (const char *const[]){ __VA_ARGS__ },                                      \
		ARRAY_SIZE(((const char *const[]){ __VA_ARGS__ })))

/* Reads "orders" or "shop.orders", of which the first token has been read. */
static const char *read_name(const char *p, const struct token *first, struct table_name *ret_name)
{
	struct token t;
	const char *next;

	*ret_name = (struct table_name){ 0 };
	memcpy(ret_name->table, first->name, sizeof(first->name));
	next = next_token(p, &t);
	if (t.kind != TOKEN_OTHER || t.c != '.')
		return p;
	next = next_token(next, &t);
	if (t.kind != TOKEN_NAME)
		return p;
	memcpy(ret_name->schema, first->name, sizeof(first->name));
	memcpy(ret_name->table, t.name, sizeof(t.name));
	return next;
}

/* --- statements that need a table alone -------------------------------------------- */

#define VERBS "ALTER", "CREATE", "DROP", "TRUNCATE", "RENAME", "OPTIMIZE", "REPAIR", "LOCK"

static const char *first_token(const char *text, struct token *t)
{
	const char *p = text;

	do
		p = next_token(p, t);
	while (t->kind == TOKEN_OTHER && t->c == '(');
	return p;
}

bool tables_is_ddl(const char *text)
{
	struct token t;

	first_token(text, &t);
	return IS(&t, VERBS, "FLUSH", "BACKUP");
}

/* *t is the token behind FLUSH TABLES; false: the statement is another one. */
static bool flushes_tables(const char *text, struct token *t)
{
	const char *p = first_token(text, t);

	if (!IS(t, "FLUSH"))
		return false;
	do
		p = next_token(p, t);
	while (IS(t, "LOCAL", "NO_WRITE_TO_BINLOG", "TABLE", "TABLES"));
	return true;
}

/* BACKUP STAGE ..., but not the statement that ends it. */
static bool begins_backup(const char *text)
{
	struct token t;
	const char *p = first_token(text, &t);

	if (!IS(&t, "BACKUP"))
		return false;
	p = next_token(p, &t);
	if (!IS(&t, "STAGE"))
		return !IS(&t, "UNLOCK");
	next_token(p, &t);
	return !IS(&t, "END");
}

bool tables_keeps_global(const char *text)
{
	struct token t;

	return flushes_tables(text, &t) ? IS(&t, "WITH") : begins_backup(text);
}

bool tables_stops_writes(const char *text)
{
	struct token t;

	return flushes_tables(text, &t) && IS(&t, "WITH");
}

bool tables_writes(const char *text)
{
	struct token t;

	first_token(text, &t);
	return IS(&t, "INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD");
}

bool tables_are_hidden(const char *text)
{
	struct token t;

	first_token(text, &t);
	return IS(&t, "CALL", "EXECUTE", "DO", "BEGIN");
}

bool tables_is_global(const char *text)
{
	struct token t;

	return tables_keeps_global(text) || (flushes_tables(text, &t) && t.kind == TOKEN_END);
}

/* Behind the words up to its first table; *t is the first token of that. NULL: it has none. */
static const char *find_first_name(const char *text, struct token *t)
{
	const char *p = first_token(text, t);
	bool truncates = IS(t, "TRUNCATE");

	if (!IS(t, VERBS, "FLUSH"))
		return NULL;
	do {
		p = next_token(p, t);
		/* Its word TABLE may be left out. */
		if (truncates && !IS(t, "TABLE"))
			return t->kind == TOKEN_NAME ? p : NULL;
		/* A column list or a subquery comes too late for the table. */
		if (t->kind == TOKEN_END || (t->kind == TOKEN_OTHER && t->c == '('))
			return NULL;
	} while (!IS(t, "TABLE", "TABLES", "ON"));
	do
		p = next_token(p, t);
	while (IS(t, "IF", "NOT", "EXISTS", "WITH"));
	return t->kind == TOKEN_NAME ? p : NULL;
}

static bool is_end_of_list(const struct token *t)
{
	return t->kind == TOKEN_END || (t->kind == TOKEN_OTHER && t->c != ',');
}

static void read_ddl(const char *text, struct names *names)
{
	struct token verb, t;
	const char *p = find_first_name(text, &t);

	names->count = 0;
	first_token(text, &verb);
	while (p && t.kind == TOKEN_NAME && names->count < NAMES_MAX) {
		p = read_name(p, &t, &names->list[names->count++]);
		/* Of the others only what follows the first name says what is done to the table. */
		if (!IS(&verb, "DROP", "RENAME", "LOCK", "FLUSH", "OPTIMIZE", "REPAIR"))
			return;
		do
			p = next_token(p, &t);
		while (!is_end_of_list(&t) && t.c != ',' && !IS(&t, "TO"));
		if (is_end_of_list(&t))
			return;
		p = next_token(p, &t);
	}
}

/* --- other statements -------------------------------------------------------------- */

static bool is_same(const struct table_name *a, const char *a_database, const struct table_name *b,
	const char *b_database)
{
	const char *a_schema = *a->schema ? a->schema : a_database;
	const char *b_schema = *b->schema ? b->schema : b_database;

	return strcmp(a->table, b->table) == 0 &&
		(!*a_schema || !*b_schema || strcmp(a_schema, b_schema) == 0);
}

static bool has_name(const struct names *names, const char *database,
	const struct table_name *other, const char *other_database)
{
	for (unsigned int i = 0; i < names->count; i++)
		if (is_same(&names->list[i], database, other, other_database))
			return true;
	return false;
}

/* Whether it has one of these names where a table stands. */
static bool mentions(const struct tables_statement *s, const struct names *names,
	const char *database)
{
	const char *p = s->text;
	bool among_tables = false;
	struct table_name name;
	struct token t;

	for (p = next_token(p, &t); t.kind != TOKEN_END; p = next_token(p, &t)) {
		if (IS(&t, "FROM", "JOIN", "STRAIGHT_JOIN", "UPDATE", "INTO", "TABLE", "INSERT",
			    "REPLACE", "DELETE")) {
			among_tables = true;
		} else if (IS(&t, "SELECT", "WHERE", "SET", "VALUES", "VALUE", "ON", "USING",
				   "ORDER", "GROUP", "HAVING", "LIMIT")) {
			among_tables = false;
		} else if (t.kind == TOKEN_NAME) {
			p = read_name(p, &t, &name);
			if (among_tables && has_name(names, database, &name, s->database))
				return true;
		}
	}
	return false;
}

bool tables_are_shared(const struct tables_statement *ddl, const struct tables_statement *other)
{
	struct names names, others;

	if (!ddl->text || !other->text || !tables_is_ddl(ddl->text))
		return false;
	read_ddl(ddl->text, &names);
	if (!tables_is_ddl(other->text))
		return mentions(other, &names, ddl->database);
	read_ddl(other->text, &others);
	for (unsigned int i = 0; i < others.count; i++)
		if (has_name(&names, ddl->database, &others.list[i], other->database))
			return true;
	return false;
}
