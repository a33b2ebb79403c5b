// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who loaded the disks in a span. Loads are counted since the probes were armed and written every few seconds, so a
// span gets the difference of the lists nearest to its ends, and the table says which interval that is.

(() => {
	"use strict";

	const { el, fill, byId } = page.dom;
	const { duration, bytes, percent, number, seconds } = page.format;
	const { loads, disks, armedAt, diskName } = page.data;
	const { make, basis, text, num } = page.tables;

	const LIST_GAP_MS = 300;
	const KINDS = ["process", "statement", "file", "cgroup", "thread"];
	const NAMES = {
		process: "Processes", statement: "Statements", file: "Files", cgroup: "Control groups", thread: "Threads",
	};
	const COLUMNS = [
		{ title: "Disk" }, { title: "By" }, { title: "Name" }, { title: "Unit" }, { title: "Disk time", num: true },
		{ title: "Of that time", num: true }, { title: "Requests", num: true }, { title: "Bytes", num: true },
		{ title: "Basis" },
	];

	let kind = "all";

	/**
	 * The lists of a disk in the order of time; the first one is empty, from when the probes were armed. The lines of
	 * a list were written one after the other, so their times differ a little.
	 */
	function listsOf(disk) {
		const lists = [{ t: armedAt, entries: [] }];
		let last = -Infinity;
		for (const load of loads.filter((l) => l.disk === disk).sort((a, b) => a.t - b.t)) {
			if (load.t - last > LIST_GAP_MS)
				lists.push({ t: load.t, entries: [] });
			last = load.t;
			lists[lists.length - 1].entries.push(load);
		}
		return lists;
	}

	/** The two different lists that are nearest to the ends of a span, or, of a short one, those around it. */
	function nearestLists(lists, span) {
		if (lists.length < 2)
			return null;
		const nearest = (t) => lists.reduce((best, list, i) =>
			(Math.abs(list.t - t) < Math.abs(lists[best].t - t) ? i : best), 0);
		let first = nearest(span.from);
		let last = nearest(span.to);
		if (first >= last) {
			const behind = lists.findIndex((list) => list.t >= span.to);
			last = Math.max(1, behind < 0 ? lists.length - 1 : behind);
			first = last - 1;
			while (first > 0 && lists[first].t > span.from)
				first--;
		}
		return [lists[first], lists[last]];
	}

	const keyOf = (load) => [load.by, load.pid, load.tid, load.name, load.unit].join("\u0000");

	/**
	 * What was added between two lists. A list has only those who did most, so for one who is not in the first list
	 * the difference may be too much: `atMost`.
	 */
	function difference(first, last) {
		const before = new Map(first.entries.map((load) => [keyOf(load), load]));
		return last.entries.map((load) => {
			const old = before.get(keyOf(load));
			return {
				...load, atMost: !old && first.entries.length > 0, busy: load.busy - (old?.busy || 0),
				bytes: load.bytes - (old?.bytes || 0), requests: load.requests - (old?.requests || 0),
			};
		}).filter((load) => load.requests > 0 || load.busy > 0);
	}

	function makeRow(load, length) {
		const limit = (format) => (value) => (load.atMost ? "≤ " : "") + format(value);
		const pid = load.tid ?? load.pid;
		const label = load.tid === null || load.tid === undefined ? "pid" : "thread";
		const name = el("span", null, el("bdi", { class: load.by === "file" ? "path" : null }, load.name || "-"),
			pid === null || pid === undefined ? null : el("span", { class: "minor" }, ` ${label} ${pid}`));
		return [text(diskName(load.disk)), load.by, { node: name }, text(load.unit), num(load.busy, limit(duration)),
			num(100 * load.busy / length, limit(percent)), num(load.requests, limit(number)),
			num(load.bytes, limit(bytes)), { node: basis(load.inferred ? "inferred" : "measured") }];
	}

	const isJudged = (disk) => Boolean(disks[disk]?.judged);

	function order(a, b) {
		return isJudged(b.disk) - isJudged(a.disk) || a.disk - b.disk ||
			KINDS.indexOf(a.by) - KINDS.indexOf(b.by) || b.busy - a.busy;
	}

	/** Rows of all disks, and the interval that they are about. */
	function inSpan(span) {
		const found = { loads: [], from: Infinity, to: -Infinity };
		for (const disk of new Set(loads.map((load) => load.disk))) {
			const pair = nearestLists(listsOf(disk), span);
			if (!pair)
				continue;
			const length = pair[1].t - pair[0].t;
			found.loads.push(...difference(...pair).map((load) => ({ ...load, length })));
			found.from = Math.min(found.from, pair[0].t);
			found.to = Math.max(found.to, pair[1].t);
		}
		found.loads.sort(order);
		return found;
	}

	function makeTable(span) {
		const found = inSpan(span);
		if (!found.loads.length)
			return el("p", { class: "none" }, "No load was counted in this span.");
		const { table, frame } = make(`Load from ${seconds(found.from)} to ${seconds(found.to)}`, COLUMNS,
			found.loads.map((load) => makeRow(load, load.length)));
		[...table.tBodies[0].rows].forEach((row, i) => { row.dataset.by = found.loads[i].by; });
		frame.prepend(el("p", { class: "about" },
			`Loads are known for ${seconds(found.from)} to ${seconds(found.to)}, which is nearest to the span. ` +
			"≤ stands where an earlier list does not have the name."));
		return frame;
	}

	/** Lets all tables of the section show one kind of row. */
	function filterTables(section) {
		for (const table of section.querySelectorAll("table.sortable")) {
			table.acceptsRow = (row) => kind === "all" || row.dataset.by === kind;
			table.refilter?.();
		}
	}

	function makeChooser(section) {
		const present = KINDS.filter((by) => section.querySelector(`tr[data-by="${by}"]`));
		if (present.length < 2)
			return null;
		kind = present[0];
		const option = (value, label) => {
			const input = el("input", { type: "radio", name: "load-kind", value, checked: value === kind });
			input.addEventListener("change", () => { kind = value; filterTables(section); });
			return el("label", null, input, el("span", null, label));
		};
		return el("fieldset", { class: "segments" }, el("legend", { class: "unseen" }, "Load by"), option("all", "All"),
			present.map((by) => option(by, NAMES[by])));
	}

	function start() {
		const section = byId("loads");
		const whole = section.querySelector(".whole");
		const part = el("div", { class: "in-span", hidden: true });
		whole.after(part);
		const chooser = makeChooser(section);
		if (chooser)
			whole.before(chooser);
		filterTables(section);
		page.span.onSpan((span) => {
			whole.hidden = Boolean(span);
			part.hidden = !span;
			fill(part, span ? makeTable(span) : null);
			filterTables(section);
		});
	}

	page.loads = { start, inSpan };
})();
