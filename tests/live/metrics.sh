# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
#
# A daemon that serves metrics, and what it says. Sourced by the tests of metrics, behind lib.sh.

# metrics_daemon [OPTION...]: as live_daemon; PORT is that of the metrics on 127.0.0.1.
metrics_daemon()
{
	stall_bg nice -n "$LIVE_NICE" "$LIVE_HERE/../tools/socket-activate" "$STALL_DIR/port" \
		"$IOSTALL" daemon "${LIVE_SET[@]}" "$@" >"$STALL_DIR/terminal" 2>"$STALL_DIR/log"
	LIVE_PID=$STALL_PID
	live_wait _live_is_ready && live_wait live_ask status >/dev/null && PORT=$(<"$STALL_DIR/port")
}

# metrics_get [HEADER]: the whole answer to a request.
metrics_get()
{
	local fd

	exec {fd}<>"/dev/tcp/127.0.0.1/$PORT" || return 1
	printf 'GET /metrics HTTP/1.1\r\nHost: test\r\n%s\r\n' "${1:+$1$'\r\n'}" >&"$fd"
	tr -d '\r' <&"$fd"
	exec {fd}>&-
}

# metrics_value SERIES: of `iostall metrics`; empty where there is none.
metrics_value()
{
	"$IOSTALL" metrics --config /dev/null --set "control.socket=$LIVE_SOCKET" |
		awk -v series="$1" '$1 == series { print $2 }'
}

# metrics_value_is SERIES VALUE
metrics_value_is()
{
	[[ $(metrics_value "$1") == "$2" ]]
}
