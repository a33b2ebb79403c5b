# SPDX-License-Identifier: GPL-2.0-or-later
# Puts 24 disks that do a little into a record: before the trigger they take turns in the eight that a sample has, and
# ten are the first of which it is told who loaded them.
input as $open
| [range(24) | { dev: "65:\(16 * .)", dev_name: "sdc\([97 + .] | implode)" }] as $disks
| ({ v: 1, incident: $open.incident, seq: 0, ts: $open.ts, final: false, requests: 10, read_requests: 10,
	read_busy_ms: 30, write_busy_ms: 0, discard_busy_ms: 0, flush_busy_ms: 0, before_busy_ms: 0,
	mono_ns: ($open.mono_ns + 1000000000) }) as $load
| $open, (range(20) as $i
	| { v: 1, type: "sample", incident: $open.incident, seq: 0, ts: $open.ts, before_trigger: true,
		mono_ns: ($open.mono_ns - (25 - $i) * 1000000000), interval_ns: 1000000000, devices_left_out: 16,
		devices: [range(8) | $disks[($i * 8 + .) % 24] + { util_pct: 3, inflight: 0, queue: 0.03, reads: 10,
			read_await_ms: 1, write_await_ms: null, read_bytes: 40960, read_ticks_ms: 10 }] }),
	(range(10) as $i
	| $load + $disks[$i] + { type: "device", read_bytes: 40960 },
		($load | del(.device)) + { type: "io_by", by: "process", rank: 1, dev: $disks[$i].dev, pid: (900 + $i),
			comm: "other\($i)", bytes: 40960, read_bytes: 40960, busy_ms: 30, busy_share_pct: 100, share_pct: 100 }),
	inputs
