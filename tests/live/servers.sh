# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
#
# Database servers of a newer Debian than this machine's, MySQL itself among them, beside the installed ones.
# Sourced by fetch-servers, and by tests behind mariadb.sh and postgres.sh.
# Never installs anything.

# Their programs have this path of their libraries in them.
SERVERS_ROOT=/run/iostall-test-servers

# servers_mount: they are below SERVERS_ROOT until the test ends; else prints why not.
servers_mount()
{
	local cache=${VM_CACHE:-$LIVE_HERE/../../build/vm}/servers/root

	"$LIVE_HERE/fetch-servers" 2>&1 && mkdir -p "$SERVERS_ROOT" && mount --bind -o ro "$cache" "$SERVERS_ROOT" &&
		stall_undo umount "$SERVERS_ROOT"
}

# servers_use: mariadb.sh and postgres.sh start the newer servers. When there are none the test ends as skipped.
servers_use()
{
	servers_mount >"$STALL_DIR/servers.log"
	if [[ ! -d $SERVERS_ROOT/usr ]]; then
		skip "all" "$(<"$STALL_DIR/servers.log")"
		assert_finish
		exit
	fi
	MARIADBD=("$SERVERS_ROOT/usr/sbin/mariadbd" "--basedir=$SERVERS_ROOT/usr")
	MARIADB_INSTALL=("$SERVERS_ROOT/usr/bin/mariadb-install-db" "--basedir=$SERVERS_ROOT/usr")
	POSTGRES_SERVER_BIN=$(echo "$SERVERS_ROOT"/usr/lib/postgresql/*/bin)
	printf '# %s\n' "$("${MARIADBD[0]}" --version | sed 's/.*Ver \([^ ]*\).*/MariaDB \1/')" \
		"$("$POSTGRES_SERVER_BIN/postgres" --version)"
}

mysql_install()
{
	mkdir "$1" && "${MARIADBD[0]}" --no-defaults "${MARIADBD[@]:1}" --user=root --datadir="$1" "${MARIADB_LOG[@]}" \
		--initialize-insecure
}

mysql_numbers()
{
	echo "WITH RECURSIVE n AS (SELECT 1 seq UNION ALL SELECT seq + 1 FROM n LIMIT $1) SELECT seq FROM n"
}

# servers_use_mysql: behind servers_use; mariadb.sh starts MySQL itself.
servers_use_mysql()
{
	MARIADBD=("$SERVERS_ROOT/usr/sbin/mysqld" "--basedir=$SERVERS_ROOT/usr"
		"--plugin-dir=$SERVERS_ROOT/usr/lib/mysql/plugin" --plugin-load-add=auth_socket.so --mysqlx=OFF
		--secure-file-priv= --skip-log-bin --cte-max-recursion-depth=1000000)
	MARIADB_KIND=mysql
	MARIADB_LOG=(--innodb-redo-log-capacity=8M)
	MARIADB_SOCKET_LOGIN="WITH auth_socket"
	MARIADB_TIME_LIMIT="max_execution_time = 1000 *"
	MARIADB_PENDING="SELECT THREAD_OS_ID FROM
		(SELECT THREAD_OS_ID, PROCESSLIST_ID ID FROM performance_schema.threads) threads WHERE"
	printf '# %s\n' "$("${MARIADBD[0]}" --version | sed 's/.*Ver \([^ ]*\).*/MySQL \1/')"
}
