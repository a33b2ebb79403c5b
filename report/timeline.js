// SPDX-License-Identifier: GPL-2.0-or-later
//
// Plots over time, drawn by uPlot, with one cursor and one visible span for all of them.

(() => {
	"use strict";

	const { el, fill, onWidth } = page.dom;
	const { seconds, clock } = page.format;
	const { marks, incident } = page.data;

	const HEIGHT = 76;
	const AXIS_HEIGHT = 22;
	const AXIS_WIDTH = 46;
	const PADDING = 18;			// half of the last label of the time axis
	const SHOWN_GROUPS = 5;		// the host, databases and three disks
	const LABELLED_GROUPS = 2;	// the others have the lines of the marks and not their names
	const LABEL_ROWS = 3;
	const FONT = "11px system-ui, sans-serif";
	const SYNC = "incident";

	const plots = [];		// {u, spec, values, setWidth}
	const labelStrips = [];	// functions that place the labels of the marks anew
	let colors = new Map();
	let moving = false;		// the cursor is being set by us
	let dragged = null;		// the plot in which the mouse button was pressed

	/** A colour of the style sheet, which knows of light, dark and print. */
	function color(name) {
		if (!colors.has(name))
			colors.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
		return colors.get(name);
	}

	const lineColor = (line) => color(`--c${(line.color - 1) % 8 + 1}`);

	const viewSeconds = () => {
		const { from, to } = page.span.view();
		return [from / 1000, to / 1000];
	};

	/** Shades the time before the trigger. */
	function shadeBefore(u) {
		const right = Math.min(u.valToPos(0, "x", true), u.bbox.left + u.bbox.width);
		if (right <= u.bbox.left)
			return;
		u.ctx.fillStyle = color("--before");
		u.ctx.fillRect(u.bbox.left, u.bbox.top, right - u.bbox.left, u.bbox.height);
	}

	function drawMarks(u) {
		const { ctx, bbox } = u;
		ctx.save();
		ctx.lineWidth = devicePixelRatio;
		for (const mark of marks) {
			const x = Math.round(u.valToPos(mark.t / 1000, "x", true));
			if (x < bbox.left || x > bbox.left + bbox.width)
				continue;
			ctx.strokeStyle = color(mark.kind === "trigger" ? "--accent" : "--mark");
			ctx.setLineDash(mark.kind === "trigger" ? [] : [3 * devicePixelRatio, 3 * devicePixelRatio]);
			ctx.beginPath();
			ctx.moveTo(x, bbox.top);
			ctx.lineTo(x, bbox.top + bbox.height);
			ctx.stroke();
		}
		ctx.restore();
	}

	/** The end of a drag selects the span for the whole page. uPlot tells it for all plots, one of them is enough. */
	function onSelect(u) {
		const { left, width } = u.select;
		if (u !== dragged)
			return;
		if (!page.span.set(u.posToVal(left, "x") * 1000, u.posToVal(left + width, "x") * 1000))
			page.span.clear();
		queueMicrotask(showSpan);
	}

	/** A click without a drag clears the span. */
	function watchClicks(u) {
		let pressedAt = 0;
		u.over.addEventListener("mousedown", (event) => {
			dragged = u;
			pressedAt = event.clientX;
		});
		u.over.addEventListener("click", (event) => {
			if (Math.abs(event.clientX - pressedAt) < 3)
				page.span.clear();
		});
	}

	function showValues(plot, u) {
		u.series.slice(1).forEach((_, i) => {
			const at = u.cursor.idxs?.[i + 1];
			const value = at === null || at === undefined ? null : plot.spec.series[i].values[at];
			plot.values[i].textContent = value === null ? "" : plot.spec.format(value);
		});
	}

	function onCursor(plot, u) {
		showValues(plot, u);
		if (moving || !u.over.matches(":hover"))
			return;
		moving = true;
		page.span.point(u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") * 1000 : null);
		moving = false;
	}

	/** Shows the cursor of the strip in the plots. */
	function moveCursor(t) {
		if (moving || t === null)
			return;
		moving = true;
		for (const { u } of plots.filter((plot) => plot.u))
			u.setCursor({ left: u.valToPos(t / 1000, "x"), top: 1 }, true, false);
		moving = false;
	}

	/** Values without a neighbour have no line, so they get a dot. */
	function lonely(u, index) {
		const values = u.data[index];
		const isThere = (i) => values[i] !== null && values[i] !== undefined;
		return values.map((_, i) => i).filter((i) => isThere(i) && !isThere(i - 1) && !isThere(i + 1));
	}

	function uSeries(spec, line) {
		const stroke = () => lineColor(line);
		const area = spec.area ? () => `${lineColor(line)}33` : undefined;
		return {
			label: line.label, width: spec.stacked ? 1 : 1.5, dash: line.dash ? [5, 3] : undefined, stroke,
			fill: spec.stacked ? stroke : area, points: spec.stacked ? { show: false } : { show: true, size: 5, filter: lonely },
			paths: spec.stacked ? uPlot.paths.stepped({ align: 1 }) : undefined,
		};
	}

	function yAxis(spec) {
		const short = (value) => (value >= 10000 ? `${value / 1000}k` : String(value));
		return {
			size: AXIS_WIDTH, stroke: () => color("--muted"), font: FONT, space: 26,
			grid: { stroke: () => color("--grid"), width: 1 }, ticks: { show: false },
			values: (u, values) => values.map(short), splits: spec.max ? () => [0, 50, 100] : undefined,
		};
	}

	function xAxis(isLast) {
		return {
			size: isLast ? AXIS_HEIGHT : 4, stroke: () => color("--muted"), font: FONT, space: 60,
			grid: { stroke: () => color("--grid"), width: 1 }, ticks: { show: false }, gap: 3,
			values: (u, values) => values.map((value) => (isLast ? `${Number(value.toFixed(2))} s` : "")),
		};
	}

	const yRange = (spec) => (u, min, max) => [0, spec.max || uPlot.rangeNum(0, Math.max(max || 0, 1), 0.1, true)[1]];

	function options(plot, width) {
		const { spec, isLast } = plot;
		return {
			width, height: HEIGHT + (isLast ? AXIS_HEIGHT - 4 : 0), padding: [6, PADDING, 0, 0], legend: { show: false },
			cursor: {
				y: false, sync: { key: SYNC, scales: ["x", null] }, drag: { x: true, y: false, setScale: false },
				bind: { dblclick: () => () => { page.span.showAll(); return null; } },
				points: { show: !spec.stacked, size: 6 },
			},
			scales: { x: { time: false, range: viewSeconds }, y: { range: yRange(spec) } },
			axes: [xAxis(isLast), yAxis(spec)],
			series: [{}, ...spec.series.map((line) => uSeries(spec, line))],
			hooks: {
				init: [watchClicks], drawClear: [shadeBefore], draw: [drawMarks], setSelect: [onSelect],
				setCursor: [(u) => onCursor(plot, u)],
			},
		};
	}

	/** What a plot shows, in words. */
	function describe(spec) {
		const parts = spec.series.map(({ label, values }) => {
			const isMore = (value, best) => value !== null && value > (values[best] ?? -1);
			const max = values.reduce((best, value, i) => (isMore(value, best) ? i : best), 0);
			return `${label} at most ${spec.format(values[max])} at ${seconds(spec.x[max] * 1000)}`;
		});
		return `${spec.title}: ${parts.join("; ")}`;
	}

	function legendItem(line, value) {
		const swatch = el("i", { class: `swatch c${(line.color - 1) % 8 + 1}${line.dash ? " dashed" : ""}` });
		return el("span", { class: "legend-item" }, swatch, el("bdi", null, line.label), " ", value);
	}

	/** Series that stand on one another are drawn from the top one down, and named from the bottom up. */
	const inOrder = (spec, items) => (spec.stacked ? items.reverse() : items);

	/** One plot with its title and legend; it is drawn once it has a width. */
	function makePlot(spec, isLast) {
		const values = spec.series.map(() => el("b"));
		const host = el("div", { class: "canvas-host", role: "img", "aria-label": describe(spec) });
		const plot = { spec, isLast, values, u: null };
		plot.setWidth = (width) => {
			if (plot.u)
				plot.u.setSize({ width, height: plot.u.height });
			else
				plot.u = new uPlot(options(plot, width), [spec.x, ...spec.series.map((l) => l.edge || l.values)], host);
		};
		plots.push(plot);
		const legend = el("span", { class: "legend" }, 
			inOrder(spec, spec.series.map((line, i) => legendItem(line, values[i]))));
		const figure = el("figure", { class: "plot" },
			el("figcaption", null, el("span", { class: "plot-title" }, spec.title), legend), host);
		plot.watch = () => onWidth(host, (width) => { plot.setWidth(width); showSpan(); });
		return { figure, plot };
	}

	/** Finds a row for each label in which it does not lie on another one. */
	function placeLabels(strip, width) {
		const scale = page.axis.timeScale(page.span.view(), AXIS_WIDTH, width - PADDING);
		const ends = new Array(LABEL_ROWS).fill(-Infinity);
		for (const label of strip.children) {
			const x = scale(Number(label.dataset.t));
			const length = label.textContent.length * 6.2 + 12;
			const left = Math.min(x, width - length);
			const row = ends.findIndex((end) => end <= left);
			label.hidden = row < 0 || x < scale.left - 1 || x > scale.right + 1;
			if (label.hidden)
				continue;
			ends[row] = left + length;
			label.style.left = `${left}px`;
			label.style.top = `${row * 15}px`;
		}
		strip.style.height = `${15 * Math.max(1, ends.filter((end) => end > -Infinity).length)}px`;
	}

	function makeLabels() {
		const strip = el("div", { class: "mark-labels", "aria-hidden": "true" }, marks.map((mark) =>
			el("span", { class: `mark ${mark.kind}`, "data-t": mark.t }, mark.kind)));
		page.tip.attach(strip, (target) => {
			const mark = marks[[...strip.children].indexOf(target)];
			return mark && [`${mark.kind} at ${seconds(mark.t)}`, clock(mark.t, incident.opened_ms), mark.text];
		});
		const watch = () => {
			let width = 0;
			onWidth(strip, (w) => { width = w; placeLabels(strip, w); });
			labelStrips.push(() => { if (width) placeLabels(strip, width); });
		};
		return { strip, watch };
	}

	/** A group: its title, the labels of the marks, its plots below one another. */
	function makeGroup(group, into, index) {
		const labels = index < LABELLED_GROUPS ? makeLabels() : null;
		const made = group.plots.map((spec, i) => makePlot(spec, i === group.plots.length - 1));
		const node = el("div", { class: "plot-group" },
			el("h3", null, el("bdi", null, group.title),
				group.note && el("span", { class: "minor" }, ` ${group.note}`)),
			labels?.strip, made.map(({ figure }) => figure));
		node.style.order = index;
		into.append(node);
		labels?.watch();
		for (const { plot } of made)
			plot.watch();
	}

	/** Puts each group into the shorter one of two columns; on a narrow screen `order` makes one of them. */
	function makeColumns(groups, grid, firstIndex) {
		const columns = [0, 1].map(() => ({ node: el("div", { class: "plot-column" }), plots: 0 }));
		fill(grid, columns.map(({ node }) => node));
		groups.forEach((group, i) => {
			const column = columns[0].plots <= columns[1].plots ? columns[0] : columns[1];
			column.plots += group.plots.length;
			makeGroup(group, column.node, firstIndex + i);
		});
	}

	/** Draws the selected span into all plots. */
	function showSpan() {
		const span = page.span.get();
		for (const { u } of plots.filter((plot) => plot.u)) {
			const limit = (t) => Math.min(Math.max(u.valToPos(t / 1000, "x"), 0), u.over.clientWidth);
			const left = span ? limit(span.from) : 0;
			u.setSelect({ left, top: 0, width: span ? limit(span.to) - left : 0, height: u.over.clientHeight }, false);
		}
	}

	function showView() {
		const [min, max] = viewSeconds();
		for (const { u } of plots.filter((plot) => plot.u))
			u.setScale("x", { min, max });
		labelStrips.forEach((place) => place());
		// uPlot moves its scales after this turn; what is placed by them has to wait for that.
		queueMicrotask(showSpan);
	}

	function redrawColors() {
		colors = new Map();
		for (const { u } of plots.filter((plot) => plot.u))
			u.redraw(false, true);
	}

	function watchColors() {
		for (const query of ["(prefers-color-scheme: dark)", "print"])
			matchMedia(query).addEventListener("change", redrawColors);
	}

	/** All marks as a list, for who cannot see the lines, and because their texts are long. */
	function makeMarkList() {
		return el("details", { class: "mark-list" }, el("summary", null, `What happened: ${marks.length} marks`),
			el("ol", null, marks.map((mark) => el("li", null, el("span", { class: "time" }, seconds(mark.t)),
				" ", el("span", { class: "minor" }, clock(mark.t, incident.opened_ms)), " ",
				el("span", { class: `mark ${mark.kind}` }, mark.kind), " ", el("bdi", null, mark.text)))));
	}

	/** Disks beyond the busiest are made when somebody wants to see them. */
	function makeOthers(groups) {
		const grid = el("div", { class: "plot-grid" });
		const details = el("details", { class: "others" },
			el("summary", null, groups.length === 1 ? "One other disk" : `${groups.length} other disks`), grid);
		details.addEventListener("toggle", () => {
			if (details.open && !grid.firstChild)
				makeColumns(groups, grid, SHOWN_GROUPS);
		});
		return details;
	}

	function start(body) {
		const groups = page.series.groups();
		const shown = groups.slice(0, SHOWN_GROUPS);
		const grid = el("div", { class: "plot-grid" });
		fill(body, grid, groups.length > shown.length && makeOthers(groups.slice(shown.length)),
			marks.length > 0 && makeMarkList());
		makeColumns(shown, grid, 0);
		watchColors();
		page.span.onSpan(showSpan);
		page.span.onView(showView);
		page.span.onCursor(moveCursor);
		return groups.length > 0;
	}

	page.timeline = { start };
})();
