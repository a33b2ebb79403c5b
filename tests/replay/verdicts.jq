# SPDX-License-Identifier: GPL-2.0-or-later
# What `iostall judge --json` says of records, for a person who looks at a difference: the files are the arguments.
def who: [(.comm // empty), (if .tid then "thread \(.tid)" else empty end), (if .pid then "pid \(.pid)" else empty end)] | join(" ");
[$ARGS.positional, .] | transpose[] | .[0] as $file | .[1]
| "\($file | rtrimstr(".jsonl")): \(.class) \(.basis // "-") \(.dev // "-") \(.waits_for // "-")",
  "  \(.sentence)",
  (if .message != .sentence then "  \(.message)" else empty end),
  (.parts[] | "    \(.what): \(.text) [\([who, .path // empty] | map(select(. != "")) | join(", "))]")
