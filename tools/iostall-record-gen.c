/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Build-time generator: what is made from the schema of a record, on standard output.
 *   iostall-record-gen schema        record.schema.json, JSON Schema 2020-12
 *   iostall-record-gen man TEMPLATE  iostall-record(5): the keys replace the line @RECORD@
 */
#include <inttypes.h>

#include "generate.h"
#include "record/fields.h"

static const struct record_enum *const enums[] = {
#define ENUM(name, NAME, help) &record_##name##_enum,
#define VALUE(NAME, id, text, help)
#define ENUM_END(NAME)
#include "record/enums.def"
#undef ENUM
#undef VALUE
#undef ENUM_END
};

/* JSON Schema */

static void print_string(const char *s)
{
	putchar('"');
	for (; *s; s++)
		printf(*s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	putchar('"');
}

static void print_members(const struct field *fields);

static void print_type(const struct field *f, const char *type)
{
	if (f->nullable)
		printf("\"type\":[\"%s\",\"null\"]", type);
	else
		printf("\"type\":\"%s\"", type);
}

static void print_integer(const struct field *f, const char *minimum, const char *maximum)
{
	print_type(f, "integer");
	printf(",\"minimum\":%s,\"maximum\":%s", minimum, maximum);
}

static void print_choice(const struct field *f)
{
	printf("\"enum\":[");
	for (unsigned int i = 1; i < f->values->count; i++) {
		fputs(i > 1 ? "," : "", stdout);
		print_string(f->values->values[i].text);
	}
	printf(f->nullable ? ",null]" : "]");
}

static void print_each(const struct field *f)
{
	printf("\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
	for (unsigned int i = 1; i < f->values->count; i++) {
		fputs(i > 1 ? "," : "", stdout);
		print_string(f->values->values[i].text);
		printf(":{\"type\":\"integer\",\"minimum\":0,\"maximum\":%" PRIu64
		       ",\"description\":",
			UINT64_MAX);
		print_string(f->values->values[i].help);
		putchar('}');
	}
	printf("},\"required\":[");
	for (unsigned int i = 1; i < f->values->count; i++) {
		fputs(i > 1 ? "," : "", stdout);
		print_string(f->values->values[i].text);
	}
	putchar(']');
}

static void print_items(const struct field *f)
{
	print_type(f, "array");
	printf(",\"maxItems\":%zu,\"items\":{", f->count_max);
	if (f->kind == FIELD_COUNTS) {
		printf("\"type\":\"integer\",\"minimum\":0,\"maximum\":%" PRIu64 "}", UINT64_MAX);
		return;
	}
	printf("\"type\":\"object\",");
	print_members(f->members);
	putchar('}');
}

static void print_value(const struct field *f)
{
	switch (f->kind) {
	case FIELD_TEXT:
		/* A byte that is not UTF-8 is one character of three bytes. */
		print_type(f, "string");
		printf(",\"minLength\":1,\"maxLength\":%zu", f->size - 1);
		break;
	case FIELD_CHAR:
		print_type(f, "string");
		printf(",\"minLength\":1,\"maxLength\":1");
		break;
	case FIELD_LINES:
		printf("\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1}");
		break;
	case FIELD_BOOL:
		print_type(f, "boolean");
		break;
	case FIELD_U32:
		print_integer(f, "0", "4294967295");
		break;
	case FIELD_U64:
		print_integer(f, "0", "18446744073709551615");
		break;
	case FIELD_INDEX:
		print_integer(f, "0", "2147483647");
		break;
	case FIELD_INDEX64:
		print_integer(f, "0", "9223372036854775807");
		break;
	case FIELD_PID:
		print_integer(f, "1", "2147483647");
		break;
	case FIELD_RESULT:
		print_integer(f, "-9223372036854775807", "9223372036854775807");
		break;
	case FIELD_REAL:
		print_type(f, "number");
		break;
	case FIELD_MS:
		print_type(f, "number");
		printf(",\"minimum\":0");
		break;
	case FIELD_DEV:
		print_type(f, "string");
		printf(",\"pattern\":\"^[0-9]+:[0-9]+$\"");
		break;
	case FIELD_CHOICE:
		print_choice(f);
		break;
	case FIELD_EACH:
		print_each(f);
		break;
	case FIELD_COUNTS:
	case FIELD_ARRAY:
		print_items(f);
		break;
	case FIELD_OBJECT:
		print_type(f, "object");
		putchar(',');
		print_members(f->members);
		break;
	case FIELD_PART:
		break;
	}
}

/* What is true of a text beyond its length. */
static void print_pattern(const struct field *f)
{
	if (strcmp(f->key, "v") == 0)
		printf(",\"const\":%d", RECORD_VERSION);
	else if (strcmp(f->key, "incident") == 0)
		printf(",\"pattern\":\"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}$\"");
	else if (strcmp(f->key, "ts") == 0)
		printf(",\"pattern\":\"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
		       "[.][0-9]{6}Z$\"");
}

static void print_properties(const struct field *fields, const char **separator)
{
	for (const struct field *f = fields; f->key; f++) {
		if (f->kind == FIELD_PART) {
			print_properties(f->members, separator);
			continue;
		}
		fputs(*separator, stdout);
		*separator = ",\n";
		print_string(f->key);
		printf(":{");
		print_value(f);
		if (fields == record_common)
			print_pattern(f);
		printf(",\"description\":");
		print_string(f->help);
		putchar('}');
	}
}

static void print_required(const struct field *fields, const char **separator)
{
	for (const struct field *f = fields; f->key; f++) {
		if (f->kind == FIELD_PART) {
			print_required(f->members, separator);
			continue;
		}
		fputs(*separator, stdout);
		*separator = ",";
		print_string(f->key);
	}
}

/* All keys of an object, each of which must be there, and no other. */
static void print_members(const struct field *fields)
{
	const char *separator = "";

	printf("\"additionalProperties\":false,\"properties\":{\n");
	print_properties(fields, &separator);
	separator = "";
	printf("},\"required\":[");
	print_required(fields, &separator);
	putchar(']');
}

static void print_schema_type(const struct field_type *type)
{
	const char *separator = "";

	print_string(type->name);
	printf(":{\"description\":");
	print_string(type->help);
	printf(",\n\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\n");
	print_properties(record_common, &separator);
	print_properties(type->fields, &separator);
	separator = "";
	printf("},\"required\":[");
	print_required(record_common, &separator);
	print_required(type->fields, &separator);
	printf("]}");
}

/*
 * By `if` and not by `oneOf`, so that a validator says what is wrong with the type that the line
 * has.
 */
static void print_schema(void)
{
	printf("{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\n"
	       "\"title\":\"iostall record, one line\",\n"
	       "\"type\":\"object\",\"required\":[\"type\"],\n\"properties\":{\"type\":{\"enum\":[");
	for (unsigned int i = 0; i < RECORD_TYPE_COUNT; i++)
		printf("%s\"%s\"", i ? "," : "", record_types[i].name);
	printf("]}},\n\"allOf\":[");
	for (unsigned int i = 0; i < RECORD_TYPE_COUNT; i++)
		printf("%s\n{\"if\":{\"properties\":{\"type\":{\"const\":\"%s\"}}},"
		       "\"then\":{\"$ref\":\"#/$defs/%s\"}}",
			i ? "," : "", record_types[i].name, record_types[i].name);
	printf("],\n\"$defs\":{\n");
	for (unsigned int i = 0; i < RECORD_TYPE_COUNT; i++) {
		fputs(i ? ",\n" : "", stdout);
		print_schema_type(&record_types[i]);
	}
	printf("}}\n");
}

/* The manual */

/* Each sentence on a line of its own; `this` is quoted. */
static void print_roff(const char *s)
{
	bool quoted = false, line_begins = true;

	for (; *s; s++) {
		/* A request of roff is never meant. */
		if (line_begins && (*s == '.' || *s == '\''))
			fputs("\\&", stdout);
		line_begins = false;
		if (*s == '`') {
			fputs(quoted ? "\\(cq" : "\\(oq", stdout);
			quoted = !quoted;
		} else if (*s == '\\') {
			fputs("\\e", stdout);
		} else if (s[0] == '.' && s[1] == ' ') {
			fputs(".\n", stdout);
			line_begins = true;
			s++;
		} else {
			putchar(*s);
		}
	}
	putchar('\n');
}

static const char *kind_name(const struct field *f)
{
	switch (f->kind) {
	case FIELD_TEXT:
	case FIELD_CHAR:
	case FIELD_DEV:
		return "string";
	case FIELD_LINES:
		return "array of strings";
	case FIELD_BOOL:
		return "true or false";
	case FIELD_REAL:
	case FIELD_MS:
		return "number";
	case FIELD_CHOICE:
		return "value of";
	case FIELD_EACH:
	case FIELD_OBJECT:
	case FIELD_PART:
		return "object";
	case FIELD_COUNTS:
		return "array of integers";
	case FIELD_ARRAY:
		return "array of objects";
	default:
		return "integer";
	}
}

static void print_man_fields(const struct field *fields);

static void print_man_field(const struct field *f)
{
	printf(".It Cm %s Pq %s", f->key, kind_name(f));
	if (f->kind == FIELD_CHOICE)
		printf(" %s", f->values->name);
	puts(f->nullable ? " or null" : "");
	print_roff(f->help);
	if (f->kind == FIELD_EACH) {
		puts(".Bl -tag -width Ds");
		for (unsigned int i = 1; i < f->values->count; i++) {
			printf(".It Cm %s\n", f->values->values[i].text);
			print_roff(f->values->values[i].help);
		}
		puts(".El");
	} else if (f->members) {
		puts(".Bl -tag -width Ds");
		print_man_fields(f->members);
		puts(".El");
	}
}

static void print_man_fields(const struct field *fields)
{
	for (const struct field *f = fields; f->key; f++) {
		if (f->kind == FIELD_PART)
			print_man_fields(f->members);
		else
			print_man_field(f);
	}
}

static void print_man_values(const struct record_enum *e)
{
	/* Each of these is a key of its own, and stands there. */
	if (e == &record_lost_enum)
		return;
	printf(".Ss Values of %s\n", e->name);
	print_roff(e->help);
	puts(".Bl -tag -width Ds");
	for (unsigned int i = 1; i < e->count; i++) {
		printf(".It Ql %s\n", e->values[i].text);
		print_roff(e->values[i].help);
	}
	puts(".El");
}

static void print_man_keys(void)
{
	puts(".Sh KEYS\n.Ss Every line\n.Bl -tag -width Ds");
	print_man_fields(record_common);
	puts(".El");
	for (unsigned int i = 0; i < RECORD_TYPE_COUNT; i++) {
		printf(".Ss Type %s\n", record_types[i].name);
		print_roff(record_types[i].help);
		puts(".Bl -tag -width Ds");
		print_man_fields(record_types[i].fields);
		puts(".El");
	}
	puts(".Sh VALUES");
	for (size_t i = 0; i < ARRAY_SIZE(enums); i++)
		print_man_values(enums[i]);
}

int main(int argc, char **argv)
{
	int r = 0;

	if (argc == 2 && strcmp(argv[1], "schema") == 0) {
		print_schema();
	} else if (argc == 3 && strcmp(argv[1], "man") == 0) {
		r = generate_from_template(argv[2], "@RECORD@\n", print_man_keys);
	} else {
		fputs("usage: iostall-record-gen schema | man TEMPLATE\n", stderr);
		return 2;
	}
	return generate_finish("iostall-record-gen", argv[argc - 1], r);
}
