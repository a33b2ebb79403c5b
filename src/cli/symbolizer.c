/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/symbolizer.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/apart.h"
#include "iostall/event.h"
#include "util/cleanup.h"
#include "util/log.h"

#define ID_SIZE (2 * EVENT_BUILD_ID_SIZE + 1)
/* What is told of a name; those of C++ templates can be of any length. */
#define NAME_MAX_BYTES 200
/* For one stack: on a slow disk the largest programs and libdw are read within a second. */
#define ANSWER_MS 10000

/* The functions of libdw and of the C++ library that are used. */
static struct {
	bool there;
	const char *(*addrinfo)(Dwfl_Module *, GElf_Addr, GElf_Off *, GElf_Sym *, GElf_Word *,
		Elf **, Dwarf_Addr *);
	Dwfl *(*begin)(const Dwfl_Callbacks *);
	ssize_t (*build_id)(Elf *, const void **);
	Elf *(*getelf)(Dwfl_Module *, GElf_Addr *);
	int (*report_build_id)(Dwfl_Module *, const unsigned char *, size_t, GElf_Addr);
	int (*report_end)(Dwfl *, int (*)(Dwfl_Module *, void *, const char *, Dwarf_Addr, void *),
		void *);
	Dwfl_Module *(*report_module)(Dwfl *, const char *, GElf_Addr, GElf_Addr);
	Dwfl_Module *(*report_offline)(Dwfl *, const char *, const char *, int);
	Dwfl_Callbacks callbacks;
	Dwfl_Callbacks callbacks_of_host; /* with the debug symbols of the host alone */
	char *debuginfo_path;
	char *(*demangle)(const char *, char *, size_t *, int *);
} libdw;

/* A file with this build-id; a program or a library. */
struct module {
	char id[ID_SIZE];
	char name[64]; /* of the file; "": none was found */
	Dwfl *dwfl;    /* NULL: there is none, or it cannot be read */
	Dwfl_Module *dwfl_module;
};

/* A file of this host, by its build-id. */
struct file {
	char id[ID_SIZE];
	char path[];
};

/* Trees of tsearch(3). */
struct names {
	void *modules;
	void *files;
	void *searched; /* directories and programs that have been looked at */
};

static int compare_ids(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The library */

static void *find_function(void *library, const char *name)
{
	void *function = library ? dlsym(library, name) : NULL;

	libdw.there &= function != NULL;
	return function;
}

static char debuginfo_path[] = "/usr/lib/debug";

static void load_libdw(void)
{
	void *dw = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL), *cxx;

	libdw.there = elf_version(EV_CURRENT) != EV_NONE;
	libdw.addrinfo = find_function(dw, "dwfl_module_addrinfo");
	libdw.begin = find_function(dw, "dwfl_begin");
	libdw.build_id = find_function(dw, "dwelf_elf_gnu_build_id");
	libdw.getelf = find_function(dw, "dwfl_module_getelf");
	libdw.report_build_id = find_function(dw, "dwfl_module_report_build_id");
	libdw.report_end = find_function(dw, "dwfl_report_end");
	libdw.report_module = find_function(dw, "dwfl_report_module");
	libdw.report_offline = find_function(dw, "dwfl_report_offline");
	libdw.callbacks.find_elf = find_function(dw, "dwfl_build_id_find_elf");
	libdw.callbacks.find_debuginfo = find_function(dw, "dwfl_standard_find_debuginfo");
	libdw.callbacks.section_address = find_function(dw, "dwfl_offline_section_address");
	libdw.callbacks_of_host = libdw.callbacks;
	libdw.debuginfo_path = debuginfo_path;
	libdw.callbacks_of_host.debuginfo_path = &libdw.debuginfo_path;
	if (!libdw.there) {
		log_warning("functions of programs have no names here, because libdw cannot be "
			    "loaded; install libdw1");
		return;
	}
	/* Whoever runs a program in C++ has it. */
	cxx = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	libdw.demangle = cxx ? dlsym(cxx, "__cxa_demangle") : NULL;
}

/* Files by their build-ids */

