// SPDX-License-Identifier: GPL-2.0-or-later
//
// Operations of threads over time: a lane for each thread, or for each process name and cause where there are too many
// threads. Causes differ by colour and by pattern.

(() => {
	"use strict";

	const { el, svg, fill, onWidth } = page.dom;
	const { duration, seconds, count, tail, head } = page.format;
	const { operations, operationsLeftOut, mostAtOnce, countThreads, statementText, diskName } = page.data;
	const { causes, causeName, causeColor } = page.series;

	const MOST_THREADS = 40;
	const MOST_LANES = 150;		// more than that nobody reads
	const LANE = 18;
	const GROUP = 30;
	const SLOTS = 240;
	const PATTERNS = 8;

	let grouped = false;
	let width = 0;
	let host;
	let more;				// says how many lanes there is no room for
	let focused = 0;		// index of the bar that the tab key reaches

	/** "mysqld 4711", "app@localhost 17", or "mysqld (16 threads)" where the record counts them together. */
	const laneName = (o) => (o.threads > 1 ? `${o.comm || "?"} (${o.threads} threads)` :
		`${o.comm || "?"} ${o.session ?? o.tid ?? o.pid ?? ""}`.trim());

	/** Lanes {name, cause, operations} by their keys. */
	function makeLanes() {
		const lanes = new Map();
		for (const o of operations) {
			const key = grouped ? `${o.comm}\u0000${o.cause}` : `${o.who}\u0000${o.comm}`;
			if (!lanes.has(key))
				lanes.set(key, { name: grouped ? o.comm || "?" : laneName(o), cause: o.cause, operations: [] });
			lanes.get(key).operations.push(o);
		}
		return lanes;
	}

	/** The lanes to draw: those that waited longest, threads in the order in which they began to wait. */
	function chooseLanes() {
		const lanes = [...makeLanes().values()];
		const begin = (lane) => lane.operations.reduce((t, o) => Math.min(t, o.t), Infinity);
		const together = (lane) => lane.operations.reduce((ms, o) => ms + o.threads * o.ms, 0);
		const longest = lanes.sort((a, b) => together(b) - together(a)).slice(0, MOST_LANES);
		const left = lanes.length - longest.length;
		more.textContent = [left && `Not shown: ${count(left, "lane")} with less time.`,
			operationsLeftOut && `${count(operationsLeftOut, "shorter operation")} of the record are not on this page.`,
		].filter(Boolean).join(" ");
		return grouped ? longest : longest.sort((a, b) => begin(a) - begin(b));
	}

	/** Lines, dots and crosses over the colour, so that causes can be told apart without it. */
	const PATTERN_PATHS = [
		"", "M0,8L8,0", "M4,0V8", "M0,4H8", "M0,0L8,8", "M2,2h2v2h-2z", "M0,8L8,0M0,0L8,8", "M0,2H8M0,6H8",
	];

	function makePattern(number) {
		return svg("pattern", { id: `cause-${number}`, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
			svg("rect", { class: `fill${number}`, width: 8, height: 8 }),
			svg("path", { class: "pattern-line", d: PATTERN_PATHS[number - 1] }));
	}

	const makePatterns = () =>
		svg("defs", null, Array.from({ length: PATTERNS }, (_, i) => makePattern(i + 1)));

	function describe(o) {
		const who = o.session !== null ? ` session ${o.session}` : o.tid !== null ? ` thread ${o.tid}` :
			o.threads > 1 ? `, ${o.threads} threads` : "";
		const took = o.isWait ? "had waited for at least" : o.stuck ? "had not returned after" : "took";
		return [`${o.comm || "?"}${who}: ${o.op} ${o.path}`.trim(), `${took} ${duration(o.ms)}, from ${seconds(o.t)}`,
			`waited for: ${causeName(o.cause)}${diskName(o.disk) ? `, ${diskName(o.disk)}` : ""}`];
	}

	function drawBar(o, index, scale, top) {
		const left = Math.max(scale(o.t), scale.left);
		const right = Math.min(scale(o.t + o.ms), scale.right);
		if (right < scale.left || left > scale.right)
			return null;
		return svg("rect", {
			class: o.stuck ? "bar stuck" : "bar", x: left, y: top + 3, width: Math.max(2, right - left),
			height: LANE - 6,
			fill: `url(#cause-${causeColor(o.cause)})`, role: "img", "aria-label": describe(o).join(", "),
			tabindex: index === focused ? 0 : -1, "data-o": o.index,
		});
	}

	function drawGroup(lane, index, scale, top) {
		const counts = mostAtOnce(lane.operations, scale, SLOTS);
		const most = counts.reduce((a, b) => Math.max(a, b), 1);
		const step = (scale.right - scale.left) / SLOTS;
		const height = GROUP - 6;
		const base = top + GROUP - 2;
		const steps = counts.map((n) => `V${(base - height * n / most).toFixed(1)}h${step.toFixed(3)}`).join("");
		const threads = countThreads(lane.operations);
		const label = `${lane.name}: ${count(threads, "thread")} waited for ${causeName(lane.cause)}, ` +
			`${count(lane.operations.length, "operation")}, at most ${most} at once`;
		return svg("path", {
			class: "bar group", d: `M${scale.left},${base}${steps}V${base}Z`,
			fill: `url(#cause-${causeColor(lane.cause)})`, role: "img",
			"aria-label": label, tabindex: index === focused ? 0 : -1,
		});
	}

	function drawName(lane, top, size, nameWidth) {
		const letters = Math.floor(nameWidth / 6.8);
		const threads = countThreads(lane.operations);
		const second = grouped && svg("text", { class: "second", x: 0, y: top + size - 5 },
			`${threads} × ${head(causeName(lane.cause), letters - 5)}`);
		return [svg("text", { x: 0, y: top + (grouped ? 13 : size - 5) }, tail(lane.name, letters)), second];
	}

	function draw() {
		if (!width)
			return;
		const lanes = chooseLanes();
		const size = grouped ? GROUP : LANE;
		const nameWidth = Math.min(190, width * 0.32);
		const scale = page.axis.timeScale(page.span.view(), nameWidth + 6, width - 10);
		const height = lanes.length * size;
		let index = 0;
		const bars = lanes.map((lane, i) => (grouped ? drawGroup(lane, i, scale, i * size) :
			lane.operations.map((o) => drawBar(o, index++, scale, i * size))));
		fill(host, svg("svg", {
			width, height: height + 20, viewBox: `0 0 ${width} ${height + 20}`, role: "group",
			"aria-label": `${count(lanes.length, grouped ? "group" : "thread")}; arrow keys go from bar to bar`,
		}, makePatterns(), page.axis.drawBefore(scale, 0, height), page.axis.drawTicks(scale, 0, height),
		svg("g", { class: "lane-names", "aria-hidden": "true" },
			lanes.map((lane, i) => drawName(lane, i * size, size, nameWidth))),
		page.axis.drawMarks(scale, 0, height), svg("g", null, bars), page.axis.drawSpan(scale, 0, height)));
		if (!host.querySelector('.bar[tabindex="0"]'))
			host.querySelector(".bar")?.setAttribute("tabindex", 0);
	}

	/** What the tip says: the bar's name, and the statement that the thread was running. */
	function explain(target) {
		if (!target.classList?.contains("bar"))
			return null;
		const o = operations[target.dataset.o];
		if (!o)
			return target.getAttribute("aria-label").split(": ");
		const statement = statementText(o.statement);
		return [...describe(o), statement && `statement: ${head(statement, 400)}`];
	}

	const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

	function onKey(event) {
		const bars = [...host.querySelectorAll(".bar")];
		const at = bars.indexOf(event.target);
		if (at < 0 || !(event.key in STEPS) || event.ctrlKey || event.altKey || event.metaKey)
			return;
		const next = bars[Math.min(Math.max(at + STEPS[event.key], 0), bars.length - 1)];
		bars[at].setAttribute("tabindex", -1);
		next.setAttribute("tabindex", 0);
		next.focus();
		event.preventDefault();
	}

	function makeLegend() {
		const key = (cause) => svg("svg", { width: 18, height: 12, "aria-hidden": "true" },
			svg("rect", { width: 18, height: 12, rx: 2, fill: `url(#cause-${causeColor(cause)})` }));
		return el("ul", { class: "cause-legend", "aria-label": "Causes" }, causes.map((cause) =>
			el("li", null, key(cause), el("bdi", null, causeName(cause)))));
	}

	function makeChooser() {
		const option = (value, label) => {
			const input = el("input", { type: "radio", name: "lane-kind", checked: value === grouped });
			input.addEventListener("change", () => { grouped = value; focused = 0; draw(); });
			return el("label", null, input, el("span", null, label));
		};
		return el("fieldset", { class: "segments" }, el("legend", { class: "unseen" }, "Lanes"),
			option(true, "By process and cause"), option(false, "Each thread"));
	}

	function start(body) {
		grouped = new Set(operations.map((o) => o.who)).size > MOST_THREADS;
		host = el("div", { class: "graphic lanes" });
		more = el("p", { class: "about" });
		fill(body, el("div", { class: "tools" }, makeChooser(), makeLegend()), host, more);
		host.addEventListener("keydown", onKey);
		page.tip.attach(host, explain);
		onWidth(host, (w) => { width = w; draw(); });
		page.span.onSpan(draw);
		page.span.onView(draw);
		return operations.length > 0;
	}

	page.lanes = { start };
})();
