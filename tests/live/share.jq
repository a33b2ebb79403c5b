# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks who loaded a device, when the test knows who did. The output is as in stalls.jq.
#   $record         lines of the record
#   --argjson tid N       --arg path REGEX (of the file that was read, "" when there are many)
#   --arg dev NAME        the device's name       --argjson bytes N   at least so many bytes were read

def shares($by): [$record[] | select(.type == "io_by" and .final and .by == $by and .dev_name == $dev)];

([$record[] | select(.type == "device" and .dev_name == $dev)] | last // {}) as $device
| (first(shares("thread")[] | select(.tid == $tid)) // {}) as $thread
| (first(shares("file")[] | select(.path // "" | test($path))) // {}) as $file
| "# \($dev): \($device.requests) requests, \($device.read_bytes) bytes read; thread \($tid) " +
	"\($thread.share_pct) %, file \($file.path | tojson) \($file.share_pct) %",
  (if ($device.read_bytes // 0) >= $bytes then empty
   else "\($dev) read \($device.read_bytes) bytes, not \($bytes): \($device | tojson | .[:300])" end),
  (if ($thread.share_pct // 0) > 80 then empty
   else "the thread has \($thread.share_pct) %: \(shares("thread") | map([.tid, .comm, .share_pct])
	| .[:5] | tojson)" end),
  (if $path == "" or ($file.share_pct // 0) > 80 then empty
   else "the file has \($file.share_pct) %: \(shares("file") | map([.path, .share_pct])
	| .[:5] | tojson)" end),
  (if ($device.requests // 0) > 0 then empty else "the device has no requests" end)
