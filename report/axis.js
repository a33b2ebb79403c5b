// SPDX-License-Identifier: GPL-2.0-or-later
//
// Time scale, ticks and marks of the graphics in SVG.

(() => {
	"use strict";

	const { svg } = page.dom;
	const { marks } = page.data;
	const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];

	/** A function from times to pixels, with its limits and its inverse. */
	function timeScale(view, left, right) {
		const perMs = (right - left) / (view.to - view.from);
		const scale = (t) => left + (t - view.from) * perMs;
		scale.inverse = (x) => view.from + (x - left) / perMs;
		return Object.assign(scale, { left, right, from: view.from, to: view.to });
	}

	/** Round seconds within a view, about one for each `spacing` pixels. */
	function ticks(scale, spacing = 70) {
		const wanted = Math.max(2, (scale.right - scale.left) / spacing);
		const length = (scale.to - scale.from) / 1000;
		const step = STEPS.find((s) => length / s <= wanted) || Math.ceil(length / wanted / 3600) * 3600;
		const found = [];
		for (let i = Math.ceil(scale.from / 1000 / step); i * step * 1000 <= scale.to; i++)
			found.push(i * step * 1000);
		return found;
	}

	const tickText = (t) => `${Number((t / 1000).toFixed(1))} s`;

	/** Texts near the ends stay within the graphic. */
	function anchorOf(scale, x) {
		if (x - scale.left < 16)
			return "start";
		return scale.right - x < 16 ? "end" : "middle";
	}

	/** Lines and texts of the ticks, between the heights top and bottom. */
	function drawTicks(scale, top, bottom) {
		return svg("g", { class: "axis", "aria-hidden": "true" }, ticks(scale).map((t) => [
			svg("line", { x1: scale(t), x2: scale(t), y1: top, y2: bottom }),
			svg("text", { x: scale(t), y: bottom + 12, "text-anchor": anchorOf(scale, scale(t)) }, tickText(t)),
		]));
	}

	/** The time before the trigger, shaded. */
	function drawBefore(scale, top, bottom) {
		const right = Math.min(scale(0), scale.right);
		if (right <= scale.left)
			return null;
		return svg("rect", { class: "before", x: scale.left, y: top, width: right - scale.left, height: bottom - top });
	}

	/** Vertical lines at what happened. */
	function drawMarks(scale, top, bottom) {
		const visible = marks.filter((mark) => mark.t >= scale.from && mark.t <= scale.to);
		return svg("g", { class: "marks-lines", "aria-hidden": "true" }, visible.map((mark) =>
			svg("line", { class: mark.kind, x1: scale(mark.t), x2: scale(mark.t), y1: top, y2: bottom })));
	}

	/** What is outside of the selected span, dimmed. */
	function drawSpan(scale, top, bottom) {
		const span = page.span.get();
		if (!span)
			return null;
		const limit = (t) => Math.min(Math.max(scale(t), scale.left), scale.right);
		const a = limit(span.from);
		const b = limit(span.to);
		const side = (x, to) => svg("rect", { x, y: top, width: Math.max(0, to - x), height: bottom - top });
		return svg("g", { class: "dimmed", "aria-hidden": "true" }, side(scale.left, a), side(b, scale.right));
	}

	page.axis = { timeScale, drawTicks, drawBefore, drawMarks, drawSpan, tickText };
})();
