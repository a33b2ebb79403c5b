# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks what every complete record must have. The output is as in stalls.jq.
#   $record  lines of the record        $backend  the requested backend, or "auto"
#   $pairing  the requested pairing of vfs
#
# A kernel with lazy preemption skips runs of BPF programs, which may lose returns. On a busy host names may not be read
# in time. Other programs that use thousands of files on the disks of the host, as an upgrade of packages does, fill the
# table of files. Nothing else may be lost.

# EVENT_BLOCK_FILES_MAX: each request is for one file.
def FILES: 1536;

def must($what; condition): if condition then empty else $what end;

$record[0] as $open | $record[-1] as $close
| ($close.lost // {}) as $lost
| "# attach \($close.cost.attach_ms) ms, armed after \($close.cost.armed_ms) ms, disarm " +
	"\($close.cost.disarm_ms) ms, longest turn \($close.cost.turn_ms) ms, cpu \($close.cost.cpu_ms) ms, rss " +
	"\(($close.cost | .rss_bytes + .kernel_bytes) / 1048576 * 10 | round / 10) MiB, lost \($lost
		| with_entries(select(.value > 0)) | tojson)",
  must("it does not begin with its one open line and end with its one close line";
	$open.type == "open" and $close.type == "close" and
	($record | map(select(.type == "open" or .type == "close")) | length == 2)),
  must("lost";
	$lost | del(.prog_skipped, .path_truncated, .names_unread)
	| if ($record | map(select(.type == "device" and .final and (.dev_name | startswith("loop") | not)).requests) | add // 0)
		> FILES then del(.account_full) else . end
	| if $lost.prog_skipped > 0 then del(.return_missed) else . end
	| all(.[]; . == 0)),
  must("coverage does not name the probe of each path, or the reason why there is none";
	$open.coverage | (["pread64", "pwrite64", "read", "write"] -
			(map(select(.probe == "vfs")) | map(.path)) | length == 0) and
		(map(select(.probe == null)) | all(.reason | length > 0))),
  must("the backend is not the one asked for";
	$backend == "auto" or ($open.coverage | map(select(.probe == "vfs")) | map(.backend)
		| unique - [null] == [$backend])),
  must("the pairing is not the one asked for";
	$open.coverage | map(select(.probe == "vfs") | .pairing) | unique - [$pairing] == []),
  must("close counts other lines than there are";
	$close.stalls == ($record | map(select(.type == "stall") | 1 + (.alike.count // 0)) | add // 0) and
	$close.stuck_lines == ($record | map(select(.type == "stuck")) | length) and
	$close.samples == ($record | map(select(.type == "sample")) | length))