static bool is_trusted(const struct stat *st)
{
	return !(st->st_mode & (S_IWGRP | S_IWOTH)) && (st->st_uid == 0 || st->st_uid == geteuid());
}

/*
 * A descriptor, or -1. What others may write may be made to harm its reader, and a FIFO would keep
 * it waiting.
 */
static int open_trusted(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !is_trusted(&st))
		return -1;
	return TAKE_FD(fd);
}

/* False: it has none. */
static bool read_build_id(int fd, char ret_id[ID_SIZE])
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *bits = NULL;
	ssize_t size = elf ? libdw.build_id(elf, &bits) : -1;

	for (ssize_t i = 0; size == EVENT_BUILD_ID_SIZE && i < size; i++)
		snprintf(ret_id + 2 * i, 3, "%02x", ((const unsigned char *)bits)[i]);
	elf_end(elf);
	return size == EVENT_BUILD_ID_SIZE;
}

static void note_file(struct names *s, const char *path)
{
	_cleanup_close_ int fd = open_trusted(path);
	size_t size = strlen(path) + 1;
	struct file *file = fd >= 0 ? calloc(1, sizeof(*file) + size) : NULL;
	void *found;

	if (!file)
		return;
	memcpy(file->path, path, size);
	found = read_build_id(fd, file->id) ? tsearch(file, &s->files, compare_ids) : NULL;
	if (!found || *(struct file **)found != file)
		free(file);
}

/* Whether it has not been looked at before. */
static bool is_new(struct names *s, const char *path)
{
	char *copy = strdup(path);
	void *found = copy ? tsearch(copy, &s->searched, compare_ids) : NULL;

	if (found && *(char **)found == copy)
		return true;
	free(copy);
	return false;
}

static void note_directory(struct names *s, const char *path)
{
	DIR *dir = is_new(s, path) ? opendir(path) : NULL;
	const struct dirent *entry;
	char name[PATH_MAX];

	while (dir && (entry = readdir(dir)))
		if (strstr(entry->d_name, ".so") &&
			snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) <
				(int)sizeof(name))
			note_file(s, name);
	if (dir)
		closedir(dir);
}

/* The directories that a file of ld.so.conf(5) names. */
static void note_directories_of(struct names *s, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[PATH_MAX];

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, " \t\n#")] = '\0';
		if (line[0] == '/')
			note_directory(s, line);
	}
	if (file)
		fclose(file);
}

static void note_libraries(struct names *s)
{
	static const char conf[] = "/etc/ld.so.conf.d";
	DIR *dir;
	const struct dirent *entry;
	char name[PATH_MAX];

	if (!is_new(s, conf))
		return;
	dir = opendir(conf);
	while (dir && (entry = readdir(dir)))
		if (snprintf(name, sizeof(name), "%s/%s", conf, entry->d_name) < (int)sizeof(name))
			note_directories_of(s, name);
	if (dir)
		closedir(dir);
	note_directory(s, "/usr/lib64");
	note_directory(s, "/usr/lib");
}

/* NULL: there is none. */
static const char *find_file(struct names *s, const char id[ID_SIZE], const char *exe)
{
	void *found;

	if (*exe && is_new(s, exe))
		note_file(s, exe);
	found = tfind(id, &s->files, compare_ids);
	if (!found) {
		note_libraries(s);
		found = tfind(id, &s->files, compare_ids);
	}
	return found ? (*(struct file **)found)->path : NULL;
}

/* Modules */

/* Where libdw looks for what has this build-id, which may be a server that others keep. */
static void open_by_id(struct module *module)
{
	unsigned char bits[EVENT_BUILD_ID_SIZE];
	GElf_Addr bias;

	for (unsigned int i = 0; i < sizeof(bits); i++)
		if (sscanf(module->id + 2 * i, "%2hhx", &bits[i]) != 1)
			return;
	module->dwfl = libdw.begin(&libdw.callbacks);
	if (!module->dwfl)
		return;
	module->dwfl_module = libdw.report_module(module->dwfl, module->id, 0, UINT64_MAX >> 1);
	if (module->dwfl_module)
		libdw.report_build_id(module->dwfl_module, bits, sizeof(bits), 0);
	libdw.report_end(module->dwfl, NULL, NULL);
	if (module->dwfl_module && !libdw.getelf(module->dwfl_module, &bias))
		module->dwfl_module = NULL;
}

