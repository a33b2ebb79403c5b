#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Takes numbers at random from the page of an incident, and looks whether its record has them.

usage: numbers.py record.jsonl page.html [seed]

Prints what differs. Exit status: 0 nothing does, 1 something does.
"""

import json
import pathlib
import random
import sys

COUNT = 20
NEAR = 0.0051       # the page has two decimals, or three

OF_DISK = {"util": "util_pct", "in_flight": "inflight"}
RATES = {"reads_s": "reads", "writes_s": "writes", "read_bytes_s": "read_bytes", "write_bytes_s": "write_bytes"}
OF_SAMPLE = {
    ("cpu", "busy"): lambda s: s["cpu"]["busy_pct"],
    ("cpu", "iowait"): lambda s: s["cpu"]["iowait_pct"],
    ("psi", "io_some"): lambda s: (s["psi"]["io"] or {}).get("some_pct"),
    ("psi", "cpu_some"): lambda s: (s["psi"]["cpu"] or {}).get("some_pct"),
}


class Incident:
    def __init__(self, record, page):
        lines = [json.loads(line) for line in pathlib.Path(record).read_text().splitlines()]
        text = pathlib.Path(page).read_text()
        begin = text.index(">", text.index('id="incident-data"')) + 1
        self.data = json.loads(text[begin:text.index("</script>", begin)])
        self.strings = self.data["strings"]
        self.of_type = {}
        for line in lines:
            self.of_type.setdefault(line["type"], []).append(line)
        self.opened_ns = self.of_type["open"][0]["mono_ns"]

    def lines(self, *types):
        return [line for type_ in types for line in self.of_type.get(type_, [])]

    def ms(self, mono_ns):
        return (mono_ns - self.opened_ns) / 1e6

    def at(self, line, t):
        return abs(self.ms(line["mono_ns"]) - t) < NEAR


def number_of_sample(incident, rnd):
    """Of the samples on the page, one value of one column."""
    samples = incident.data["samples"]
    i = rnd.randrange(len(samples["t"]))
    line = next(s for s in incident.lines("sample") if incident.at(s, samples["t"][i]))
    columns = list(OF_SAMPLE) + [(n, key) for n in range(len(samples["disks"])) for key in {**OF_DISK, **RATES}]
    place, key = rnd.choice(columns)
    if isinstance(place, str):
        return "%s %s" % (place, key), samples[place][key][i], OF_SAMPLE[place, key](line)
    name = incident.strings[incident.data["disks"][samples["disks"][place]["disk"]]["name"]]
    device = next((d for d in line["devices"] if d["dev_name"] == name), None)
    found = samples["disks"][place][key][i]
    if device is None or (key in RATES and not line["interval_ns"]):
        return "%s of %s" % (key, name), found, None
    wanted = device[OF_DISK[key]] if key in OF_DISK else device[RATES[key]] * 1e9 / line["interval_ns"]
    return "%s of %s" % (key, name), found, wanted


def number_of_operation(incident, rnd):
    operations = incident.data["operations"]
    row = dict(zip(operations["columns"], rnd.choice(operations["rows"])))
    lines = [line for line in incident.lines("stall", "stuck") if line["tid"] == row["tid"] and
             abs(incident.ms(line["start_mono_ns"]) - row["t"]) < NEAR]
    wanted = max(line.get("dur_ns") or line.get("age_ns") for line in lines) / 1e6
    return "an operation of %d" % row["tid"], row["ms"], wanted


def number_of_wait(incident, rnd):
    row = rnd.choice(incident.data["waits"])
    if row.get("session") is not None:
        waited = [line["waited_ns"] or 0 for line in incident.lines("sql") if line["connection_id"] == row["session"]]
    else:
        waited = [line["longest_ns"] for line in incident.lines("lock") if line["pid"] == row["pid"]]
    return "wait of %s" % incident.strings[row["comm"]], row["ms"], max(waited) / 1e6


def number_of_load(incident, rnd):
    load = rnd.choice(incident.data["loads"])
    key = rnd.choice(("busy_ms", "requests"))
    disk = incident.strings[incident.data["disks"][load["disk"]]["name"]]
    line = next(line for line in incident.lines("io_by") if incident.at(line, load["t"]) and
                (line["rank"], line["by"], line["dev_name"]) == (load["rank"], load["by"], disk))
    return "%s by %s" % (key, load["by"]), load[key], line[key]


def number_of_offcpu(incident, rnd):
    row = rnd.choice(incident.data["offcpu"])
    wanted = [line["time_ms"] for line in incident.lines("offcpu") if incident.at(line, row["t"]) and
              line["pid"] == row["pid"] and line["times"] == row["times"] and line["threads"] == row["threads"]]
    return "blocked time of %d" % row["pid"], row["ms"], min(wanted, key=lambda ms: abs(ms - row["ms"]), default=None)


def number_of_statement(incident, rnd):
    row = rnd.choice(incident.data["statements"])
    wanted = max(line["elapsed_ns"] for line in incident.lines("sql") if line["connection_id"] == row["connection"] and
                 (line["text"] or "") == incident.strings[row["text"]] and line["elapsed_ns"] is not None) / 1e6
    return "statement of session %d" % row["connection"], row["ms"], wanted


def number_of_histogram(incident, rnd):
    row = rnd.choice(incident.data["histograms"])
    disk = incident.strings[incident.data["disks"][row["disk"]]["name"]]
    line = next(line for line in incident.lines("device") if incident.at(line, row["t"]) and line["dev_name"] == disk)
    key = rnd.choice(("queue", "device"))
    return "%s histogram of %s" % (key, disk), sum(row[key]), sum(line[key + "_histogram"])


def main():
    incident = Incident(sys.argv[1], sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    rnd = random.Random(seed)
    has = {number_of_sample: incident.data["samples"]["t"], number_of_operation: incident.data["operations"]["rows"],
           number_of_wait: incident.data["waits"],
           number_of_load: [load for load in incident.data["loads"] if load["disk"] >= 0],
           number_of_offcpu: incident.data["offcpu"], number_of_statement: incident.data["statements"],
           number_of_histogram: incident.data["histograms"]}
    takers = [take for take, items in has.items() if items]
    wrong = 0
    for _ in range(COUNT):
        what, found, wanted = rnd.choice(takers)(incident, rnd)
        same = found == wanted or None not in (found, wanted) and not isinstance(wanted, list) \
            and abs(float(found) - wanted) < NEAR
        if not same:
            print("seed %d: %s: the page has %s, the record %s" % (seed, what, found, wanted))
            wrong += 1
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
