#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Fills report/page.html as `iostall report` does, by the rules of report/README.md, with data of make-sample.py.

usage: assemble.py sample.json page.html
"""

import base64
import hashlib
import html
import json
import pathlib
import re
import sys

REPORT = pathlib.Path(__file__).resolve().parent.parent.parent / "report"
INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def visible(text, keep=""):
    """Writes out characters that nobody would see or that change the order of others."""
    def escape(match):
        c = match.group()
        named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
        if c in keep:
            return c
        return named.get(c) or ("\\x%02x" % ord(c) if ord(c) < 256 else "\\u%04x" % ord(c))
    return INVISIBLE.sub(escape, text)


def esc(text, keep=""):
    return html.escape(visible(str(text), keep))


def bdi(text, path=False):
    return '<bdi%s>%s</bdi>' % (' class="path"' if path else "", esc(text or "-"))


def sql(text):
    return '<code class="sql">%s</code>' % esc(text, "\n\t")


def basis(word):
    word = word or "missing"
    return '<span class="basis %s">%s</span>' % (word, word)


def named(name, label, number):
    return bdi(name) + (' <span class="minor">%s %d</span>' % (label, number) if number is not None else "")


def duration(ms):
    if ms < 1000:
        return "%.3g ms" % ms
    if ms < 120e3:
        return "%.1f s" % (ms / 1000) if ms >= 10e3 else "%.2f s" % (ms / 1000)
    return "%d min %d s" % (ms // 60e3, ms % 60e3 // 1000)


def size(value):
    value = float(value)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024:
            break
        value /= 1024
    else:
        unit = "EiB"
    return "%.1f %s" % (value, unit)


def num(value, text=None):
    if value is None:
        return '<td class="num">-</td>'
    return '<td class="num" data-value="%s">%s</td>' % (value, text if text is not None else value)


def cell(markup):
    return "<td>%s</td>" % markup


def table(caption, columns, rows):
    """Columns whose title ends in # have numbers; rows are lists of cells, with attributes of the row first."""
    head = "".join('<th scope="col"%s>%s</th>' % (' class="num"' if c.endswith("#") else "", c.rstrip("#"))
                   for c in columns)
    body = "\n".join("<tr%s>%s</tr>" % (attributes, "".join(cells)) for attributes, *cells in rows)
    return ('<table class="sortable">\n<caption>%s</caption>\n<thead><tr>%s</tr></thead>\n'
            '<tbody>\n%s\n</tbody>\n</table>' % (caption, head, body))


def facts(pairs):
    return '<dl class="facts">\n%s\n</dl>' % "\n".join(
        "<div><dt>%s</dt><dd>%s</dd></div>" % (title, value) for title, value in pairs)


