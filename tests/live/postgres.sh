# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
#
# Owns the PostgreSQL server of a test: its data directory, start and end, and sessions in it.
# Sourced behind lib.sh by the tests that need one, after live_init has made $STALL_DIR.
# Never reads a configuration of the host or reaches a server that it did not start.

# A user of the system that is everywhere: the server knows it by peer.
POSTGRES_ACCOUNT=nobody

# postgres_need: skips the whole test where the server or the client library is not installed.
postgres_need()
{
	local dir

	for dir in /usr/lib/postgresql/*/bin; do
		if [[ -x $dir/initdb ]]; then
			POSTGRES_BIN=$dir POSTGRES_SERVER_BIN=$dir
		fi
	done
	if [[ -z ${POSTGRES_BIN-} || ! -e /usr/lib/$(uname -m)-linux-gnu/libpq.so.5 ]]; then
		skip "all" "PostgreSQL or libpq5 is not installed"
		assert_finish
		exit
	fi
}

# PostgreSQL does not run as root. No other process between it and us: its pid is what we end.
_postgres_run()
{
	stall_bg setpriv --reuid postgres --regid postgres --init-groups "$POSTGRES_SERVER_BIN/$1" "${@:2}"
}

# postgres_start DIRECTORY [OPTION...]: answers when this returns. Sets POSTGRES_PID.
postgres_start()
{
	_postgres_run postgres -D "$1" -c listen_addresses= \
		-c unix_socket_directories="$STALL_DIR/pgsocket" -c shared_buffers=16MB \
		-c autovacuum=off -c max_wal_size=512MB -c max_prepared_transactions=1 "${@:2}" \
		>"$STALL_DIR/postgres.log" 2>&1 </dev/null
	POSTGRES_PID=$STALL_PID
	wait_until 30 _postgres_answers_or_gone && postgres_sql 'SELECT 1' >/dev/null && return 0
	stall_error "$(tail -n 5 "$STALL_DIR/postgres.log")"
	return 1
}

_postgres_answers_or_gone()
{
	postgres_sql 'SELECT 1' || [[ ! -d /proc/$POSTGRES_PID ]]
}

# It waits for nobody's session.
postgres_stop()
{
	kill -INT "$POSTGRES_PID"
	wait "$POSTGRES_PID"
}

# As on a terminal, each result is there when it is known.
_postgres_client()
{
	local statement

	POSTGRES_CLIENT=("$POSTGRES_BIN/psql" -X -q -A -t -U postgres -h "$STALL_DIR/pgsocket" postgres)
	for statement; do
		POSTGRES_CLIENT+=(-c "$statement")
	done
}

# postgres_sql STATEMENT...: in one connection.
postgres_sql()
{
	_postgres_client "$@"
	"${POSTGRES_CLIENT[@]}"
}

# postgres_sql_pid STATEMENT...: the same; the session's process is the first line.
postgres_sql_pid()
{
	postgres_sql "SELECT pg_backend_pid()" "$@"
}

# postgres_sql_bg NAME STATEMENT...: as postgres_sql_pid, into $STALL_DIR/NAME, until it is ended. Sets
# STALL_PID.
postgres_sql_bg()
{
	_postgres_client "SELECT pg_backend_pid()" "${@:2}"
	stall_bg "${POSTGRES_CLIENT[@]}" >"$STALL_DIR/$1" 2>&1
}

# postgres_backend NAME: that of the session whose output is in $STALL_DIR/NAME, or 0. Into BACKEND_PID.
postgres_backend()
{
	BACKEND_PID=
	read -r BACKEND_PID <"$STALL_DIR/$1"
	[[ $BACKEND_PID =~ ^[0-9]+$ ]] || BACKEND_PID=0
}

# postgres_make SIZE STATEMENT...: a server on a tmpfs of SIZE, running, with what STATEMENTS make and
# the account that iostall asks with. Its data directory is POSTGRES_DATA.
postgres_make()
{
	local dir=$STALL_DIR/pgdata

	POSTGRES_DATA=$dir/data
	mkdir "$dir" "$STALL_DIR/pgsocket" && live_tmpfs "$dir" "$1" && mkdir "$POSTGRES_DATA" &&
		chown postgres "$POSTGRES_DATA" "$STALL_DIR/pgsocket" || return 1
	_postgres_run initdb -D "$POSTGRES_DATA" -A trust -U postgres -N \
		>"$STALL_DIR/postgres.initdb.log" 2>&1
	wait "$STALL_PID" || return 1
	printf 'local all postgres trust\nlocal all all peer\n' >"$POSTGRES_DATA/pg_hba.conf"
	postgres_start "$POSTGRES_DATA" && postgres_sql "CREATE ROLE $POSTGRES_ACCOUNT LOGIN" "${@:2}"
}

# postgres_move DIRECTORY: the server is stopped, and its data directory is this one now.
postgres_move()
{
	postgres_stop
	cp -a "$POSTGRES_DATA" "$1" && umount "$STALL_DIR/pgdata" && POSTGRES_DATA=$1
}

postgres_logs()
{
	tail -n 5 "$STALL_DIR"/postgres*.log
}

# postgres_big_table ROWS: the statement that makes big, of 1 KiB a row, without an index on pad.
postgres_big_table()
{
	echo "CREATE TABLE big AS SELECT i, repeat(chr(97 + i % 26), 1000) AS pad
		FROM generate_series(1, $1) AS i"
}

# postgres_target: the options that make it a target of iostall, "pg", into POSTGRES_TARGET.
postgres_target()
{
	POSTGRES_TARGET=(--set sql.pg.type=postgresql --set "sql.pg.socket=$STALL_DIR/pgsocket/.s.PGSQL.5432"
		--set "sql.pg.user=$POSTGRES_ACCOUNT" --set "sql.pg.run_as=$POSTGRES_ACCOUNT")
}

# postgres_is_told: the record has its opening lines, so both sides know the statements.
postgres_is_told()
{
	grep -q '"type":"sql".*"target":"pg".*"phase":"open"' "$LIVE_SPOOL"/*.jsonl
}
