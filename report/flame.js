// SPDX-License-Identifier: GPL-2.0-or-later
//
// Draws blocked time by stack as a flame graph: the width of a box is time, the box stands on what called it.

(() => {
	"use strict";

	const { el, svg, fill, onWidth } = page.dom;
	const { duration, percent, seconds } = page.format;
	const { make, text, num } = page.tables;

	const ROW = 18;
	const NARROWEST_NAME = 24;
	const NARROWEST = 0.7;
	const TOP = 10;

	const STATE_NAMES = {
		D: "waiting for I/O or a kernel lock (D)", S: "sleeping (S)", T: "stopped (T)", R: "waiting for a CPU (R)",
		t: "traced (t)", I: "idle (I)",
	};
	const SOURCE_NAMES = { offcpu: "All blocked time", operations: "Operations only" };
	const KIND_NAMES = {
		root: "", process: "process", user: "function of the program", kernel: "function of the kernel", none: "",
	};

	const state = { source: "", states: new Set(), root: null, zoom: null, search: "", width: 0, focus: null };
	const parts = {};		// elements that change
	let boxOf = new Map();	// node to box

	const shareOf = (node) => 100 * node.value / state.root.value;

	function describe(node) {
		const kind = KIND_NAMES[node.kind];
		const own = node.self > 0 && node.children.length ? `${duration(node.self)} of it in this function itself` : "";
		return [node.kind === "root" ? "All of it" : node.name, kind,
			`${duration(node.value)}, ${percent(shareOf(node))} of ${duration(state.root.value)}`, own];
	}

	const isMatch = (node) =>
		state.search !== "" && node.kind !== "root" && node.name.toLowerCase().includes(state.search);

	/** Places {node, x, width} of what is drawn: the way to the zoomed node at full width, and all above it. */
	function layOut() {
		const places = [];
		for (let node = state.zoom.parent; node; node = node.parent)
			places.push({ node, x: 0, width: state.width, outside: true });
		const add = (node, x, width) => {
			places.push({ node, x, width });
			for (const next of node.children) {
				const w = width * next.value / node.value;
				if (w >= NARROWEST)
					add(next, x, w);
				x += w;
			}
		};
		add(state.zoom, 0, state.width);
		return places;
	}

	/** The name of a box, cut off at its edge. It is whole in the document, as it is for who hears it. */
	function drawName(name, x, y, width) {
		return width > NARROWEST_NAME && svg("svg", { x, y, width: width - 4, height: ROW },
			svg("text", { x: 4, y: ROW - 5.5 }, name));
	}

	function drawBox({ node, x, width, outside }, height) {
		const y = height - (node.depth + 1) * ROW;
		const label = node.kind === "root" ? "All of it" : node.name;
		const group = svg("g", {
			class: `box ${node.kind}${isMatch(node) ? " match" : ""}${outside ? " outside" : ""}`, role: "button",
			tabindex: -1, "aria-label": describe(node).filter(Boolean).join(", "),
		}, svg("rect", { x, y, width: Math.max(width - 0.5, 0.5), height: ROW - 1, rx: 1.5 }),
		drawName(label, x, y, width));
		group.flameNode = node;
		boxOf.set(node, group);
		return group;
	}

	function draw() {
		if (!state.width || !state.root)
			return;
		boxOf = new Map();
		const hadFocus = parts.graphic.contains(document.activeElement);
		if (!state.root.value) {
			fill(parts.graphic, el("p", { class: "none" }, "No blocked time is known in this span."));
			return;
		}
		const places = layOut();
		const height = (places.reduce((most, { node }) => Math.max(most, node.depth), 0) + 1) * ROW;
		fill(parts.graphic, svg("svg", {
			width: state.width, height, viewBox: `0 0 ${state.width} ${height}`, role: "group",
			"aria-label": "Flame graph; arrow keys go from box to box, Enter zooms in, Escape zooms out",
		}, places.map((place) => drawBox(place, height))));
		focusBox(boxOf.has(state.focus) ? state.focus : state.zoom, hadFocus);
	}

	/** Makes a box the one that the tab key reaches, and moves the focus there if it was in the graphic. */
	function focusBox(node, move) {
		boxOf.get(state.focus)?.setAttribute("tabindex", -1);
		state.focus = node;
		const box = boxOf.get(node);
		box?.setAttribute("tabindex", 0);
		if (move)
			box?.focus();
	}

	function zoomTo(node) {
		state.zoom = node;
		state.focus = node;
		parts.back.disabled = node === state.root;
		showPath();
		draw();
	}

	function showPath() {
		const path = page.stacks.pathOf(state.zoom).map((node) => node.name);
		parts.path.textContent = path.length ? `${path.join(" › ")}: ${percent(shareOf(state.zoom))}` : "";
	}

	function widest(nodes) {
		return nodes.filter((node) => boxOf.has(node)).reduce((a, b) => (!a || b.value > a.value ? b : a), null);
	}

	function sibling(node, step) {
		const all = (node.parent?.children || []).filter((n) => boxOf.has(n));
		return all[all.indexOf(node) + step];
	}

	const MOVES = {
		ArrowUp: (node) => widest(node.children), ArrowDown: (node) => node.parent,
		ArrowLeft: (node) => sibling(node, -1), ArrowRight: (node) => sibling(node, 1), Home: () => state.root,
	};

	const nodeAt = (target) => target.closest?.(".box")?.flameNode;

	/** The nearest function below that has more time: zooming out to one with the same would change nothing. */
	function zoomOut() {
		let node = state.zoom.parent;
		while (node.parent && node.value === state.zoom.value)
			node = node.parent;
		zoomTo(node);
	}

	function onKey(event) {
		const node = nodeAt(event.target);
		if (!node || event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.key === "Enter" || event.key === " ")
			zoomTo(node);
		else if (event.key === "Escape" && state.zoom !== state.root)
			zoomOut();
		else if (MOVES[event.key])
			focusBox(MOVES[event.key](node) || node, true);
		else
			return;
		event.preventDefault();
	}

	function showMatches() {
		if (!state.search || !state.root.value) {
			parts.matches.textContent = "";
			return;
		}
		const ms = page.stacks.matched(state.root, state.search);
		const share = percent(100 * ms / state.root.value);
		parts.matches.textContent = ms ? `${share} matched, ${duration(ms)}` : "no match";
	}

	function onSearch() {
		state.search = parts.search.value.trim().toLowerCase();
		showMatches();
		draw();
	}

	function showTable() {
		const nodes = page.stacks.topStacks(state.root, TOP);
		const columns = [{ title: "Process" }, { title: "Stack, the innermost function first" },
			{ title: "Blocked", num: true }, { title: "Share", num: true }];
		const rows = nodes.map((node) => {
			const [process, ...functions] = page.stacks.pathOf(node).map((n) => n.name);
			const ms = 100 * node.self / state.root.value;
			return [text(process), text(functions.reverse().join(" < ")), num(node.self, duration), num(ms, percent)];
		});
		const title = `The ${nodes.length} stacks with most blocked time`;
		fill(parts.table, el("summary", null, title), nodes.length > 0 && make(title, columns, rows).frame);
	}

	function showInterval() {
		const windows = page.stacks.wholeWindows(state.source);
		parts.interval.textContent = windows ? `Blocked time was read for ${seconds(windows.from)} to ` +
			`${seconds(windows.to)}; of a window that is partly in the span, that part is counted.` : "";
	}

	/** Adds everything up anew, for another span, source or state, and stays where the reader was. */
	function rebuild() {
		const old = state.zoom;
		state.root = page.stacks.build(state.source, state.states);
		state.zoom = old ? page.stacks.findAgain(state.root, old) : state.root;
		state.focus = state.zoom;
		parts.back.disabled = state.zoom === state.root;
		showPath();
		showMatches();
		showTable();
		showInterval();
		draw();
	}

	function option(type, name, label, checked, onChange) {
		const input = el("input", { type, name, checked });
		input.addEventListener("change", () => onChange(input.checked));
		return el("label", null, input, el("span", null, label));
	}

	/**
	 * Threads that wait for work sleep too, and sleep longest. So where there are threads in state D those are shown
	 * first, and the others at a click.
	 */
	function chooseSource(source) {
		state.source = source;
		const states = page.stacks.statesOf(source);
		state.states = new Set(states.includes("D") ? ["D"] : states);
		const toggle = (name) => (on) => {
			state.states[on ? "add" : "delete"](name);
			rebuild();
		};
		fill(parts.states, states.length > 1 && [el("legend", { class: "unseen" }, "States of threads"),
			states.map((name) => option("checkbox", `state-${name}`, STATE_NAMES[name] || name, state.states.has(name),
				toggle(name)))]);
		parts.states.hidden = states.length < 2;
	}

	function makeSources(sources) {
		return sources.length > 1 && el("fieldset", { class: "segments" }, el("legend", { class: "unseen" }, "Stacks"),
			sources.map((source) => option("radio", "stack-source", SOURCE_NAMES[source], source === state.source,
				() => {
					state.zoom = null;
					chooseSource(source);
					rebuild();
				})));
	}

	function makeParts() {
		parts.graphic = el("div", { class: "graphic flame" });
		parts.search = el("input", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: "Search" });
		parts.matches = el("span", { class: "filter-status", role: "status" });
		parts.back = el("button", { type: "button", disabled: true }, "Zoom out");
		parts.path = el("p", { class: "flame-path" });
		parts.interval = el("p", { class: "about" });
		parts.states = el("fieldset", { class: "checks" });
		parts.table = el("details", { class: "top-stacks" });
	}

	function makeKey() {
		return el("p", { class: "flame-key" }, el("i", { class: "key process" }), "process ",
			el("i", { class: "key user" }), "program ", el("i", { class: "key kernel" }), "kernel");
	}

	function listen() {
		parts.search.addEventListener("input", onSearch);
		parts.back.addEventListener("click", zoomOut);
		parts.graphic.addEventListener("keydown", onKey);
		parts.graphic.addEventListener("click", (event) => {
			const node = nodeAt(event.target);
			if (node)
				zoomTo(node);
		});
		page.tip.attach(parts.graphic, (target) => {
			const node = nodeAt(target);
			return node ? describe(node) : null;
		});
		page.span.onSpan(rebuild);
	}

	function start(body) {
		const sources = page.stacks.sources();
		if (!sources.length)
			return false;
		makeParts();
		chooseSource(sources[0]);
		const search = el("label", null, el("span", { class: "unseen" }, "Search functions"), parts.search);
		fill(body, el("div", { class: "tools" }, makeSources(sources), search, parts.matches, parts.back, makeKey()),
			parts.states, parts.path, parts.interval, parts.graphic, parts.table);
		rebuild();
		listen();
		onWidth(parts.graphic, (width) => { state.width = width; draw(); });
		return true;
	}

	page.flame = { start };
})();
