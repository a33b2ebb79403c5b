# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks the lines of one thread whose work the test knows. The output is as in stalls.jq.
#   $record        lines of the record
#   --argjson tid N       --arg comm NAME
#   --arg type stall|stuck
#   --arg path REGEX      of the files it stalled on       --argjson ops [OP, ...]
#   --argjson least N     it has at least N lines
#   --arg probe NAME      the probe that must have seen them, or "any"
#   --argjson over NS     the longest takes at least NS

[$record[] | select(.type == $type and .tid == $tid)] as $all
| [$all[] | select((.path // "" | test($path)) and (.op | IN($ops[])) and
	($probe == "any" or .probe == $probe))] as $wanted
| ($wanted | map(.dur_ns // .age_ns) | max // 0) as $longest
| "# \($comm)[\($tid)]: \($wanted | length) \($type) lines, longest \($longest / 1e6 | round) ms; " +
	"in all \($all | group_by([.probe, .op]) | map("\(length) \(.[0].op) by \(.[0].probe)")
		| join(", "))",
  (if ($wanted | length) < $least
   then "\($wanted | length) lines, not \($least), match \($path); others: \($all - $wanted |
	map([.probe, .op, .path]) | unique | .[:5] | tojson)" else empty end),
  (if $longest < $over then "the longest took only \($longest / 1e6) ms" else empty end),
  ($wanted | map(select(.comm != $comm)) | select(length > 0)
	| "comm is \(.[0].comm | tojson), not \($comm | tojson)"),
  ($wanted | map(select(.exe // "" | endswith("/" + $comm) | not)) | select(length > 0)
	| "exe is \(.[0].exe | tojson)")