class Page:
    def __init__(self, sample):
        self.data = sample["data"]
        self.text = sample["text"]
        self.incident = self.data["incident"]

    def string(self, index):
        return self.data["strings"][index] if index >= 0 else ""

    def disk(self, index):
        return self.string(self.data["disks"][index]["name"]) if index >= 0 else ""

    def title(self):
        i = self.incident
        return "<title>%s: %s, %s UTC</title>" % (esc(i["class"]), esc(i["host"]), i["opened"][:19].replace("T", " "))

    def verdict(self):
        i = self.incident
        when = '<time datetime="%s">%s UTC</time>' % (i["opened"], i["opened"][:23].replace("T", " "))
        return "\n".join([
            '<p class="badges"><span class="badge %s">%s</span> %s</p>' % (i["class"], i["class"], basis(i["basis"])),
            "<h1>%s</h1>" % esc(i["sentence"]),
            facts([("Host", bdi(i["host"])), ("When", when), ("How long", duration(i["duration_ms"])),
                   ("Trigger", esc(self.text["trigger"])), ("Ended", esc(self.text["ended"])),
                   ("Kernel", esc(i["kernel"])), ("Incident", esc(i["id"]))])])

    def node(self, node):
        parts = ['<span class="kind">%s</span>' % node["kind"], '<bdi class="name">%s</bdi>' % esc(node["name"])]
        for key in ("time", "count"):
            if node[key]:
                parts.append('<span class="%s">%s</span>' % (key, esc(node[key])))
        return "<li><p>%s %s</p>%s</li>" % (" ".join(parts), basis(node["basis"]), self.nodes(node["below"]))

    def nodes(self, nodes, attributes=""):
        return "<ul%s>\n%s\n</ul>" % (attributes, "\n".join(self.node(n) for n in nodes)) if nodes else ""

    def waits(self):
        return self.nodes(self.text["waits"], ' class="tree"')

    def load_row(self, load, busy):
        name = self.string(load["name"])
        numbered = named(name, "pid", load["pid"]) if load["tid"] is None else named(name, "thread", load["tid"])
        shown = {"file": bdi(name, True), "statement": sql(name)}.get(load["by"], numbered)
        share = 100 * load["busy_ms"] / busy
        return [' data-by="%s"' % load["by"], cell(bdi(self.disk(load["disk"]))), cell(load["by"]), cell(shown),
                cell(bdi(self.string(load["unit"]))), num(load["busy_ms"], duration(load["busy_ms"])),
                num("%.1f" % share, "%.0f %%" % share), num(load["requests"]), num(load["bytes"], size(load["bytes"])),
                cell(basis("inferred" if load["inferred"] else "measured"))]

    def loads(self):
        final = [load for load in self.data["loads"] if load["final"]]
        order = ["process", "statement", "file", "cgroup", "thread"]
        judged = [disk["judged"] for disk in self.data["disks"]]
        final.sort(key=lambda load: (not judged[load["disk"]], load["disk"], order.index(load["by"]), load["rank"]))
        busy = {}
        for load in final:
            if load["by"] == "process":
                busy[load["disk"]] = busy.get(load["disk"], 0) + load["busy_ms"]
        return table("Load since the probes were armed",
                     ["Disk", "By", "Name", "Unit", "Busy#", "Share#", "Requests#", "Bytes#", "Basis"],
                     [self.load_row(load, busy[load["disk"]]) for load in final])

    def blocked(self):
        operations = self.data["operations"]
        groups = {}
        for row in operations["rows"]:
            o = dict(zip(operations["columns"], row))
            cause = self.string(o["cause"]) or "not known"
            cause += ", " + self.disk(o["disk"]) if o["disk"] >= 0 else ""
            key = (self.string(o["comm"]), o["pid"], self.string(o["op"]), self.string(o["path"]), cause)
            groups.setdefault(key, []).append((o["ms"], o["tid"]))
        rows = []
        for (comm, pid, op, path, cause), found in sorted(groups.items(), key=lambda g: -sum(ms for ms, _ in g[1])):
            together, longest = sum(ms for ms, _ in found), max(ms for ms, _ in found)
            rows.append(["", cell(named(comm, "pid", pid)), cell(esc(op)), cell(bdi(path, True)), cell(esc(cause)),
                         num(len({tid for _, tid in found})), num(len(found)),
                         num("%.1f" % together, duration(together)), num(longest, duration(longest))])
        return table("Operations of 100 ms or longer", ["Process", "Operation", "File", "Waited for", "Threads#",
                                                        "Operations#", "Together#", "Longest#"], rows)

    def statements(self):
        rows = []
        for s in sorted(self.data["statements"], key=lambda s: -s["ms"]):
            lock = self.string(s["lock"])
            rows.append(["", cell(sql(self.string(s["text"]))), cell(bdi(self.string(s["database"]))),
                         cell(bdi(self.string(s["user"]))), num(s["connection"]), num(s["ms"], duration(s["ms"])),
                         cell(esc("lock: " + lock) if lock else "-"), num(s["blocked_by"])])
        return table("Statements seen in the databases", ["Statement", "Database", "User", "Session#", "Ran for#",
                                                          "Waits for", "Blocked by#"], rows)

    def part(self, part):
        figures = "".join("<div><dt>%s</dt><dd>%s</dd></div>" % (key.rstrip("_"), esc(value))
                          for key, value in part["figures"].items())
        return ('<li class="%s"><p class="label"><span class="what">%s</span> %s</p>\n<p>%s</p>%s</li>'
                % (part["basis"] or "missing", part["what"], basis(part["basis"]), esc(part["text"]),
                   '<dl class="figures">%s</dl>' % figures if figures else ""))

    def parts(self):
        return '<ul class="parts">\n%s\n</ul>' % "\n".join(self.part(p) for p in self.text["parts"])

    def coverage(self):
        return table("Ways of doing I/O", ["I/O path", "Seen", "Probe", "Attached by", "Pairing", "Remark"],
                     [["", *(cell(esc(value)) for value in row)] for row in self.text["coverage"]])

    def losses(self):
        rows = [["", cell(what), num(count), cell(esc(meaning))] for what, count, meaning in self.text["lost"]]
        rows += [["", cell(esc(self.string(left["what"]))), num(left["count"]),
                  cell("left out of this page so that it stays small")] for left in self.data["left_out"]]
        lost = table("Lost", ["What", "Count#", "Meaning"], rows) if rows else '<p class="none">Nothing was lost.</p>'
        return lost + "\n" + facts(self.text["cost"])

    def footer(self):
        i = self.incident
        return "<p>iostall %s, incident %s, recorded on %s.</p>" % (i["version"], i["id"], bdi(i["host"]))

    def json(self):
        return json.dumps(self.data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def read(*names):
    return "".join((REPORT / name).read_text() for name in names)


def hash_of(text):
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def assemble(sample):
    page = Page(sample)
    style = read("vendor/uPlot/uPlot.min.css", "page.css")
    script = read("vendor/uPlot/uPlot.iife.js", *(REPORT / "scripts.list").read_text().split())
    places = {name: getattr(page, name)() for name in ("title", "verdict", "waits", "loads", "blocked", "statements",
                                                       "parts", "coverage", "losses", "footer")}
    places["style"] = "<style>%s</style>" % style
    places["script"] = "<script>%s</script>" % script
    places["data"] = '<script type="application/json" id="incident-data">%s</script>' % page.json()
    places["policy"] = ('<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src %s; '
                        'script-src %s; base-uri \'none\'; form-action \'none\'">' % (hash_of(style), hash_of(script)))
    return re.sub(r"^[ \t]*<!-- @(\w+) -->$", lambda match: places[match.group(1)], read("page.html"), flags=re.M)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    sample_ = json.loads(pathlib.Path(sys.argv[1]).read_text())
    pathlib.Path(sys.argv[2]).write_text(assemble(sample_))
