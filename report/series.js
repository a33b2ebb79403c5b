// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the plots over time show: groups of plots, one group for the host and one for each disk, each plot with its
// series. Nothing here draws.

(() => {
	"use strict";

	const { samples, operations, mostAtOnce, disks, bounds, string } = page.data;
	const { number, duration, percent } = page.format;

	const STEPS = 400;
	const CAUSES = 5;

	const toNumbers = (column) => (column || []).map((v) => (v === null || v === undefined ? null : Number(v)));
	const hasValues = (values) => values.some((value) => value !== null);
	const sampleTimes = samples.t.map((t) => t / 1000);

	/** A plot of columns of the samples; null when they have no value. */
	function samplePlot(title, format, lines, options) {
		const series = lines.map(([label, column, color, dash]) => ({ label, values: toNumbers(column), color, dash }))
			.filter((line) => hasValues(line.values));
		return series.length ? { title, format, x: sampleTimes, series, ...options } : null;
	}

	const PERCENT = { max: 100 };

	function diskPlots(disk) {
		return [
			samplePlot("Utilisation, %", percent, [["busy", disk.util, 1]], { ...PERCENT, area: true }),
			samplePlot("Await, ms", duration,
				[["reads", disk.read_await_ms, 1], ["writes", disk.write_await_ms, 2, true]]),
			samplePlot("In flight", number, [["requests", disk.in_flight, 3]], { area: true }),
			samplePlot("Requests a second", number, [["reads", disk.reads_s, 1], ["writes", disk.writes_s, 2, true]]),
		].filter(Boolean);
	}

	/** Causes of operations, the one with the longest time together first; those beyond CAUSES are "other". */
	function rankCauses() {
		const together = new Map();
		for (const o of operations)
			together.set(o.cause, (together.get(o.cause) || 0) + o.threads * o.ms);
		return [...together.keys()].sort((a, b) => together.get(b) - together.get(a));
	}

	const causes = rankCauses();
	const causeName = (cause) => cause || "not known";

	/** Colour of a cause, the same everywhere: 1 to 7, 8 for all others. */
	const causeColor = (cause) => Math.min(causes.indexOf(cause), 7) + 1;

	/** How many threads waited for each cause, at most, around each of STEPS times. */
	const countByCause = () => causes.map((cause) =>
		mostAtOnce(operations.filter((o) => o.cause === cause), bounds, STEPS + 1));

	const addUp = (rows) => rows.reduce((sum, row) => sum.map((n, i) => n + row[i]), new Array(STEPS + 1).fill(0));

	/** Blocked threads by cause, one on top of the other: each series has its own values and the height of its edge. */
	function blockedPlot() {
		if (!operations.length)
			return null;
		const step = (bounds.to - bounds.from) / STEPS;
		const counts = countByCause();
		const rows = counts.slice(0, CAUSES).map((values, i) => (
			{ label: causeName(causes[i]), values, color: causeColor(causes[i]) }));
		if (counts.length > CAUSES)
			rows.push({ label: "other", values: addUp(counts.slice(CAUSES)), color: 8 });
		rows.forEach((row, i) => { row.edge = addUp(rows.slice(0, i + 1).map((r) => r.values)); });
		return {
			title: "Blocked threads by cause", format: number, stacked: true, series: rows.reverse(),
			x: Array.from({ length: STEPS + 1 }, (_, i) => (bounds.from + i * step) / 1000),
		};
	}

	function databasePlots() {
		const databases = samples.databases || [];
		const lines = (key) => databases.map((db, i) => [string(db.name) || "database", db[key], i + 1, i % 2 === 1]);
		const silent = databases.some((db) => (db.unanswered_ms || []).some((ms) => ms > 0));
		return [
			samplePlot("Active sessions", number, lines("active")),
			silent && samplePlot("Not answered for, ms", duration, lines("unanswered_ms")),
		].filter(Boolean);
	}

	function hostPlots() {
		const psi = samples.psi || {};
		const cpu = samples.cpu || {};
		return [
			blockedPlot(),
			samplePlot("Pressure, % of the time", percent, [
				["I/O, some", psi.io_some, 1], ["I/O, full", psi.io_full, 5],
				["memory, some", psi.memory_some, 2, true], ["memory, full", psi.memory_full, 4, true],
				["CPU, some", psi.cpu_some, 3],
			], PERCENT),
			samplePlot("CPU, %", percent, [["busy", cpu.busy, 3], ["I/O wait", cpu.iowait, 1, true]], PERCENT),
			samplePlot("Threads in I/O wait, as the kernel counts them", number, [["in I/O wait", samples.blocked, 4]]),
		].filter(Boolean);
	}

	/** How much a disk worked since the trigger. */
	function activity(entry) {
		return toNumbers(entry.util).reduce((sum, value, i) => sum + (samples.t[i] >= 0 ? value || 0 : 0), 0);
	}

	/** Groups {title, note, plots}: the host, the judged disk, the databases, other disks with the busiest first. */
	function groups() {
		const ofDisks = (samples.disks || []).map((entry) => ({
			title: `Disk ${disks[entry.disk]?.name || "?"}`, judged: disks[entry.disk]?.judged,
			note: disks[entry.disk]?.judged ? "the verdict is about it" : "", activity: activity(entry),
			plots: diskPlots(entry),
		})).sort((a, b) => b.judged - a.judged || b.activity - a.activity);
		const host = { title: "Host", note: "", plots: hostPlots() };
		const databases = { title: "Databases", note: "", plots: databasePlots() };
		const [first, ...others] = ofDisks;
		return [host, first, databases, ...others].filter((group) => group && group.plots.length);
	}

	page.series = { groups, causes, causeName, causeColor };
})();
