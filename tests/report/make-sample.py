#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the record of a made incident, with all that a page can show. `iostall report` makes the page of it.

The incident: a copy for a backup fills the disk of a database. Sessions wait for reads, commits for the journal, and
one session holds a table lock that others wait for. Some texts try to become part of the page, as names of files and
processes can. The same numbers come out each time.

usage: make-sample.py > sample.jsonl
"""

import datetime
import json
import math
import random

HOSTILE_SQL = "SELECT '</script><img src=x onerror=alert(1)>', \"<!--\" FROM t WHERE a = ?"
HOSTILE_COMM = "<b>x"
HOSTILE_PATH = "/srv/db/evil\n\u202egnp.exe<svg onload=alert(2)>"
BEYOND_2_53 = (1 << 64) - 1

FIRST, LAST = -60, 30           # samples, in seconds
CLOSE_MS = 28_400
OPENED = datetime.datetime(2026, 11, 26, 3, 12, 7, 230000)
OPENED_MONO_NS = 5_000_000_000_000

# The copy fills the second.
DISKS = [("sda", "8:0"), ("sdb", "8:16"), ("nvme0n1", "259:0")]
JUDGED = 1


def line(type_, at_ms, **fields):
    """A line of the record, with the time of its begin to sort by."""
    at_us = round(at_ms * 1000)
    ts = OPENED + datetime.timedelta(microseconds=at_us)
    return {"v": 1, "type": type_, "incident": "20261126T031207Z-3f9c", "seq": 0,
            "ts": ts.isoformat(timespec="microseconds") + "Z", "mono_ns": OPENED_MONO_NS + at_us * 1000, **fields}


def ns(ms):
    return round(ms * 1e6)


def mono_ns(at_ms):
    return OPENED_MONO_NS + ns(at_ms)


def of_disk(index):
    return {"dev_name": DISKS[index][0], "dev": DISKS[index][1]} if index >= 0 else {}


def how_bad(t):
    """From 0 (well) to 1 (the disk does nothing but the copy), at a time in seconds."""
    return 1 / (1 + math.exp(-2.2 * (t + 2))) * (1 / (1 + math.exp(1.9 * (t - 24))))


def noisy(rnd, value, share=0.12):
    return round(max(0.0, value * (1 + rnd.uniform(-share, share))), 2)


def percent(rnd, value):
    return min(100.0, noisy(rnd, value))


def make_device_of_sample(rnd, index, bad):
    quiet, reads, writes = ((4, 20, 12), (22, 260, 90), (9, 40, 210))[index]
    return {
        **of_disk(index), "util_pct": percent(rnd, quiet + (100 - quiet) * bad),
        "read_await_ms": noisy(rnd, 0.6 + 410 * bad * bad), "write_await_ms": noisy(rnd, 1.1 + 780 * bad * bad),
        "inflight": round(noisy(rnd, 0.4 + 62 * bad)), "queue": noisy(rnd, 0.4 + 62 * bad),
        "reads": round(noisy(rnd, reads * (1 - 0.75 * bad))), "writes": round(noisy(rnd, writes + 260 * bad)),
        "read_bytes": round(noisy(rnd, 4.2e6 * (1 - 0.7 * bad))), "write_bytes": round(noisy(rnd, 1.1e6 + 141e6 * bad)),
    }


def make_sample(rnd, t):
    bad = how_bad(t)
    sql = {"active": round(noisy(rnd, 5 + 41 * bad)), "longest_s": 1.0, "unanswered_s": max(0, t - 9) if t < 15 else 0}
    if t == 12:
        sql["active"] = None            # the database did not answer
    return line("sample", t * 1000 + rnd.randint(0, 9), before_trigger=t < 0, interval_ns=ns(1000),
                cpu={"busy_pct": noisy(rnd, 34 - 24 * bad), "iowait_pct": noisy(rnd, 2 + 71 * bad), "cpus": 4},
                psi={"io": {"some_pct": percent(rnd, 3 + 96 * bad), "full_pct": percent(rnd, 1 + 78 * bad)},
                     "memory": {"some_pct": noisy(rnd, 0.2 + 7 * bad), "full_pct": noisy(rnd, 0.1 + 2 * bad)},
                     "cpu": {"some_pct": noisy(rnd, 9 - 5 * bad), "full_pct": 0.0}},
                procs_blocked=round(noisy(rnd, 1 + 34 * bad)),
                devices=[make_device_of_sample(rnd, i, bad if i == JUDGED else 0.08 * bad) for i in range(len(DISKS))],
                sql=sql)


def make_devices(rnd):
    """Counted since the probes were armed: each line contains those before it."""
    lines = []
    for disk in range(len(DISKS)):
        device, queue = [0] * 24, [0] * 24
        for t in range(1, LAST):
            bad = how_bad(t) if disk == JUDGED else 0.15 * how_bad(t)
            for _ in range(320):
                device[min(23, max(0, round(rnd.gauss(9 + 10 * bad, 1.2 + 1.5 * bad))))] += 1
                queue[min(23, max(0, round(rnd.gauss(3 + 14 * bad, 1.5 + 2 * bad))))] += 1
            at = min(t * 1000, CLOSE_MS - 1)
            lines.append(line("device", at, **of_disk(disk), final=t == LAST - 1, requests=320 * t,
                              write_requests=320 * t, write_bytes=int(1e8 * bad) * t,
                              write_busy_ms=round(970 * t * (1 if disk == JUDGED else 0.05), 3),
                              queue_histogram=queue[:], device_histogram=device[:]))
    return lines


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

# comm, pid, operation, path, what it waits for, kernel stack, weight
WAYS = [
    ("mysqld", 812, "read", "/srv/db/shop/orders.ibd", "device", DIRECT_STACK, 42),
    ("mysqld", 812, "read", "/srv/db/shop/items.ibd", "page", READ_STACK, 14),
    ("mysqld", 812, "fsync", "/srv/db/ib_logfile0", "journal commit", COMMIT_STACK, 18),
    ("mysqld", 812, "read", "/srv/db/shop/orders.ibd", "read-write lock", LOCK_STACK, 8),
    ("dd", 3121, "write", "/srv/backup/orders.copy", "dirty throttling", DIRTY_STACK, 6),
    ("kworker/u8:2", 77, "kernel", None, "request slot", REQUEST_STACK, 3),
    ("php-fpm", 2204, "fsync", "/srv/www/sessions/5a1f", "journal commit", COMMIT_STACK, 5),
    (HOSTILE_COMM, 6666, "open", HOSTILE_PATH, None, [], 4),
]


def make_operation(way, tid, begin, length, stuck):
    comm, pid, op, path, cause, stack, _weight = way
    return line("stuck" if stuck else "stall", begin + length, op=op, pid=pid, tid=tid, comm=comm, path=path,
                **of_disk(JUDGED if cause else -1), **{"age_ns" if stuck else "dur_ns": ns(length)},
                start_mono_ns=mono_ns(begin), since="after_arm" if begin > 0 else "before_arm",
                state="D" if stuck else None, waits_for=cause, kstack=stack, kstack_while_blocked=True)


def make_operations(rnd):
    lines = []
    free_at = {830: CLOSE_MS}       # a thread does one thing at a time
    for begin in sorted(rnd.triangular(-2500, 25_000, 6000) for _ in range(200)):
        way = rnd.choices(WAYS, [w[-1] for w in WAYS])[0]
        length = max(101, rnd.expovariate(1 / (300 + 3400 * how_bad(begin / 1000))))
        length = min(length, CLOSE_MS - 2 - begin)
        stuck = begin + length >= CLOSE_MS - 5
        tids = [way[1] + i for i in (range(1, 60) if way[0] == "mysqld" else range(0, 6))]
        tid = next((tid for tid in tids if free_at.get(tid, -1e9) < begin), None)
        if tid is None:
            continue
        free_at[tid] = begin + length + rnd.uniform(5, 400)
        lines.append(make_operation(way, tid, begin, length, stuck))
    lines.append(make_operation(WAYS[0], 830, -2900.0, CLOSE_MS - 2 + 2900.0, True))
    return lines


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


def make_offcpu(rnd):
    lines = []
    for t in range(1, LAST - 1):
        for process, pid, comm, state, kernel, user, threads, worst in OFFCPU:
            constant = state == "S" and user is USER_IDLE
            ms = worst if constant else noisy(rnd, worst * how_bad(t), 0.3)
            if ms < 5:
                continue
            longest = round(min(ms, 900 * t ** 0.3), 1)
            lines.append(line(
                "offcpu", t * 1000, window_ms=1000, pid=pid, process=process, comm=comm, state=state,
                time_ms=round(ms, 1), runnable_ms=round(ms * 0.01, 1), times=rnd.randrange(1, 400), threads=threads,
                longest_ms=longest, start_mono_ns=mono_ns(t * 1000 - longest),
                tid=830 if user is USER_READ else pid, kstack=kernel, ustack=user))
    return lines


# by, pid, tid, name, unit, share of the time, bytes a second, requests a second, inferred
LOADERS = [
    ("process", 3121, None, "dd", "backup.service", 0.71, 118e6, 230, False),
    ("process", 812, None, "mysqld", "mariadb.service", 0.19, 9e6, 140, False),
    ("process", 77, None, "kworker/u8:2", None, 0.06, 11e6, 60, True),
    ("process", 6666, None, HOSTILE_COMM, "<i>.service", 0.01, 2e5, 3, False),
    ("thread", 3121, 3121, "dd", "backup.service", 0.71, 118e6, 230, False),
    ("thread", 812, 830, "mysqld", "mariadb.service", 0.08, 4e6, 61, False),
    ("file", None, None, "/srv/backup/orders.copy", None, 0.70, 117e6, 226, False),
    ("file", None, None, "/srv/db/shop/orders.ibd", None, 0.16, 8e6, 118, False),
    ("file", None, None, HOSTILE_PATH, None, 0.01, 2e5, 3, False),
    ("cgroup", None, None, None, "backup.service", 0.71, 118e6, 230, False),
    ("cgroup", None, None, None, "mariadb.service", 0.19, 9e6, 140, False),
    ("statement", 812, 830, "SELECT COUNT(*) FROM shop.orders WHERE note LIKE ?", None, 0.12, 6e6, 90, True),
]


def make_load(t, disk, loader, rank):
    by, pid, tid, name, unit, share, size, requests, inferred = loader
    # what loaded the disk before the middle is not what did after it
    factor = (1 if disk == JUDGED else 0.04) * (t if name != "mysqld" else t * t / 28)
    named = {"file": {"path": name}, "statement": {"statement": {"target": "main", "connection_id": 47, "text": name}}}
    return line("io_by", min(t * 1000, CLOSE_MS - 1), by=by, final=t == 28.4, rank=rank, **of_disk(disk), pid=pid,
                tid=tid, unit=unit, **named.get(by, {"comm": name}), requests=round(requests * factor),
                write_requests=round(requests * factor), write_bytes=round(size * factor), bytes=round(size * factor),
                busy_ms=round(share * factor * 1000, 1), write_busy_ms=round(share * factor * 1000, 1),
                busy_share_pct=100 * share, share_pct=100 * share, inferred=inferred)


def make_loads():
    lines = []
    for t in (5, 10, 15, 20, 25, 28.4):
        for disk in range(len(DISKS)):
            ranks = {}
            for loader in LOADERS:
                by = loader[0]
                if disk != JUDGED and by not in ("process", "file"):
                    continue
                ranks[by] = ranks.get(by, 0) + 1
                lines.append(make_load(t, disk, loader, ranks[by]))
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


def make_statement(begun, ms, i):
    locked = i in (4, 7, 9, 11)
    return line("sql", begun + ms, target="main", server="mariadb", phase="during", connection_id=30 + i,
                query_id=900 + i, user="shop@10.0.0.%d" % (i % 4 + 5), database="shop", command="Query",
                elapsed_ns=ns(ms), text=STATEMENTS[i % len(STATEMENTS)], pid=812, tid=813 + i,
                lock="metadata" if locked else None, lock_on="shop.orders" if locked else None,
                blocked_by=33 if locked else None,
                blocked_basis="inferred" if locked else None)


def make_statements(rnd):
    lines = [make_statement(rnd.uniform(-4000, 12_000), rnd.uniform(400, 14_000), i) for i in range(14)]
    return lines + [make_statement(-3000, 20_000, 17)]       # of the thread that hangs


def make_verdict_so_far():
    sentence = "Disk sdb was saturated; who loaded it is not known yet."
    return line("verdict", 6000, **{"class": "saturated"}, basis="measured", final=False, sentence=sentence,
                message=sentence, **of_disk(JUDGED))


PATHS = ["read", "write", "pread64", "pwrite64", "vectored", "fsync", "sync_range", "copy", "metadata", "fault",
         "fault_file", "io_submit", "libaio", "io_uring", "journal", "block", "offcpu"]


def make_coverage():
    probes = {"fsync": "sync", "sync_range": "sync", "io_submit": "aio", "libaio": "aio", "io_uring": "uring",
              "journal": "block", "block": "block", "offcpu": "offcpu", "fault": "fault", "fault_file": "fault"}
    rows = [{"path": path, "probe": probes.get(path, "vfs"), "backend": "tracepoint",
             "pairing": None if path in probes else "sleep"} for path in PATHS]
    rows[13] = {"path": "io_uring", "reason": "kernel.io_uring_disabled is 2: no program can use it"}
    return rows


def make_open():
    return line("open", 0, trigger={"rule": "iowait", "value": 98.5, "threshold": 20.0, "unit": "%"}, host="db-17",
                kernel="6.12.9-amd64", version="1.0", min_stall_ns=ns(100), armed_ns=ns(12), waited_ns=0,
                coverage=make_coverage(), stack=[])


def make_close():
    return line("close", CLOSE_MS, reason="clear", duration_ns=ns(CLOSE_MS), lost={"ring_full": 3},
                cost={"cpu_ms": 71.0, "armed_ms": 12.0, "rss_bytes": 26 << 20, "kernel_bytes": 9 << 20})


def make_record():
    rnd = random.Random(20261126)
    samples = [make_sample(rnd, t) for t in range(FIRST, LAST - 1)]
    before = [sample for sample in samples if sample["before_trigger"]]
    during = samples[len(before):] + make_devices(rnd) + make_operations(rnd) + make_offcpu(rnd) + make_loads()
    during += make_statements(rnd)
    during += [
        line("trigger", 2100, rule="utilisation", device="sdb", value=99.0, threshold=90.0, unit="%"),
        make_verdict_so_far(),
        line("kernel", 11_300, level="err", kernel_ns=ns(8_000_000),
             text="INFO: task mysqld:830 blocked for more than 10 seconds."),
    ]
    during = sorted(during, key=lambda line_: line_["mono_ns"])
    return [make_open(), *before, *(line_ for line_ in during if line_["mono_ns"] < mono_ns(CLOSE_MS)), make_close()]


if __name__ == "__main__":
    for seq, line_ in enumerate(make_record()):
        print(json.dumps({**line_, "seq": seq}, separators=(",", ":")))
