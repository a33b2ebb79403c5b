/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/list.h"

const struct probe_ops *probe_ops_get(enum config_probe_name name)
{
	static const struct probe_ops *const table[CONFIG_PROBE_COUNT] = {
#define PROBE(name, ...) [CONFIG_PROBE_##name] = &probe_##name##_ops,
#include "probes/probes.def"
#undef PROBE
	};

	return table[name];
}

const struct probe_ops *probe_ops_choose(enum config_probe_name name,
	const struct probe_settings *settings)
{
	const struct probe_ops *ops = probe_ops_get(name);

	return ops->more && ops->wants_more(settings) ? ops->more : ops;
}

/* Both enums have the lines of probes.def in their order; the one of records begins with NONE. */
enum record_probe probe_in_record(enum config_probe_name name)
{
	return (enum record_probe)(RECORD_PROBE_NONE + 1 + name);
}
