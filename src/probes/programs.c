/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/programs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "probes/maps.h"
#include "probes/tracefs.h"
#include "util/cleanup.h"

static const struct probe_program *find_program(const struct probe_backend *backend,
	const char *name)
{
	for (unsigned int i = 0; i < backend->programs_count; i++)
		if (strcmp(backend->programs[i].name, name) == 0)
			return &backend->programs[i];
	return NULL;
}

const struct probe_part *programs_part_of(const struct probe *probe, const char *program)
{
	for (unsigned int i = 0; i < probe->ops->parts_count; i++)
		if (strstr(program, probe->ops->parts[i].programs))
			return &probe->ops->parts[i];
	return NULL;
}

static bool is_used(const struct probe *probe, const struct probe_backend *backend,
	const char *program)
{
	const struct probe_loss *lost = probe->lost[backend - probe->ops->backends];
	const struct probe_part *part = programs_part_of(probe, program);

	if (probe->alone)
		return part == probe->alone;
	return !part || !lost[part - probe->ops->parts].step;
}

void programs_forget_passing_losses(struct probe *probe, const struct probe_backend *backend)
{
	struct probe_loss *lost = probe->lost[backend - probe->ops->backends];

	for (unsigned int i = 0; i < probe->ops->parts_count; i++)
		if (lost[i].passes)
			lost[i] = (struct probe_loss){};
}

bool programs_is_kprobe(const struct probe_program *p)
{
	return p->attach == PROBE_ATTACH_KPROBE || p->attach == PROBE_ATTACH_KRETPROBE;
}

static struct tracefs_event event_of(const struct probe *probe, const struct probe_program *p)
{
	return (struct tracefs_event){
		.function = p->target,
		.is_return = p->attach == PROBE_ATTACH_KRETPROBE,
		.generation = probe->generation,
	};
}

int programs_create_events(const struct probe *probe, const struct probe_backend *backend)
{
	for (unsigned int i = 0; i < backend->programs_count; i++) {
		const struct probe_program *p = &backend->programs[i];
		const struct tracefs_event event = event_of(probe, p);
		int r;

		if (!programs_is_kprobe(p) || !is_used(probe, backend, p->name))
			continue;
		r = tracefs_create_event(&event);
		if (r < 0)
			return r;
	}
	return 0;
}

void programs_remove_events(const struct probe *probe, const struct probe_backend *backend)
{
	for (unsigned int i = 0; i < backend->programs_count; i++) {
		const struct probe_program *p = &backend->programs[i];
		const struct tracefs_event event = event_of(probe, p);

		if (programs_is_kprobe(p))
			tracefs_remove_event(&event);
	}
}

void programs_close(struct probe *probe)
{
	if (probe->skeleton)
		probe->ops->destroy(probe->skeleton);
	probe->skeleton = NULL;
	probe->object = NULL;
	probe->attached_once = false;
}

/*
 * libbpf would allocate 16 MiB for what the verifier says of a program that it refuses, and memory
 * is locked.
 */
#define LOG_BYTES (256 * 1024)

int programs_open(struct probe *probe, const struct probe_backend *backend,
	const struct probe_settings *settings, const struct trace_maps *maps)
{
	_cleanup_free_ char *log = calloc(1, LOG_BYTES);
	struct probe_settings with_log = *settings;
	struct bpf_program *program;
	int r;

	if (!log)
		return -ENOMEM;
	with_log.log = log;
	with_log.log_bytes = LOG_BYTES;
	r = probe->ops->open(&with_log, backend, &probe->skeleton, &probe->object);
	if (r < 0)
		return r;
	programs_forget_passing_losses(probe, backend);
	r = trace_maps_reuse(maps, probe->object);
	bpf_object__for_each_program(program, probe->object) bpf_program__set_autoload(program,
		find_program(backend, bpf_program__name(program)) &&
			is_used(probe, backend, bpf_program__name(program)));
	if (r == 0)
		r = bpf_object__load(probe->object);
	if (r < 0)
		programs_close(probe);
	return r;
}

static struct bpf_link *attach_raw_tracepoint(const struct probe_program *p,
	struct bpf_program *program)
{
	const char *older = strchr(p->target, '|');
	struct bpf_link *link;
	char name[64];

	if (!older)
		return bpf_program__attach_raw_tracepoint(program, p->target);
	snprintf(name, sizeof(name), "%.*s", (int)(older - p->target), p->target);
	link = bpf_program__attach_raw_tracepoint(program, name);
	if (!link && errno == ENOENT)
		link = bpf_program__attach_raw_tracepoint(program, older + 1);
	return link;
}

static struct bpf_link *attach_program(const struct probe *probe, const struct probe_program *p,
	struct bpf_program *program)
{
	const struct tracefs_event event = event_of(probe, p);
	char name[TRACEFS_EVENT_SIZE], category[TRACEFS_EVENT_SIZE];
	const char *slash;

	switch (p->attach) {
	case PROBE_ATTACH_BTF:
		return bpf_program__attach_trace(program);
	case PROBE_ATTACH_RAW_TRACEPOINT:
		return attach_raw_tracepoint(p, program);
	case PROBE_ATTACH_KPROBE:
	case PROBE_ATTACH_KRETPROBE:
		tracefs_event_name(&event, name);
		return bpf_program__attach_tracepoint(program, TRACEFS_GROUP, name);
	case PROBE_ATTACH_TRACEPOINT:
		slash = strchr(p->target, '/');
		snprintf(category, sizeof(category), "%.*s", (int)(slash - p->target), p->target);
		return bpf_program__attach_tracepoint(program, category, slash + 1);
	case PROBE_ATTACH_NONE:
		break;
	}
	errno = EINVAL;
	return NULL;
}

void programs_detach(struct probe *probe)
{
	while (probe->links_count > 0)
		bpf_link__destroy(probe->links[--probe->links_count]);
}

int programs_attach(struct probe *probe, const struct probe_backend *backend,
	const struct probe_program **ret_refused)
{
	unsigned int known = 0;

	/* Set even when it fails half-way: 5.10 attaches no program a second time. */
	probe->attached_once = true;
	for (unsigned int i = 0; i < backend->programs_count; i++) {
		const struct probe_program *p = &backend->programs[i];
		struct bpf_link *link;

		if (p->attach == PROBE_ATTACH_NONE || !is_used(probe, backend, p->name))
			continue;
		/* Detaching goes from the last to the first: what is still attached comes first. */
		if (known++ < probe->links_count)
			continue;
		link = attach_program(probe, p,
			bpf_object__find_program_by_name(probe->object, p->name));
		if (!link) {
			int r = -errno;

			programs_detach(probe);
			*ret_refused = p;
			return r;
		}
		probe->links[probe->links_count++] = link;
	}
	return 0;
}
