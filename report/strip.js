// SPDX-License-Identifier: GPL-2.0-or-later
//
// The bar at the top: the whole incident as a strip of blocked threads, in which a span is selected by mouse or
// keyboard; the same span as two numbers; and in words.

(() => {
	"use strict";

	const { el, svg, fill, onWidth, byId, setAttributes } = page.dom;
	const { seconds, clock, count } = page.format;
	const { bounds, operations, mostAtOnce, incident, samples } = page.data;
	const HEIGHT = 44;
	const BASE = HEIGHT - 15;	// the ticks are below it
	const STEPS = 300;

	let strip;
	let width = 0;
	let cursor = 0;
	let anchor = null;		// where a selection by keyboard or mouse began
	let dragging = false;

	const blocked = mostAtOnce(operations, bounds, STEPS + 1);
	const most = blocked.reduce((a, b) => Math.max(a, b), 1);

	const blockedAt = (t) =>
		blocked[Math.min(STEPS, Math.floor((t - bounds.from) / (bounds.to - bounds.from) * (STEPS + 1)))] || 0;
	const scaleNow = () => page.axis.timeScale(bounds, 0, width);

	function areaPath(scale) {
		const top = (n) => (BASE - 2) * (1 - n / most) + 2;
		const points = blocked.map((n, i) =>
			`${scale(bounds.from + i * (bounds.to - bounds.from) / STEPS).toFixed(1)},${top(n).toFixed(1)}`);
		return `M0,${BASE}L${points.join("L")}L${width},${BASE}Z`;
	}

	function drawSelection(scale) {
		const span = dragging ? { from: Math.min(anchor, cursor), to: Math.max(anchor, cursor) } : page.span.get();
		if (!span)
			return null;
		return svg("rect", {
			class: "selection", x: scale(span.from), y: 0.5, width: Math.max(1, scale(span.to) - scale(span.from)),
			height: BASE - 1,
		});
	}

	/** What part of the incident the plots show, when they do not show all of it. */
	function drawView(scale) {
		const view = page.span.view();
		if (!page.span.isZoomed())
			return null;
		return svg("path", { class: "view", d: `M${scale(view.from)},${BASE}H${scale(view.to)}` });
	}

	function draw() {
		const scale = scaleNow();
		fill(strip, svg("svg", { width, height: HEIGHT, "aria-hidden": "true", focusable: "false" },
			page.axis.drawBefore(scale, 0, BASE), svg("path", { class: "area", d: areaPath(scale) }),
			page.axis.drawTicks(scale, BASE - 3, BASE), page.axis.drawMarks(scale, 0, BASE),
			drawSelection(scale), drawView(scale),
			svg("line", { class: "cursor", x1: scale(cursor), x2: scale(cursor), y1: 0, y2: BASE })));
		setAttributes(strip, {
			"aria-valuenow": (cursor / 1000).toFixed(1),
			"aria-valuetext": `${seconds(cursor)}, ${clock(cursor, incident.opened_ms)}, ` +
				`${count(blockedAt(cursor), "operation")} under way`,
		});
	}

	/** One sample, or a hundredth of everything where there are none. */
	function keyStep() {
		const interval = samples.interval_ms?.find((ms) => ms > 0);
		return interval || (bounds.to - bounds.from) / 100;
	}

	const MOVES = {
		ArrowLeft: () => cursor - keyStep(), ArrowRight: () => cursor + keyStep(),
		PageDown: () => cursor - 10 * keyStep(), PageUp: () => cursor + 10 * keyStep(),
		Home: () => bounds.from, End: () => bounds.to,
	};

	function moveByKey(event) {
		const target = page.span.clamp(MOVES[event.key]());
		if (event.shiftKey) {
			anchor = anchor ?? cursor;
			cursor = target;
			if (!page.span.set(anchor, cursor))
				page.span.clear();
		} else {
			anchor = null;
			cursor = target;
		}
		page.span.point(cursor);
		draw();
	}

	function onKey(event) {
		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (MOVES[event.key])
			moveByKey(event);
		else if (event.key === "Escape" && page.span.get())
			clear();
		else if (event.key === "Escape")
			page.span.showAll();
		else if (event.key === "Enter")
			zoomIn();
		else
			return;
		event.preventDefault();
	}

	function clear() {
		anchor = null;
		page.span.clear();
	}

	function zoomIn() {
		const span = page.span.get();
		if (span)
			page.span.setView(span.from, span.to);
	}

	const timeOf = (event) => page.span.clamp(scaleNow().inverse(event.clientX - strip.getBoundingClientRect().left));

	function onPointerDown(event) {
		if (event.button !== 0)
			return;
		strip.setPointerCapture(event.pointerId);
		anchor = cursor = timeOf(event);
		dragging = true;
		draw();
	}

	function onPointerMove(event) {
		if (!dragging)
			return;
		cursor = timeOf(event);
		page.span.point(cursor);
		draw();
	}

	function onPointerUp() {
		if (!dragging)
			return;
		dragging = false;
		if (!page.span.set(anchor, cursor))
			page.span.clear();
		anchor = null;
		draw();
	}

	/** The page is scrolled instead. */
	function onPointerCancel() {
		dragging = false;
		anchor = null;
		draw();
	}

	function describe(span) {
		const { from, to } = span || bounds;
		return `${span ? "Span" : "Whole incident,"} ${seconds(from)} to ${seconds(to)}`;
	}

	/** Shows the span in words and numbers. A number that is being typed is left alone. */
	function showSpan(span) {
		byId("span-status").textContent = describe(span);
		byId("span-from").value = span ? Number((span.from / 1000).toFixed(3)) : "";
		byId("span-to").value = span ? Number((span.to / 1000).toFixed(3)) : "";
		byId("span-clear").disabled = byId("span-zoom").disabled = !span;
		byId("span").classList.toggle("selected", Boolean(span));
	}

	/** What was typed; an empty field is the begin or end of the incident. */
	function onSubmit(event) {
		event.preventDefault();
		const value = (id, otherwise) => {
			const text = byId(id).value;
			return text === "" ? otherwise : Number(text) * 1000;
		};
		if (!page.span.set(value("span-from", bounds.from), value("span-to", bounds.to)))
			byId("span-status").textContent = "That span has no time of the incident in it";
		if (!document.activeElement.offsetParent)
			strip.focus();		// a small screen has no room for the numbers beside a span
	}

	function makeStrip() {
		strip = el("div", {
			class: "strip-slider", role: "slider", tabindex: 0, "aria-label": "Cursor of the timeline",
			"aria-valuemin": (bounds.from / 1000).toFixed(1), "aria-valuemax": (bounds.to / 1000).toFixed(1),
			"aria-describedby": "span-status",
		});
		strip.addEventListener("keydown", onKey);
		strip.addEventListener("pointerdown", onPointerDown);
		strip.addEventListener("pointermove", onPointerMove);
		strip.addEventListener("pointerup", onPointerUp);
		strip.addEventListener("pointercancel", onPointerCancel);
	}

	function start() {
		makeStrip();
		byId("span-strip").append(strip);
		byId("span").hidden = false;
		byId("span-form").addEventListener("submit", onSubmit);
		byId("span-clear").addEventListener("click", () => { clear(); strip.focus(); });
		byId("span-zoom").addEventListener("click", zoomIn);
		byId("span-all").addEventListener("click", page.span.showAll);
		page.span.onSpan((span) => { showSpan(span); draw(); });
		const showView = () => { byId("span-all").disabled = !page.span.isZoomed(); draw(); };
		page.span.onView(showView);
		page.span.onCursor((t) => {
			if (t !== null && t !== cursor && !dragging) {
				cursor = t;
				draw();
			}
		});
		showSpan(null);
		onWidth(strip, (w) => { width = w; showView(); });
	}

	page.strip = { start };
})();
