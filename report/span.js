// SPDX-License-Identifier: GPL-2.0-or-later
//
// The selected time span, the visible one and the cursor, in milliseconds since iostall was armed. Who draws something that
// depends on them subscribes here and never asks another part of the page.

(() => {
	"use strict";

	const { bounds } = page.data;
	const SHORTEST = 50;

	// At first as much as was after the trigger, and half of that before it: a minute without anything tells little.
	const first = { from: Math.max(bounds.from, Math.min(-10e3, -bounds.to / 2)), to: bounds.to };

	let span = null;
	let view = { ...first };
	const subscribers = { span: [], view: [], cursor: [] };

	function notify(what, value) {
		for (const tell of subscribers[what])
			tell(value);
	}

	const clamp = (t) => Math.min(Math.max(t, bounds.from), bounds.to);

	/** Two times in order, within the bounds and not too short; null when nothing of it is within them. */
	function normalise(a, b) {
		const from = clamp(Math.min(a, b));
		const to = clamp(Math.max(a, b));
		return Number.isFinite(from) && to - from >= SHORTEST ? { from, to } : null;
	}

	function set(a, b) {
		const next = normalise(a, b);
		if (next && (!span || next.from !== span.from || next.to !== span.to)) {
			span = next;
			notify("span", span);
		}
		return Boolean(next);
	}

	function clear() {
		if (!span)
			return;
		span = null;
		notify("span", null);
	}

	function setView(from, to) {
		view = normalise(from, to) || view;
		notify("view", view);
	}

	/** How much of [from, to] is in the span; all of it when there is none. */
	function overlap(from, to) {
		const { from: a, to: b } = span || { from: -Infinity, to: Infinity };
		return Math.max(0, Math.min(to, b) - Math.max(from, a));
	}

	page.span = {
		set, clear, setView, overlap, clamp,
		get: () => span,
		view: () => view,
		showAll: () => setView(bounds.from, bounds.to),
		isZoomed: () => view.from > bounds.from || view.to < bounds.to,
		/** Tells where the mouse is; null when it is nowhere. */
		point: (t) => notify("cursor", t),
		onSpan: (tell) => subscribers.span.push(tell),
		onView: (tell) => subscribers.view.push(tell),
		onCursor: (tell) => subscribers.cursor.push(tell),
	};
})();