/* Debug symbols may lie beside it, where everybody may have put them who can write there. */
static bool has_trusted_directory(const char *path, char ret_real[static PATH_MAX])
{
	char dir[PATH_MAX];
	struct stat st;

	if (!realpath(path, ret_real))
		return false;
	text_copy(dir, sizeof(dir), ret_real);
	/* It begins with one. */
	strrchr(dir, '/')[1] = '\0';
	return stat(dir, &st) == 0 && is_trusted(&st);
}

/* The path may lead to another file by now: it is looked at again, and not opened by libdw. */
static void open_file(struct module *module, const char *path)
{
	_cleanup_close_ int fd = open_trusted(path);
	const char *slash = strrchr(path, '/');
	char id[ID_SIZE] = "", real[PATH_MAX] = "";

	if (fd < 0 || !read_build_id(fd, id) || memcmp(id, module->id, ID_SIZE) != 0)
		return;
	module->dwfl = libdw.begin(
		has_trusted_directory(path, real) ? &libdw.callbacks : &libdw.callbacks_of_host);
	if (!module->dwfl)
		return;
	text_copy(module->name, sizeof(module->name), slash ? slash + 1 : path);
	module->dwfl_module = libdw.report_offline(module->dwfl, module->name, real, fd);
	/* It is closed with the module. */
	if (module->dwfl_module)
		fd = -1;
	libdw.report_end(module->dwfl, NULL, NULL);
}

/* NULL: out of memory. */
static struct module *find_module(struct names *s, const char id[ID_SIZE], const char *exe)
{
	void *found = tfind(id, &s->modules, compare_ids);
	struct module *module = found ? *(struct module **)found : calloc(1, sizeof(*module));
	const char *path;

	if (found || !module)
		return module;
	memcpy(module->id, id, ID_SIZE);
	if (!tsearch(module, &s->modules, compare_ids)) {
		free(module);
		return NULL;
	}
	path = find_file(s, id, exe);
	if (path)
		open_file(module, path);
	else
		open_by_id(module);
	return module;
}

/* From the offset in the file to the address that the module has in libdw. */
static bool find_address(const struct module *module, uint64_t offset, GElf_Addr *ret_address)
{
	GElf_Addr bias;
	Elf *elf = libdw.getelf(module->dwfl_module, &bias);
	GElf_Phdr phdr;
	size_t count;

	if (!elf || elf_getphdrnum(elf, &count) < 0)
		return false;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &phdr); i++)
		if (phdr.p_type == PT_LOAD && (phdr.p_flags & PF_X) && offset >= phdr.p_offset &&
			offset - phdr.p_offset < phdr.p_filesz) {
			*ret_address = offset - phdr.p_offset + phdr.p_vaddr + bias;
			return true;
		}
	return false;
}

/* Where the parameters of a function in C++ begin, which its name tells well enough without. */
static size_t len_without_parameters(const char *name)
{
	const char *end = strrchr(name, ')');
	int depth = 0;

	if (!end)
		return strlen(name);
	for (const char *p = end; p > name; p--) {
		depth += *p == ')';
		depth -= *p == '(';
		if (depth == 0)
			return (size_t)(p - name);
	}
	return strlen(name);
}

static void add_name(const char *name, struct text *out)
{
	char *demangled = NULL;
	int status = -1;
	/* "read@GLIBC_2.2.5" */
	size_t len = strcspn(name, "@");

	if (libdw.demangle && strncmp(name, "_Z", 2) == 0)
		demangled = libdw.demangle(name, NULL, NULL, &status);
	if (demangled && status == 0) {
		name = demangled;
		len = len_without_parameters(name);
	}
	text_add_printable(out, name, len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES);
	free(demangled);
}

