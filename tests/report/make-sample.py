#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes data of an incident as report/README.md describes them, to work on the page without a record.

The incident: a copy for a backup fills the disk of a database. Sessions wait for reads, commits for the journal, and
one session holds a table lock that others wait for. Some texts try to become part of the page, as names of files and
processes can. The same numbers come out each time.

usage: make-sample.py > sample.json

"data" is what the page gets as JSON; "text" is what the program knows besides and writes as HTML.
"""

import json
import math
import random

HOSTILE_SQL = "SELECT '</script><img src=x onerror=alert(1)>', \"<!--\" FROM t WHERE a = ?"
HOSTILE_COMM = "<b>x"
HOSTILE_PATH = "/srv/db/evil\n\u202egnp.exe<svg onload=alert(2)>"
BEYOND_2_53 = "18446744073709551615"

FIRST, LAST = -60, 30           # samples, in seconds
TRIGGER_TO_CLOSE_MS = 28_400
JUDGED = 1                      # index in DISKS

DISKS = [("sda", "8:0"), ("sdb", "8:16"), ("nvme0n1", "259:0")]


class Texts:
    """Texts, each once, by index."""

    def __init__(self):
        self.list = []
        self.index = {}

    def __call__(self, text):
        if text not in self.index:
            self.index[text] = len(self.list)
            self.list.append(text)
        return self.index[text]


class Stacks(Texts):
    """Stacks, each once; functions are given innermost first, as kernels print them."""

    def __init__(self, texts):
        super().__init__()
        self.texts = texts

    def __call__(self, functions):
        if not functions:
            return -1
        return super().__call__(tuple(self.texts(f) for f in reversed(functions)))


def how_bad(t):
    """From 0 (well) to 1 (the disk does nothing but the copy), at a time in seconds."""
    return 1 / (1 + math.exp(-2.2 * (t + 2))) * (1 / (1 + math.exp(1.9 * (t - 24))))


def noisy(random_, value, share=0.12):
    return max(0.0, value * (1 + random_.uniform(-share, share)))


def rounded(values, digits=1):
    return [None if v is None else round(v, digits) for v in values]


def make_disk_columns(rnd, index, times):
    judged = index == JUDGED
    bad = [how_bad(t) if judged else 0.08 * how_bad(t) for t in times]
    quiet = (4, 22, 9)[index]
    column = {
        "util": [min(100.0, noisy(rnd, quiet + (100 - quiet) * b)) for b in bad],
        "read_await_ms": [noisy(rnd, 0.6 + 410 * b * b) for b in bad],
        "write_await_ms": [noisy(rnd, 1.1 + 780 * b * b) for b in bad],
        "in_flight": [round(noisy(rnd, 0.4 + 62 * b)) for b in bad],
        "reads_s": [noisy(rnd, (20, 260, 40)[index] * (1 - 0.75 * b)) for b in bad],
        "writes_s": [noisy(rnd, (12, 90, 210)[index] + 260 * b) for b in bad],
        "read_bytes_s": [noisy(rnd, 4.2e6 * (1 - 0.7 * b)) for b in bad],
        "write_bytes_s": [noisy(rnd, 1.1e6 + 141e6 * b) for b in bad],
    }
    return {"disk": index, **{key: rounded(values) for key, values in column.items()}}


def make_samples(rnd, texts):
    times = list(range(FIRST, LAST))
    bad = [how_bad(t) for t in times]
    psi = {
        "io_some": [min(100.0, noisy(rnd, 3 + 96 * b)) for b in bad],
        "io_full": [min(100.0, noisy(rnd, 1 + 78 * b)) for b in bad],
        "memory_some": [noisy(rnd, 0.2 + 7 * b) for b in bad],
        "memory_full": [noisy(rnd, 0.1 + 2 * b) for b in bad],
        "cpu_some": [noisy(rnd, 9 - 5 * b) for b in bad],
    }
    cpu = {
        "busy": [noisy(rnd, 34 - 24 * b) for b in bad],
        "iowait": [noisy(rnd, 2 + 71 * b) for b in bad],
    }
    active = [round(noisy(rnd, 5 + 41 * b)) for b in bad]
    silent = [round(1000 * (t - 9)) if 9 < t < 15 else 0 for t in times]
    missing = times.index(12)
    active[missing] = None          # the database did not answer
    return {
        "t": [t * 1000 + rnd.randint(0, 9) for t in times],
        "interval_ms": [1000] * len(times),
        "cpu": {key: rounded(values) for key, values in cpu.items()},
        "psi": {key: rounded(values) for key, values in psi.items()},
        "blocked": [round(noisy(rnd, 1 + 34 * b)) for b in bad],
        "disks": [make_disk_columns(rnd, i, times) for i in range(len(DISKS))],
        "databases": [
            {"name": texts("main"), "active": active, "unanswered_ms": silent},
            {"name": texts("archive <b>"), "active": [round(noisy(rnd, 2)) for _ in times],
             "unanswered_ms": [0] * len(times)},
        ],
    }


def make_histograms(rnd):
    """Counted since the probes were armed: each list contains those before it."""
    lists = []
    for disk in range(len(DISKS)):
        device, queue = [0] * 24, [0] * 24
        for t in range(1, LAST):
            bad = how_bad(t) if disk == JUDGED else 0.15 * how_bad(t)
            for _ in range(320):
                device[min(23, max(0, round(rnd.gauss(9 + 10 * bad, 1.2 + 1.5 * bad))))] += 1
                queue[min(23, max(0, round(rnd.gauss(3 + 14 * bad, 1.5 + 2 * bad))))] += 1
            lists.append({"t": t * 1000, "disk": disk, "queue": trimmed(queue), "device": trimmed(device)})
    return sorted(lists, key=lambda line: line["t"])


def trimmed(counts):
    last = max((i for i, n in enumerate(counts) if n), default=-1)
    return counts[:last + 1]


READ_STACK = ["io_schedule", "folio_wait_bit_common", "filemap_update_page", "filemap_get_pages", "filemap_read",
              "ext4_file_read_iter", "vfs_read", "__x64_sys_pread64", "do_syscall_64"]
DIRECT_STACK = ["io_schedule", "__iomap_dio_rw", "iomap_dio_rw", "ext4_file_read_iter", "vfs_read",
                "__x64_sys_pread64", "do_syscall_64"]
COMMIT_STACK = ["jbd2_log_wait_commit", "jbd2_complete_transaction", "ext4_sync_file", "do_fsync",
                "__x64_sys_fdatasync", "do_syscall_64"]
LOCK_STACK = ["rwsem_down_read_slowpath", "down_read", "ext4_file_read_iter", "vfs_read", "__x64_sys_pread64",
              "do_syscall_64"]
DIRTY_STACK = ["io_schedule_timeout", "balance_dirty_pages", "balance_dirty_pages_ratelimited_flags",
               "generic_perform_write", "ext4_buffered_write_iter", "vfs_write", "ksys_write", "do_syscall_64"]
REQUEST_STACK = ["io_schedule", "blk_mq_get_tag", "__blk_mq_alloc_requests", "blk_mq_submit_bio", "submit_bio_noacct",
                 "ext4_io_submit", "ext4_writepages", "do_writepages", "wb_writeback", "wb_workfn", "process_one_work"]
EPOLL_STACK = ["ep_poll", "do_epoll_wait", "__x64_sys_epoll_wait", "do_syscall_64"]
FUTEX_STACK = ["futex_wait_queue", "futex_wait", "do_futex", "__x64_sys_futex", "do_syscall_64"]

USER_READ = ["__libc_pread64", "os_file_io(IORequest const&, int, void*)", "fil_io(IORequest const&, bool)",
             "buf_read_page_low(unsigned long)", "buf_page_get_gen(page_id_t)", "row_search_mvcc(unsigned char*)",
             "ha_innobase::general_fetch(unsigned char*)", "sub_select(JOIN*)", "mysql_execute_command(THD*)",
             "do_command(THD*)", "do_handle_one_connection(CONNECT*)", "start_thread"]
USER_COMMIT = ["fdatasync", "log_write_flush_to_disk_low(unsigned long)", "log_write_up_to(unsigned long)",
               "trx_commit_in_memory(trx_t*)", "ha_commit_trans(THD*, bool)", "trans_commit(THD*)",
               "mysql_execute_command(THD*)", "do_command(THD*)", "do_handle_one_connection(CONNECT*)", "start_thread"]
USER_COPY = ["__libc_write", "iwrite", "dd_copy", "main", "__libc_start_main"]
USER_LOCK = ["__lll_lock_wait", "pthread_mutex_lock", "MDL_context::acquire_lock(MDL_request*)", "open_table(THD*)",
             "mysql_execute_command(THD*)", "do_command(THD*)", "start_thread"]
USER_IDLE = ["epoll_wait", "tp_worker_main", "start_thread"]

# comm, pid, operation, path, cause, disk, kernel stack, weight
WAYS = [
    ("mysqld", 812, "read", "/srv/db/shop/orders.ibd", "device", 1, DIRECT_STACK, 42),
    ("mysqld", 812, "read", "/srv/db/shop/items.ibd", "page", 1, READ_STACK, 14),
    ("mysqld", 812, "fsync", "/srv/db/ib_logfile0", "journal commit", 1, COMMIT_STACK, 18),
    ("mysqld", 812, "read", "/srv/db/shop/orders.ibd", "read-write lock", -1, LOCK_STACK, 8),
    ("dd", 3121, "write", "/srv/backup/orders.copy", "dirty throttling", 1, DIRTY_STACK, 6),
    ("kworker/u8:2", 77, "kernel", "", "request slot", 1, REQUEST_STACK, 3),
    ("php-fpm", 2204, "fsync", "/srv/www/sessions/5a1f", "journal commit", 1, COMMIT_STACK, 5),
    (HOSTILE_COMM, 6666, "open", HOSTILE_PATH, "", -1, [], 4),
]


def make_operations(rnd, texts, stacks):
    columns = ["t", "ms", "state", "pid", "tid", "comm", "op", "path", "cause", "disk", "stack", "statement"]
    rows = []
    free_at = {830: TRIGGER_TO_CLOSE_MS}        # a thread does one thing at a time
    for begin in sorted(rnd.triangular(-2500, 25_000, 6000) for _ in range(200)):
        comm, pid, op, path, cause, disk, stack, _w = rnd.choices(WAYS, [w[-1] for w in WAYS])[0]
        length = max(101, rnd.expovariate(1 / (300 + 3400 * how_bad(begin / 1000))))
        length = min(length, TRIGGER_TO_CLOSE_MS - begin)
        stuck = begin + length >= TRIGGER_TO_CLOSE_MS - 5
        tids = [pid + i for i in (range(1, 60) if comm == "mysqld" else range(0, 6))]
        tid = next((tid for tid in tids if free_at.get(tid, -1e9) < begin), None)
        if tid is None:
            continue
        free_at[tid] = begin + length + rnd.uniform(5, 400)
        statement = rnd.randrange(12) if comm == "mysqld" and op == "read" else -1
        rows.append([round(begin, 1), round(length, 1), "stuck" if stuck else "done", pid, tid, texts(comm), texts(op),
                     texts(path), texts(cause), disk, stacks(stack), statement])
    rows.append([-2900.0, TRIGGER_TO_CLOSE_MS + 2900.0, "stuck", 812, 830, texts("mysqld"), texts("read"),
                 texts("/srv/db/shop/orders.ibd"), texts("device"), 1, stacks(DIRECT_STACK), 0])
    rows.sort(key=lambda row: row[0])
    return {"columns": columns, "rows": rows}


# process, pid, comm, state, kernel, user, threads, ms per second at its worst
OFFCPU = [
    ("mysqld", 812, "mysqld", "D", DIRECT_STACK, USER_READ, 17, 14_200),
    ("mysqld", 812, "mysqld", "D", READ_STACK, USER_READ, 6, 4300),
    ("mysqld", 812, "mysqld", "D", COMMIT_STACK, USER_COMMIT, 9, 7600),
    ("mysqld", 812, "mysqld", "D", LOCK_STACK, USER_READ, 3, 2100),
    ("mysqld", 812, "mysqld", "S", FUTEX_STACK, USER_LOCK, 8, 5400),
    ("mysqld", 812, "mysqld", "S", EPOLL_STACK, USER_IDLE, 12, 12_000),
    ("mysqld", 812, "mysqld", "R", [], USER_READ, 4, 260),
    ("dd", 3121, "dd", "D", DIRTY_STACK, USER_COPY, 1, 640),
    ("kworker/u8:2", 77, "kworker/u8:2", "D", REQUEST_STACK, [], 1, 720),
    ("php-fpm", 2204, "php-fpm", "D", COMMIT_STACK, ["fsync", "zif_session_write", "execute_ex", "main"], 3, 1900),
    (HOSTILE_COMM, 6666, HOSTILE_COMM, "D", READ_STACK, ["</script><script>alert(3)</script>", "main"], 1, 410),
]


def make_offcpu(rnd, texts, stacks):
    lines = []
    for t in range(1, LAST - 1):
        for process, pid, comm, state, kernel, user, threads, worst in OFFCPU:
            constant = state == "S" and user is USER_IDLE
            ms = worst if constant else noisy(rnd, worst * how_bad(t), 0.3)
            if ms < 5:
                continue
            lines.append({
                "t": t * 1000, "window_ms": 1000, "pid": pid, "process": texts(process), "comm": texts(comm),
                "state": state, "ms": round(ms, 1), "runnable_ms": round(ms * 0.01, 1), "times": rnd.randrange(1, 400),
                "threads": threads, "longest_ms": round(min(ms, 900 * t ** 0.3), 1), "kernel": stacks(kernel),
                "user": stacks(user), "statement": 0 if user is USER_READ else -1,
            })
    return lines


# by, pid, tid, name, unit, share of the time, bytes a second, requests a second, inferred
LOADERS = [
    ("process", 3121, None, "dd", "backup.service", 0.71, 118e6, 230, False),
    ("process", 812, None, "mysqld", "mariadb.service", 0.19, 9e6, 140, False),
    ("process", 77, None, "kworker/u8:2", "", 0.06, 11e6, 60, True),
    ("process", 6666, None, HOSTILE_COMM, "<i>.service", 0.01, 2e5, 3, False),
    ("thread", 3121, 3121, "dd", "backup.service", 0.71, 118e6, 230, False),
    ("thread", 812, 830, "mysqld", "mariadb.service", 0.08, 4e6, 61, False),
    ("file", None, None, "/srv/backup/orders.copy", "", 0.70, 117e6, 226, False),
    ("file", None, None, "/srv/db/shop/orders.ibd", "", 0.16, 8e6, 118, False),
    ("file", None, None, HOSTILE_PATH, "", 0.01, 2e5, 3, False),
    ("cgroup", None, None, "/system.slice/backup.service", "backup.service", 0.71, 118e6, 230, False),
    ("cgroup", None, None, "/system.slice/mariadb.service", "mariadb.service", 0.19, 9e6, 140, False),
    ("statement", 812, 830, "SELECT COUNT(*) FROM shop.orders WHERE note LIKE ?", "", 0.12, 6e6, 90, True),
]


def make_loads(texts):
    lines = []
    for t in (5, 10, 15, 20, 25, 28.4):
        for disk in range(len(DISKS)):
            ranks = {}
            for by, pid, tid, name, unit, share, size, requests, inferred in LOADERS:
                if disk != JUDGED and by not in ("process", "file"):
                    continue
                # what loaded the disk before the middle is not what did after it
                factor = (1 if disk == JUDGED else 0.04) * (t if name != "mysqld" else t * t / 28)
                ranks[by] = ranks.get(by, 0) + 1
                lines.append({
                    "t": round(t * 1000), "final": t == 28.4, "disk": disk, "by": by, "rank": ranks[by], "pid": pid,
                    "tid": tid, "name": texts(name), "unit": texts(unit), "busy_ms": round(share * factor * 1000, 1),
                    "bytes": round(size * factor), "requests": round(requests * factor), "inferred": inferred,
                })
    lines[0]["bytes"] = BEYOND_2_53
    return lines


STATEMENTS = [
    "SELECT COUNT(*) FROM shop.orders WHERE note LIKE ?",
    "UPDATE shop.orders SET state = ? WHERE id = ?",
    HOSTILE_SQL,
    "ALTER TABLE shop.orders ADD COLUMN c INT, ALGORITHM=COPY",
    "INSERT INTO shop.items (order_id, article, amount, price)\n\tVALUES (?, ?, ?, ?)",
    "SELECT o.id, o.customer, SUM(i.amount * i.price) AS total\n\tFROM shop.orders o\n\tJOIN shop.items i "
    "ON i.order_id = o.id\n\tWHERE o.created > ?\n\tGROUP BY o.id, o.customer\n\tORDER BY total DESC\n\tLIMIT ?",
]


def make_statements(rnd, texts):
    lines = []
    for i in range(14):
        begun = rnd.uniform(-4000, 16_000)
        ms = rnd.uniform(400, 14_000)
        locked = i in (4, 7, 9, 11)
        lines.append({
            "database": texts("main"), "user": texts("shop@10.0.0.%d" % (i % 4 + 5)), "connection": 30 + i,
            "tid": 813 + i, "begun": round(begun), "seen": round(begun + ms), "ms": round(ms, 1),
            "text": texts(STATEMENTS[i % len(STATEMENTS)]), "lock": texts("metadata, shop.orders" if locked else ""),
            "blocked_by": 33 if locked else None,
        })
    return lines


SENTENCE = ("dd (pid 3121) probably took 71 % of disk sdb for 26 s, mostly for /srv/backup/orders.copy. 35 threads of "
            "mysqld waited up to 31 s for it.")


def make_marks(texts):
    marks = [(-9, "rule", "iowait 62 %, threshold 20 %"), (0, "trigger", "iowait 98.5 %, threshold 20 %"),
             (12, "armed", "all 17 I/O paths are seen"), (2100, "rule", "utilisation of sdb 99 %, threshold 90 %"),
             (6000, "verdict", "Disk sdb was saturated; who loaded it is not known yet."),
             (11_300, "kernel", "INFO: task mysqld:830 blocked for more than 10 seconds."),
             (14_000, "verdict", SENTENCE), (TRIGGER_TO_CLOSE_MS, "close", "all was clear again")]
    return [{"t": t, "kind": kind, "text": texts(text)} for t, kind, text in marks]


def make_data():
    rnd = random.Random(20261126)
    texts = Texts()
    stacks = Stacks(texts)
    data = {
        "format": 1,
        "incident": {
            "id": "20261126T031207Z-3f9c", "host": "db-17", "kernel": "6.12.9-amd64", "version": "1.0",
            "opened": "2026-11-26T03:12:07.230Z", "opened_ms": 1795662727230, "duration_ms": TRIGGER_TO_CLOSE_MS,
            "closed": True, "class": "saturated", "basis": "inferred", "sentence": SENTENCE,
        },
        "marks": make_marks(texts),
        "disks": [{"name": texts(name), "dev": dev, "judged": i == JUDGED} for i, (name, dev) in enumerate(DISKS)],
        "samples": make_samples(rnd, texts),
        "histograms": make_histograms(rnd),
        "operations": make_operations(rnd, texts, stacks),
        "offcpu": make_offcpu(rnd, texts, stacks),
        "loads": make_loads(texts),
        "statements": make_statements(rnd, texts),
        "left_out": [{"what": texts("operations"), "count": 12}],
    }
    return {**data, "strings": texts.list, "stacks": [list(stack) for stack in stacks.list]}


def part(what, basis, text, **figures):
    return {"what": what, "basis": basis, "text": text, "figures": figures}


PARTS = [
    part("device", "measured", "Disk sdb was at its limit for 26 s: utilisation up to 100 %, reads took up to 448 ms.",
         utilisation="100 %", await_="448 ms", queue="62"),
    part("culprit", "inferred", "dd (pid 3121) of backup.service took 71 % of the time of disk sdb; a kernel worker "
         "wrote 6 % for programs that are not known.", share="71 %", requests="6532", bytes="3.1 GiB"),
    part("largest", "measured", "Most of it went to /srv/backup/orders.copy.", share="70 %", bytes="3.1 GiB"),
    part("victims", "measured", "35 threads of mysqld waited, thread 830 the longest.", threads="35", longest="31 s",
         together="6 min 12 s"),
    part("lock", "inferred", "Session 33 probably holds the metadata lock of shop.orders; 4 statements waited for it.",
         threads="4", longest="9.2 s"),
    part("missing", None, "Who sent another 6 % is not known: a kernel worker wrote it back."),
]


def node(kind, name, time, count, basis, *below):
    return {"kind": kind, "name": name, "time": time, "count": count, "basis": basis, "below": list(below)}


WAITS = [
    node("disk", "sdb", "5 min 41 s", "38 threads", "measured",
         node("process", "mysqld, read of /srv/db/shop/orders.ibd", "3 min 20 s", "26 threads", "measured"),
         node("other", "journal of the file system on sdb", "1 min 48 s", "12 threads", "inferred",
              node("process", "mysqld, fsync of /srv/db/ib_logfile0", "1 min 31 s", "9 threads", "measured"),
              node("process", "php-fpm, fsync", "17.2 s", "3 threads", "measured")),
         node("lock", "read-write lock of an inode", "33.0 s", "3 threads", "inferred",
              node("process", "mysqld, read of /srv/db/shop/orders.ibd", "33.0 s", "3 threads", "measured"))),
    node("session", "session 33 of shop@10.0.0.8", "26.1 s", "4 sessions", "inferred",
         node("session", "4 sessions, metadata lock of shop.orders", "26.1 s", None, "measured")),
    node("other", "not known", "4.1 s", "3 threads", None, node("process", HOSTILE_COMM, "4.1 s", "3 threads", None)),
]

PATHS = ["read", "write", "pread64", "pwrite64", "vectored", "fsync", "sync_range", "copy", "metadata", "fault",
         "fault_file", "io_submit", "libaio", "io_uring", "journal", "block", "offcpu"]


def make_coverage():
    probes = {"fsync": "sync", "sync_range": "sync", "io_submit": "aio", "libaio": "aio", "io_uring": "uring",
              "journal": "block", "block": "block", "offcpu": "offcpu", "fault": "fault", "fault_file": "fault"}
    rows = [[path, "yes", probes.get(path, "vfs"), "tracepoint", "sleep" if path not in probes else "-", "-"]
            for path in PATHS]
    rows[13] = ["io_uring", "no", "-", "-", "-", "kernel.io_uring_disabled is 2: no program can use it"]
    return rows


def make_text():
    return {
        "trigger": "iowait 98.5 %, threshold 20 %", "ended": "when all was clear again", "parts": PARTS,
        "waits": WAITS, "coverage": make_coverage(),
        "lost": [["ring_full", 3, "events that were dropped because the ring buffer was full"]],
        "cost": [["CPU time", "71 ms"], ["Memory", "35.0 MiB"], ["Armed within", "12 ms"]],
    }


if __name__ == "__main__":
    print(json.dumps({"data": make_data(), "text": make_text()}, separators=(",", ":")))
