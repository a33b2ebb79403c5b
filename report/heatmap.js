// SPDX-License-Identifier: GPL-2.0-or-later
//
// Latency of requests over time. The histograms of the record are counted since the probes were armed; a column is the
// difference of two that follow one another.

(() => {
	"use strict";

	const { el, svg, fill, onWidth, newId } = page.dom;
	const { duration, number, seconds, count } = page.format;
	const { histograms, disks, armedAt } = page.data;
	const { make, num } = page.tables;

	const LEFT = 64;
	const ROW = 13;
	const SHOWN_DISKS = 4;
	const STEPS = 9;		// shades, the first one for a single request

	let kind = "device";
	const redraws = [];

	/** The upper limit of a bucket, in milliseconds. */
	const limitOf = (bucket) => 2 ** bucket / 1000;
	const rangeText = (bucket) => `${duration(bucket ? limitOf(bucket - 1) : 0)} to ${duration(limitOf(bucket))}`;

	/** Columns {from, to, counts} of a disk. What counts less than before is from a record with a gap. */
	function columnsOf(disk) {
		const list = histograms.filter((h) => h.disk === disk).sort((a, b) => a.t - b.t);
		let before = { t: Math.min(armedAt, list[0]?.t ?? 0), device: [], queue: [] };
		const columns = [];
		for (const now of list) {
			const old = before[kind];
			if (now.t > before.t)
				columns.push({
					from: before.t, to: now.t,
					counts: now[kind].map((value, i) => Math.max(0, (value || 0) - (old[i] || 0))),
				});
			before = now;
		}
		return columns;
	}

	const sum = (counts) => counts.reduce((a, b) => a + b, 0);

	/** The bucket in which the given share of the requests is reached. */
	function percentile(counts, share) {
		const wanted = sum(counts) * share;
		let seen = 0;
		return counts.findIndex((value) => (seen += value) >= wanted && seen > 0);
	}

	const highest = (counts) => counts.reduce((last, value, i) => (value > 0 ? i : last), -1);

	function bucketRange(columns) {
		const all = columns.flatMap(({ counts }) => counts.map((value, i) => (value ? i : -1)).filter((i) => i >= 0));
		if (!all.length)
			return null;
		return { low: all.reduce((a, b) => Math.min(a, b)), high: all.reduce((a, b) => Math.max(a, b)) };
	}

	/** A shade from 1 to STEPS: counts differ by powers of ten, so it goes by the logarithm. */
	function shadeOf(value, most) {
		return most <= 1 ? STEPS : 1 + Math.round((STEPS - 1) * Math.log(value) / Math.log(most));
	}

	function drawCells(columns, range, scale) {
		const most = columns.flatMap((column) => column.counts).reduce((a, b) => Math.max(a, b), 1);
		const cells = [];
		columns.forEach((column, c) => {
			const left = Math.max(scale(column.from), scale.left);
			const right = Math.min(scale(column.to), scale.right);
			column.counts.forEach((value, bucket) => {
				if (value && right > left)
					cells.push(svg("rect", {
						class: `heat h${shadeOf(value, most)}`, x: left, y: (range.high - bucket) * ROW,
						width: Math.max(1, right - left - 0.5), height: ROW - 0.5, "data-c": c, "data-b": bucket,
					}));
			});
		});
		return svg("g", null, cells);
	}

	/** Names of every second row, from the slowest on: the lower limit of its bucket. */
	function drawRows(range) {
		const labels = [];
		for (let bucket = range.high; bucket >= range.low; bucket -= 2)
			labels.push(svg("text", { x: LEFT - 6, y: (range.high - bucket + 1) * ROW, "text-anchor": "end" },
				duration(bucket ? limitOf(bucket - 1) : 0)));
		return svg("g", { class: "axis", "aria-hidden": "true" }, labels);
	}

	function describe(disk, columns) {
		const worst = columns.reduce((a, b) => (highest(b.counts) > highest(a.counts) ? b : a));
		const requests = sum(columns.map((c) => sum(c.counts)));
		return `Latency of requests of disk ${disk.name}: ${count(requests, "request")}, the slowest ` +
			`${rangeText(highest(worst.counts))} between ${seconds(worst.from)} and ${seconds(worst.to)}. ` +
			"The table below has the same.";
	}

	function drawMap(disk, columns, width) {
		const range = bucketRange(columns);
		const height = (range.high - range.low + 1) * ROW;
		const scale = page.axis.timeScale(page.span.view(), LEFT, width - 10);
		const label = newId("heat");
		return svg("svg", {
			width, height: height + 20, viewBox: `0 0 ${width} ${height + 20}`, role: "img", "aria-labelledby": label,
		}, svg("title", { id: label }, describe(disk, columns)), page.axis.drawBefore(scale, 0, height),
		drawRows(range), page.axis.drawTicks(scale, 0, height),
		drawCells(columns, range, scale), page.axis.drawMarks(scale, 0, height),
		page.axis.drawSpan(scale, 0, height));
	}

	function drawTable(disk, columns) {
		const bucketCell = (bucket) => num(bucket < 0 ? null : limitOf(bucket), duration);
		const rows = columns.filter((c) => sum(c.counts)).map((c) => [
			num(c.from, seconds), num(c.to, seconds), num(sum(c.counts), number), bucketCell(percentile(c.counts, 0.5)),
			bucketCell(percentile(c.counts, 0.99)), bucketCell(highest(c.counts))]);
		const titles = ["From", "To", "Requests", "Half below", "99 % below", "All below"];
		const shown = titles.map((title) => ({ title, num: true }));
		return make(`Latency of requests of disk ${disk.name}`, shown, rows).frame;
	}

	function explain(columns, target) {
		const { c, b } = target.dataset || {};
		if (c === undefined)
			return null;
		const column = columns[c];
		return [count(column.counts[b], "request"), rangeText(Number(b)),
			`between ${seconds(column.from)} and ${seconds(column.to)}`];
	}

	/** A disk: its map, and the same as a table, which is made when somebody opens it. */
	function makeDisk(disk) {
		const map = el("div", { class: "graphic" });
		const table = el("details", null, el("summary", null, "As a table"));
		let columns = [];
		let width = 0;
		const draw = () => {
			if (!width)
				return;
			fill(map, bucketRange(columns) ? drawMap(disk, columns, width) :
				el("p", { class: "none" }, "No request was seen."));
		};
		const read = () => {
			columns = columnsOf(disk.index);
			table.querySelector(".table-frame")?.remove();
			table.open = false;
			draw();
		};
		table.addEventListener("toggle", () => {
			if (table.open && !table.querySelector(".table-frame"))
				table.append(drawTable(disk, columns));
		});
		page.tip.attach(map, (target) => explain(columns, target));
		redraws.push({ draw, read });
		read();
		return {
			node: el("section", { class: "heat-disk" },
				el("h3", null, "Disk ", el("bdi", null, disk.name)), map, table),
			watch: () => onWidth(map, (w) => { width = w; draw(); }),
		};
	}

	function makeChooser() {
		const option = (value, label) => {
			const input = el("input", { type: "radio", name: "latency-kind", value, checked: value === kind });
			input.addEventListener("change", () => { kind = value; redraws.forEach(({ read }) => read()); });
			return el("label", null, input, el("span", null, label));
		};
		return el("fieldset", { class: "segments" }, el("legend", { class: "unseen" }, "Which part of the latency"),
			option("device", "In the device"), option("queue", "In the queue before it"));
	}

	function makeScale() {
		const boxes = Array.from({ length: STEPS }, (_, i) => el("i", { class: `heat-key h${i + 1}` }));
		return el("p", { class: "heat-scale", "aria-hidden": "true" }, "one request ", boxes, " the most of that disk");
	}

	/** How many requests of a disk were seen. */
	function requestsOf(disk) {
		const last = histograms.filter((h) => h.disk === disk.index).pop();
		return last ? sum(last.device) : 0;
	}

	function start(body) {
		const present = disks.filter((disk) => histograms.some((h) => h.disk === disk.index))
			.sort((a, b) => b.judged - a.judged || requestsOf(b) - requestsOf(a));
		const made = present.map(makeDisk);
		const nodes = made.map(({ node }) => node);
		const others = nodes.splice(SHOWN_DISKS);
		fill(body, el("div", { class: "tools" }, makeChooser(), makeScale()), el("div", { class: "heat-grid" }, nodes),
			others.length > 0 && el("details", { class: "others" },
				el("summary", null, count(others.length, "other disk")),
				el("div", { class: "heat-grid" }, others)));
		made.forEach(({ watch }) => watch());
		const drawAll = () => redraws.forEach(({ draw }) => draw());
		page.span.onSpan(drawAll);
		page.span.onView(drawAll);
		return present.length > 0;
	}

	page.heatmap = { start };
})();
