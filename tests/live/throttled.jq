# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks where a run of fio spent its time when its I/O was delayed before it reached the queue of the device. The
# output is as in stalls.jq.
#   $record  lines of the record          $lat_ns  each request, as fio measured it
#   --argjson pid N   --arg path P   --arg probe NAME   the process, its file, the probe that sees its requests
#   --arg dev NAME   the device

def percentile($p): sort | .[(length * $p / 100 | floor)];

first($record[] | select(.type == "open")).min_stall_ns as $min_ns
| [$lat_ns[] | select(. > $min_ns * 1.05)] as $slow
| [$record[] | select(.type == "stall" and .pid == $pid and .op == "read")] as $stalls
| ([$record[] | select(.type == "device" and .dev_name == $dev)] | last // {}) as $device
| [$record[] | select(.type == "sample" and (.before_trigger | not)) | .devices[]?
	| select(.dev_name == $dev) | .util_pct // 0] as $util
| ($stalls | map(.dur_ns / 1e6) | percentile(50) // 0 | round) as $half_ms
| "# \($slow | length) slow requests, \($stalls | length) in the record, half of them over \($half_ms) ms; " +
	"the device: utilisation \($util | max) %, half of \($device.requests) requests " +
	"in \($device.device_ms.p50) ms, queued \($device.queue_ms.p50) ms",
  (if ($slow | length) < 50 then "only \($slow | length) requests were slow" else empty end),
  (if (($stalls | length) - ($slow | length) | fabs) > ($slow | length) * 0.02 + 1
   then "the record has \($stalls | length) of \($slow | length) slow requests" else empty end),
  ($stalls | map(select(.probe != $probe or .path != $path or .tid == null or .bytes != 4096)) |
	select(length > 0) | "\(length) are not as expected: \(.[0]
		| [.probe, .path, .tid, .offset, .bytes] | tojson)"),
  (if ($half_ms * 1e6 - ($slow | percentile(50)) | fabs) > 5e7
   then "half of fio's took over \(($slow | percentile(50)) / 1e6 | round) ms" else empty end),
  (if ($util | max // 0) < 50 then empty else "the utilisation was \($util | max) %" end),
  ([$record[] | select(.type == "stuck" and .pid == $pid and .state == "D")] | select(length > 0)
	| "\(length) of its lines are in D state: \(.[0] | [.op, .probe, .wchan] | tojson)"),
  (if ($device.requests // 0) < ($lat_ns | length) then "the device had \($device.requests) requests"
   elif $device.device_ms.p50 > 50 or $device.queue_ms.p50 > 50
   then "the device itself took \($device.device_ms), its queue \($device.queue_ms)"
   else empty end)
