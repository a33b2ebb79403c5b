# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
#
# Owns MariaDB servers of the tests: their data directories, start and end, and sessions in them.
# Sourced behind lib.sh by the tests that need one, after live_init has made $STALL_DIR.
# Never reads a configuration of the host or reaches a server that it did not start.
#
# MARIADB names the server that the functions are about, and its section [sql.NAME]; each has a
# socket, pid file and log of its own.

MARIADB=main
# Those that are installed.
MARIADBD=(mariadbd)
MARIADB_INSTALL=(mariadb-install-db)
# A user of the system that is everywhere: the server knows it by unix_socket.
MARIADB_ACCOUNT=nobody
# What a server has of its own: functions of that name, its log, how it makes an account, a limit of time for SELECT.
MARIADB_KIND=mariadb
MARIADB_LOG=(--innodb-log-file-size=8M)
MARIADB_NETWORK=(--skip-networking)
MARIADB_SOCKET_LOGIN="VIA unix_socket"
MARIADB_TIME_LIMIT="max_statement_time ="
MARIADB_PENDING="SELECT TID FROM information_schema.PROCESSLIST WHERE"
declare -A MARIADB_PIDS=()

# mariadb_need: skips the whole test where a program or the client library is not installed.
mariadb_need()
{
	live_need_program mariadbd mariadb-install-db mariadb mariadb-dump
	if [[ ! -e /usr/lib/$(uname -m)-linux-gnu/libmariadb.so.3 ]]; then
		skip "all" "libmariadb3 is not installed"
		assert_finish
		exit
	fi
}

# mariadb_start DIRECTORY [OPTION...]: answers when this returns. Sets MARIADB_PID, and MARIADB_AIO,
# the probe that sees its read-ahead. What it read before must not come back by itself.
mariadb_start()
{
	local base=$STALL_DIR/$MARIADB

	stall_bg "${MARIADBD[0]}" --no-defaults "${MARIADBD[@]:1}" --user=root --datadir="$1" "${MARIADB_NETWORK[@]}" \
		--socket="$base.sock" --pid-file="$base.pid" \
		"${MARIADB_LOG[@]}" --innodb-buffer-pool-load-at-startup=0 \
		--innodb-buffer-pool-dump-at-shutdown=0 "${@:2}" >"$base.log" 2>&1
	MARIADB_PID=$STALL_PID
	MARIADB_PIDS[$MARIADB]=$MARIADB_PID
	if wait_until 30 _mariadb_answers_or_gone && mariadb_sql 'DO 1'; then
		# Where the kernel forbids io_uring the server takes what there is.
		grep -q 'Using io_uring' "$base.log" && MARIADB_AIO=uring || MARIADB_AIO=aio
		return 0
	fi
	stall_error "$(tail -n 5 "$base.log")"
	return 1
}

_mariadb_answers_or_gone()
{
	mariadb_sql 'DO 1' || [[ ! -d /proc/$MARIADB_PID ]]
}

mariadb_stop()
{
	kill "${MARIADB_PIDS[$MARIADB]}"
	wait "${MARIADB_PIDS[$MARIADB]}"
}

# mariadb_sql STATEMENTS: in a connection of its own.
mariadb_sql()
{
	mariadb --no-defaults -u root -S "$STALL_DIR/$MARIADB.sock" -N -e "$1"
}

# mariadb_sql_tid STATEMENTS: the same; the id of the session's thread is the first line.
mariadb_sql_tid()
{
	mariadb_sql "$MARIADB_PENDING ID = CONNECTION_ID(); $1"
}

# mariadb_sql_bg NAME STATEMENTS: as mariadb_sql_tid, into $STALL_DIR/NAME, until it is ended. Sets
# STALL_PID.
mariadb_sql_bg()
{
	stall_bg mariadb --no-defaults -u root -S "$STALL_DIR/$MARIADB.sock" -N --unbuffered \
		-e "$MARIADB_PENDING ID = CONNECTION_ID(); $2" >"$STALL_DIR/$1" 2>/dev/null
}

# mariadb_tid NAME: that of the session whose output is in $STALL_DIR/NAME, or 0. Into MARIADB_TID.
mariadb_tid()
{
	MARIADB_TID=
	read -r MARIADB_TID <"$STALL_DIR/$1"
	[[ $MARIADB_TID =~ ^[0-9]+$ ]] || MARIADB_TID=0
}

# mariadb_install DIRECTORY: the tables that the server itself needs.
mariadb_install()
{
	"${MARIADB_INSTALL[0]}" --no-defaults "${MARIADB_INSTALL[@]:1}" --user=root --datadir="$1" \
		--auth-root-authentication-method=normal --skip-test-db "${MARIADB_LOG[@]}"
}

# mariadb_make DIRECTORY SIZE STATEMENTS: a data directory with what STATEMENTS make, and the account
# that iostall asks with. Made on a tmpfs of SIZE, since on a disk each table takes its time. The log
# of a failure is printed by mariadb_logs.
mariadb_make()
{
	local template=$STALL_DIR/$MARIADB.template

	mkdir "$template" && live_tmpfs "$template" "$2" || return 1
	"${MARIADB_KIND}_install" "$template/data" >"$STALL_DIR/$MARIADB.install.log" 2>&1 || return 1
	mariadb_start "$template/data" --innodb-flush-log-at-trx-commit=0 || return 1
	# Not as an argument, which may be 128 KiB.
	mariadb --no-defaults -u root -S "$STALL_DIR/$MARIADB.sock" <<<"
		CREATE USER $MARIADB_ACCOUNT@localhost IDENTIFIED $MARIADB_SOCKET_LOGIN;
		GRANT PROCESS ON *.* TO $MARIADB_ACCOUNT@localhost;
		$3" || return 1
	mariadb_stop
	cp -a "$template/data" "$1" && umount "$template"
}

mariadb_logs()
{
	tail -n 5 "$STALL_DIR/$MARIADB".*log
}

# mariadb_numbers COUNT: the statement that has them as rows, in `seq`.
mariadb_numbers()
{
	echo "SELECT seq FROM seq_1_to_$1"
}

# mariadb_big_table ROWS: the statements that make big.t, of 1 KiB a row, without an index on pad.
mariadb_big_table()
{
	echo "CREATE DATABASE big; USE big;
		CREATE TABLE t (id INT PRIMARY KEY, pad VARCHAR(1000) NOT NULL);
		INSERT INTO t SELECT seq, REPEAT(CHAR(97 + seq % 26), 1000) FROM ($("${MARIADB_KIND}_numbers" "$1")) numbers;"
}

# mariadb_target: the options that make it a target of iostall. Adds to MARIADB_TARGETS.
MARIADB_TARGETS=()
mariadb_target()
{
	MARIADB_TARGETS+=(--set "sql.$MARIADB.socket=$STALL_DIR/$MARIADB.sock"
		--set "sql.$MARIADB.user=$MARIADB_ACCOUNT" --set "sql.$MARIADB.run_as=$MARIADB_ACCOUNT")
}

# mariadb_is_told: the record has the opening lines of the databases, so both sides know the statements.
mariadb_is_told()
{
	grep -q '"type":"sql".*"phase":"open"' "$LIVE_SPOOL"/*.jsonl
}
