// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads what the program wrote about the incident. report/README.md has the form.

(() => {
	"use strict";

	const { visible, visibleLines } = page.format;
	const raw = JSON.parse(document.getElementById("incident-data").textContent);

	if (raw.format !== 1)
		throw new Error(`the data has format ${raw.format}, this page reads format 1`);

	const list = (value) => (Array.isArray(value) ? value : []);

	/** A number; integers beyond 2^53 come as texts, and for drawing their first digits are enough. */
	const toNumber = (value) => (value === null || value === undefined || value === "" ? null : Number(value));

	/** A process or thread; 0 stands for one that is not known. */
	const toId = (value) => toNumber(value) || null;

	/** A text of the record, with every character visible; "" when there is none. */
	const string = (index) => visible(list(raw.strings)[index] ?? "");
	const lines = (index) => visibleLines(list(raw.strings)[index] ?? "");

	/** Names of the functions of a stack, the outermost first. */
	const stack = (index) => list(list(raw.stacks)[index]).map(string);

	function readOperations() {
		const { columns, rows } = raw.operations || { columns: [], rows: [] };
		const at = Object.fromEntries(columns.map((name, i) => [name, i]));
		return rows.map((row, index) => ({
			index, t: toNumber(row[at.t]), ms: toNumber(row[at.ms]) || 0, stuck: row[at.state] === "stuck",
			pid: toId(row[at.pid]), tid: toId(row[at.tid]), comm: string(row[at.comm]),
			op: string(row[at.op]),
			path: string(row[at.path]), cause: string(row[at.cause]), disk: row[at.disk], stack: stack(row[at.stack]),
			statement: row[at.statement], session: null, threads: 1, isWait: false,
			who: `thread ${row[at.tid]}`,
		}));
	}

	/** Sessions and threads that waited for locks, in the form of operations. A line may stand for several threads. */
	function readWaits(first) {
		return list(raw.waits).map((line, i) => ({
			index: first + i, t: toNumber(line.t), ms: toNumber(line.ms) || 0, stuck: false,
			pid: toId(line.pid), tid: null, session: line.session ?? null, threads: toNumber(line.threads) || 1,
			isWait: true, who: line.session === undefined ? `lock ${line.lock}` : `${string(line.database)} ${line.session}`,
			comm: string(line.comm), op: line.session === undefined ? "" : "statement", path: string(line.path),
			cause: string(line.cause), disk: -1, stack: [], statement: line.statement,
		}));
	}

	function readOffcpu() {
		return list(raw.offcpu).map((line) => ({
			from: toNumber(line.t) - toNumber(line.window_ms), to: toNumber(line.t), pid: toId(line.pid),
			process: string(line.process), comm: string(line.comm), state: line.state || "",
			ms: toNumber(line.ms) || 0, threads: toNumber(line.threads), longest: toNumber(line.longest_ms),
			kernel: stack(line.kernel), user: stack(line.user), statement: line.statement,
		}));
	}

	function readLoads() {
		return list(raw.loads).map((line) => ({
			t: toNumber(line.t), final: Boolean(line.final), disk: line.disk, by: line.by,
			pid: toId(line.pid), tid: toId(line.tid),
			name: string(line.name), unit: string(line.unit), busy: toNumber(line.busy_ms), bytes: toNumber(line.bytes),
			requests: toNumber(line.requests), inferred: Boolean(line.inferred),
		}));
	}

	function readStatements() {
		return list(raw.statements).map((line) => ({
			database: string(line.database), user: string(line.user), connection: line.connection,
			ms: toNumber(line.ms), text: lines(line.text),
		}));
	}

	function readHistograms() {
		return list(raw.histograms).map((line) => ({
			t: toNumber(line.t), disk: line.disk,
			queue: list(line.queue).map(toNumber), device: list(line.device).map(toNumber),
		}));
	}

	const marks = list(raw.marks).map((mark) => ({ t: mark.t, kind: String(mark.kind), text: string(mark.text) }));
	const disks = list(raw.disks).map((disk, index) => ({
		index, name: string(disk.name) || "?", judged: Boolean(disk.judged),
	}));
	const samples = { t: [], ...raw.samples };
	const ofThreads = readOperations();
	const operations = [...ofThreads, ...readWaits(ofThreads.length)];

	/** All times of the record that are drawn. An operation may have begun days ago: those do not count. */
	function findBounds() {
		const times = [0, toNumber(raw.incident.duration_ms) || 0, ...samples.t, ...marks.map((mark) => mark.t)];
		if (samples.t.length && samples.interval_ms)
			times.push(samples.t[0] - (samples.interval_ms[0] || 0));
		for (const o of operations)
			times.push(o.t + o.ms);
		const all = times.filter(Number.isFinite);
		const from = all.reduce((a, b) => Math.min(a, b));
		const to = all.reduce((a, b) => Math.max(a, b));
		return { from, to: Math.max(to, from + 1000) };
	}

	/**
	 * How many threads waited at once, at most, in each of `slots` parts of a span. In one part a thread may wait
	 * again and again.
	 */
	function mostAtOnce(some, { from, to }, slots) {
		const changes = [];
		for (const o of some) {
			const begin = Math.max(o.t, from);
			const end = Math.min(o.t + o.ms, to);
			if (begin <= end)
				changes.push([begin, o.threads], [Math.max(end, begin + 1e-6), -o.threads]);
		}
		changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
		const most = new Array(slots).fill(0);
		let now = 0;
		let at = 0;
		for (const [t, threads] of changes) {
			const slot = Math.min(slots - 1, Math.floor((t - from) / (to - from) * slots));
			for (; at < slot; at++)
				most[at + 1] = now;
			now += threads;
			most[at] = Math.max(most[at], now);
		}
		return most;
	}

	const leftOut = list(raw.left_out).find((line) => string(line.what).startsWith("operations, the shortest"));
	const armed = marks.find((mark) => mark.kind === "armed");

	page.data = {
		incident: raw.incident, marks, disks, samples, operations, string,
		offcpu: readOffcpu(), loads: readLoads(), statements: readStatements(), histograms: readHistograms(),
		bounds: findBounds(), armedAt: armed ? armed.t : 0, mostAtOnce,
		/** Operations of the record that are not on this page. */
		operationsLeftOut: leftOut ? toNumber(leftOut.count) : 0,
		/** How many threads and sessions the operations are of. */
		countThreads: (some) => {
			const most = new Map();
			for (const o of some)
				most.set(o.who, Math.max(most.get(o.who) || 0, o.threads));
			return [...most.values()].reduce((n, threads) => n + threads, 0);
		},
		/** The text of a statement by its index, or "". */
		statementText: (index) => page.data.statements[index]?.text || "",
		diskName: (index) => disks[index]?.name || "",
	};
})();