/* False: nothing better is known than the frame itself. */
static bool add_place(struct names *s, const char *frame, size_t len, bool is_return,
	const char *exe, struct text *out)
{
	struct module *module;
	char id[ID_SIZE];
	uint64_t offset;
	GElf_Addr address;
	GElf_Off behind = 0;
	GElf_Sym symbol;
	const char *name = NULL;

	if (!libdw.there || len < ID_SIZE + 2 || frame[ID_SIZE - 1] != '+')
		return false;
	memcpy(id, frame, ID_SIZE - 1);
	id[ID_SIZE - 1] = '\0';
	offset = strtoull(frame + ID_SIZE, NULL, 16);
	module = find_module(s, id, exe);
	/* A return address is behind the call, which may be the last of its function. */
	if (module && module->dwfl_module && find_address(module, offset - is_return, &address))
		name = libdw.addrinfo(module->dwfl_module, address, &behind, &symbol, NULL, NULL,
			NULL);
	if (name) {
		add_name(name, out);
		return true;
	}
	if (!module || !*module->name)
		return false;
	text_add_printable(out, module->name, strlen(module->name));
	text_addf(out, "+0x%" PRIx64, offset);
	return true;
}

static void add_stack(struct names *s, const struct record_offcpu *line, struct text *out)
{
	bool is_return = false;

	for (const char *frame = line->ustack; *frame; is_return = true) {
		size_t len = strcspn(frame, "\n");

		if (is_return)
			text_add(out, "\n");
		if (!add_place(s, frame, len, is_return, line->exe, out))
			text_add_printable(out, frame, len);
		frame += len + (frame[len] == '\n');
	}
}

/* The process of its own */

/* Answers each line with its stack. Nothing is freed: the process ends. */
static void answer(int fd, const void *arg)
{
	struct names names = { 0 };
	struct record_offcpu line;
	char buf[2 * RECORD_USTACK_SIZE];
	struct text t = TEXT_ON(buf);

	(void)arg;
	load_libdw();
	while (recv(fd, &line, sizeof(line), 0) == sizeof(line)) {
		text_reset(&t);
		add_stack(&names, &line, &t);
		/* Whole lines of it. */
		if (t.len >= sizeof(line.ustack)) {
			t.buf[sizeof(line.ustack) - 1] = '\0';
			*strrchr(t.buf, '\n') = '\0';
		}
		if (send(fd, buf, strlen(buf) + 1, MSG_NOSIGNAL) < 0)
			return;
	}
}

struct symbolizer {
	struct apart apart;
	int timeout_ms;
	bool has_failed;
};

/* NULL: there is no memory for it, or it cannot be started. */
static struct symbolizer *start(void)
{
	const char *servers = getenv("DEBUGINFOD_URLS");
	struct symbolizer *s = calloc(1, sizeof(*s));

	if (!s || apart_start(&s->apart, answer, NULL) < 0) {
		free(s);
		return NULL;
	}
	/* Symbols that are fetched from far away take as long as that takes. */
	s->timeout_ms = servers && *servers ? -1 : ANSWER_MS;
	return s;
}

struct symbolizer *symbolizer_free(struct symbolizer *s)
{
	if (s)
		apart_end(&s->apart);
	free(s);
	return NULL;
}

void symbolizer_name_stack(struct symbolizer **s, struct record_offcpu *line)
{
	char stack[RECORD_USTACK_SIZE];
	ssize_t n = -EPIPE;

	if (!*line->ustack || (!*s && !(*s = start())) || (*s)->has_failed)
		return;
	if (send((*s)->apart.fd, line, sizeof(*line), MSG_NOSIGNAL) == sizeof(*line))
		n = apart_receive(&(*s)->apart, stack, sizeof(stack), (*s)->timeout_ms);
	if (n > 0) {
		memcpy(line->ustack, stack, (size_t)n);
		return;
	}
	(*s)->has_failed = true;
	log_warning("functions of programs have no names from here on: %s",
		n == -ETIMEDOUT ? "reading the programs takes too long, perhaps their disk hangs"
				: "the process that reads the programs has ended");
}
