# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compares the `device` and `io_by` lines of a record with /proc/diskstats and with the programs that did the I/O.
# The output is as in stalls.jq.
#   $record  lines of the record       $ran  lines of stallio, which read one file with O_DIRECT
#   $upper, $lower  the disk and the one below it, "7:1"    $image  the file on the lower one
#   $mnt  where "table", "buffered" and "direct" are         $before, $after  sectors read, written
#   $buffered, $direct  bytes written  $slow  1: the lower disk was slow

def must($what; condition): if condition then empty else $what end;
def about($expected; $percent): (. - $expected | fabs) <= $expected * $percent / 100;

($before | split(" ") | map(tonumber * 512)) as $b
| ($after | split(" ") | map(tonumber * 512)) as $a
| ($ran | map(.bytes) | add) as $read
| ($ran | map(.dur_ns / 1000000) | {sum: add, max: max}) as $op_ms
| [$record[] | select(.type == "device" and .dev == $upper)] as $devices
| ($devices[-1] // {}) as $d
| [$record[] | select(.type == "io_by" and .final and .dev == $upper)] as $by
| def one($kind; f): [$by[] | select(.by == $kind and f)] | if length == 1 then .[0] else null end;
  one("thread"; .tid == $ran[0].tid) as $thread
| one("process"; .pid == $ran[0].pid) as $process
| one("file"; .path == $mnt + "/table") as $table
| one("file"; .path == $mnt + "/buffered") as $buffered_file
| one("file"; .path == $mnt + "/direct") as $direct_file
| "# read \($d.read_bytes) of \($a[0] - $b[0]) bytes, written \($d.write_bytes) of \($a[1] - $b[1]), " +
	"reader \($thread.share_pct) %, requests \($thread.device_ms) ms, the longest \($d.device_ms.max), " +
	"operations \($op_ms.sum | round) ms, the longest \($op_ms.max)",
  must("not one last line of the disk"; [$devices[] | select(.final)] | length == 1),
  must("read_bytes is \($d.read_bytes)"; $d.read_bytes | about($a[0] - $b[0]; 2)),
  must("write_bytes is \($d.write_bytes)"; $d.write_bytes | about($a[1] - $b[1]; 2)),
  must("requests do not add up";
	$d.requests >= $d.read_requests + $d.write_requests and
	($d.read_requests + $d.write_requests - ($d.device_histogram | add) |
		. >= 0 and . <= $d.before_requests)),
  must("a request is left in flight: \($d.oldest)"; $d.in_flight == 0 and $d.oldest.age_ns == null),
  must("the times in the device are \($d.device_ms)";
	$d.device_ms.max >= $d.device_ms.p99 and $d.device_ms.p99 >= $d.device_ms.p50 and
	$d.device_ms.p50 > 0),
  must("the reader's time in the device is \($thread.device_ms) ms, its operations took \($op_ms) ms";
	$slow == 0 or ($thread.device_ms <= $op_ms.sum and $thread.device_ms > $op_ms.sum * 0.7 and
		($d.device_ms.max | about($op_ms.max; 30)))),
  must("the reading thread: \($thread)";
	$thread.read_bytes == $read and $thread.share_pct > 80 and $thread.pid == $ran[0].pid and
	$thread.comm == $ran[0].comm and ($thread.inferred | not)),
  must("the reading process: \($process)";
	$process.read_bytes == $read and $process.share_pct > 80 and $process.tid == null),
  must("the file that was read: \($table)";
	$table.read_bytes == $read and $table.share_pct > 80 and $table.inode == $ran[0].inode and
	$table.fs_dev == $upper and ($table.path_truncated | not) and ($table.inferred | not)),
  must("the file that was written back: \($buffered_file)";
	$buffered_file.write_bytes >= $buffered and ($buffered_file.inferred | not)),
  # A kworker did it for the program that dirtied the pages.
  must("who wrote it: \($by | map(select(.by == "thread")))";
	any($by[]; .by == "thread" and (.inferred | not) and .comm == "dd" and .write_bytes >= $buffered)),
  must("the file that was written directly: \($direct_file)";
	$direct_file.write_bytes == $direct and ($direct_file.inferred | not)),
  must("the disk below: \([$record[] | select(.type == "io_by" and .final and .dev == $lower and .by == "file")])";
	[$record[] | select(.type == "io_by" and .final and .dev == $lower and .by == "file" and
		.path == $image and .inferred and .share_pct > 80)] | length == 1),
  must("shares of more than the whole";
	# Each share is rounded to two decimals.
	$by | group_by(.by) | all((map(.share_pct) | add) < 100 + 0.01 * length))
