# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compares one run of fio with the record. The output is as in stalls.jq.
#   $record  lines of the record
#   $rows    a line for each run: row, pid, path (what comes before a dot and a number), covered_by (of
#            `coverage`, that of fsync after a "+"), ops (the record's names of what is in lat_ns), lat_ns
#            (each operation), sync_ns (each fsync)
#   --arg row NAME   the run to check
#
# A fault or an msync has a path only where a probe sees the operation itself and not only the sleep in it.
# Counts may differ by 2 %, rounded up. An operation within 5 % of the threshold may be above or below it.

def count_over($limit): map(select(. > $limit)) | length;

def not_seen: .probe == null and (.reason // "" | length) > 0;

# One kind of operation: how many fio and the record have, and whether the coverage says that it is not seen.
def compare($open; $row; $covered_by; $ops; $lat_ns):
	$open.min_stall_ns as $min_ns
	| ($lat_ns | count_over($min_ns * 1.05)) as $least
	| ($lat_ns | count_over($min_ns * 0.95)) as $most
	| [$record[] | select(.type == "stall" and .pid == $row.pid and
		(.path // "" | startswith($row.path + ".") or
			(. == "" and ($ops[0] | IN("fault", "fsync")))))] as $stalls
	| [$stalls[] | select(.op | IN($ops[]))]
	# Where no probe sees a buffered request, the record has the thread that sleeps in io_submit.
	| if length == 0 and $covered_by == "libaio" then [$stalls[] | select(.op == "submit")] else . end
	| {op: $ops[0], least: $least, found: length,
	   missing: ([($least * 0.98 | floor) - length, 0] | max),
	   extra: ([length - ($most * 1.02 | ceil), 0] | max),
	   nameless: (map(select(.path == null)) | length),
	   probes: (group_by(.probe) | map("\(length) by \(.[0].probe)") | join(", ")),
	   path: $covered_by, coverage: ($open.coverage | map(select(.path == $covered_by)) | .[0])};

first($record[] | select(.type == "open")) as $open
| ([$record[] | select(.type == "close") | .lost | del(.path_truncated) | to_entries[] | .value]
	| add // 0) as $lost
| first($rows[] | select(.row == $row)) as $run
| ($run.covered_by | split("+")) as $paths
| [compare($open; $run; $paths[0]; $run.ops; $run.lat_ns),
   (select($run.sync_ns | length > 0)
	| compare($open; $run; $paths[-1]; ["fsync", "sync"]; $run.sync_ns))] as $kinds
| "# \($row): \($kinds | map("\(.least) of fio's \(.op) are over the threshold, " +
	"\(.found) in the record" + (if .found > 0 then " (\(.probes))" else "" end) +
	(if .nameless > 0 then ", \(.nameless) without a path" else "" end) +
	(if .least > 0 and (.coverage | not_seen)
	 then ", \(.path) is not seen: \(.coverage.reason)" else "" end)) | join("; "))",
  (if ($kinds | map(.least) | add) < 50
   then "fewer than 50 are over the threshold: the disk was not slow" else empty end),
  ($kinds[]
	| (if .missing == 0 or .missing <= $lost or (.coverage | not_seen) then empty
	   else "\(.missing) of \(.op) are missing, lost says \($lost), \(.path) is covered by " +
		"\(.coverage.probe)" end),
	  (if .extra == 0 then empty else "\(.extra) of \(.op) are too many" end))
