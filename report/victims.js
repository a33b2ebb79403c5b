// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who waited in a span: operations added up by process, operation, file and cause, each counted for as long as it was
// in the span.

(() => {
	"use strict";

	const { el, fill, byId } = page.dom;
	const { count, duration, number, seconds } = page.format;
	const { operations, operationsLeftOut, countThreads, diskName } = page.data;
	const { make, text, path, num, process } = page.tables;

	const COLUMNS = [
		{ title: "Who" }, { title: "Waited for" }, { title: "Together", num: true },
		{ title: "Longest", num: true }, { title: "Threads", num: true }, { title: "Operations", num: true },
		{ title: "Operation" }, { title: "File" },
	];

	const causeOf = (o) => [o.cause || "not known", diskName(o.disk)].filter(Boolean).join(", ");

	/** Groups of operations in the span, the longest time together first. */
	function inSpan() {
		const groups = new Map();
		for (const o of operations) {
			const ms = page.span.overlap(o.t, o.t + o.ms);
			if (ms <= 0)
				continue;
			const key = [o.comm, o.pid, o.op, o.path, causeOf(o)].join("\u0000");
			if (!groups.has(key))
				groups.set(key, {
					...o, cause: causeOf(o), of: [], count: 0, together: 0, longest: 0,
				});
			const group = groups.get(key);
			group.of.push(o);
			group.count += o.threads;
			group.together += o.threads * ms;
			group.longest = Math.max(group.longest, ms);
		}
		return [...groups.values()].sort((a, b) => b.together - a.together);
	}

	const makeRow = (g) => [process(g.comm, g.pid), text(g.cause), num(g.together, duration), num(g.longest, duration),
		num(countThreads(g.of), number), num(g.count, number), g.op, path(g.path)];

	/** The page has the longest operations of a large record. */
	const leftOut = () =>
		(operationsLeftOut ? ` ${count(operationsLeftOut, "shorter operation")} of the record are not on this page.` : "");

	function makeTable(span) {
		const groups = inSpan();
		if (!groups.length)
			return el("p", { class: "none" }, `No operation of this page was under way in this span.${leftOut()}`);
		const caption = `Operations from ${seconds(span.from)} to ${seconds(span.to)}`;
		const { frame } = make(caption, COLUMNS, groups.map(makeRow));
		frame.prepend(el("p", { class: "about" }, 
			`Each operation counts for as long as it was in the span.${leftOut()}`));
		return frame;
	}

	function start() {
		const whole = byId("victims").querySelector(".whole");
		const part = el("div", { class: "in-span", hidden: true });
		whole.after(part);
		page.span.onSpan((span) => {
			whole.hidden = Boolean(span);
			part.hidden = !span;
			fill(part, span ? makeTable(span) : null);
		});
	}

	page.victims = { start, inSpan };
})();
