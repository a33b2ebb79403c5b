# SPDX-License-Identifier: GPL-2.0-or-later
# Puts 96 disks that do a little into a record: before the trigger (as far as the host was up) they take turns in the
# eight that a sample has, and ten are the first of which it is told who loaded them. $waits threads wait for
# them for a tenth of a second, each of another program; those beyond the disks for something else.
input as $open
| [range(96) | { dev: "\(65 + . / 16 | floor):\(. % 16 * 16)", dev_name: "sd\([99 + . / 24, 97 + . % 24] | map(floor) | implode)" }] as $disks
| ({ v: 1, incident: $open.incident, seq: 0, ts: $open.ts, final: false, requests: 10, read_requests: 10,
	read_busy_ms: 30, write_busy_ms: 0, discard_busy_ms: 0, flush_busy_ms: 0, before_busy_ms: 0,
	mono_ns: ($open.mono_ns + 1000000000) }) as $load
| $open, (range(20) as $i
	| { v: 1, type: "sample", incident: $open.incident, seq: 0, ts: $open.ts, before_trigger: true,
		mono_ns: ([$open.mono_ns - (25 - $i) * 1000000000, $i] | max), interval_ns: 1000000000, devices_left_out: 88,
		devices: [range(8) | $disks[($i * 8 + .) % 96] + { util_pct: 3, inflight: 0, queue: 0.03, reads: 10,
			read_await_ms: 1, write_await_ms: null, read_bytes: 40960, read_ticks_ms: 10 }] }),
	(range(10) as $i
	| $load + $disks[$i] + { type: "device", read_bytes: 40960 },
		($load | del(.device)) + { type: "io_by", by: "process", rank: 1, dev: $disks[$i].dev, pid: (900 + $i),
			comm: "other\($i)", bytes: 40960, read_bytes: 40960, busy_ms: 30, busy_share_pct: 100, share_pct: 100 }),
	(range($waits) as $i
	| $disks[$i] + { v: 1, type: "stall", incident: $open.incident, seq: 0, ts: $open.ts, final: false,
		mono_ns: ($open.mono_ns + 200000000), start_mono_ns: ($open.mono_ns + 50000000), dur_ns: 120000000,
		slept_ns: 120000000, sleeps: 1, probe: "vfs", op: "read", waits_for: "device", pid: (5000 + $i), tid: (5000 + $i),
		comm: "tenant\($i)", path: "/v\($i)/f", ret: 4096 }),
	inputs
