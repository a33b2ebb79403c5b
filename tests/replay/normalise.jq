# SPDX-License-Identifier: GPL-2.0-or-later
# Replaces all values that differ between runs and hosts. The keys stay, so that a missing key is noticed. The
# coverage is removed, since a replay has no probes.
.ts = "2026-11-20T03:12:07.000000Z" | .mono_ns = 0 | .incident = "20261120T031207Z-3f9c"
| if .type == "open" then
	.host = "HOST" | .kernel = "KERNEL" | .version = "VERSION" | .armed_ns = 0 |
	.coverage = []
  elif .type == "close" then
	# A host without a free CPU reads names late.
	.duration_ns = 0 | .cost |= map_values(0) | .lost.names_unread = 0
  elif .type == "verdict" then
	# Waits count from a time before the trigger on, which is when the replay ran.
	.parts |= map(if .total_ns then .total_ns = 0 else . end)
  else
	.
  end
