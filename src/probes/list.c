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
