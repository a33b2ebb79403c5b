# SPDX-License-Identifier: GPL-2.0-or-later
# A record without what differs from run to run and from host to host. Keys stay, so a missing one shows. Which
# probes there are is no matter of a replay.
.ts = "TS" | .mono_ns = 0 | .incident = "ID"
| if .type == "open" then
	.host = "HOST" | .kernel = "KERNEL" | .version = "VERSION" | .armed_ns = 0 |
	.coverage = []
  elif .type == "close" then
	.duration_ns = 0 | .cost |= map_values(0)
  else
	.
  end
