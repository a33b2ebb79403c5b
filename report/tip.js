// SPDX-License-Identifier: GPL-2.0-or-later
//
// The box that explains what the mouse or the focus is on. It repeats what the name of the element says to a screen
// reader, so it is hidden from those.

(() => {
	"use strict";

	const { el, fill } = page.dom;
	const GAP = 12;

	const box = el("div", { class: "tip", "aria-hidden": "true", hidden: true });

	function place(x, y) {
		const { offsetWidth: width, offsetHeight: height } = box;
		const left = Math.max(4, Math.min(x + GAP, innerWidth - width - 4));
		const above = y + GAP + height > innerHeight;
		box.style.left = `${left}px`;
		box.style.top = `${Math.max(4, above ? y - height - GAP : y + GAP)}px`;
	}

	/** Shows lines of text; the first one is the title. */
	function show(lines, x, y) {
		fill(box, lines.filter(Boolean).map((line, i) => el(i ? "p" : "strong", null, line)));
		box.hidden = false;
		place(x, y);
	}

	const hide = () => { box.hidden = true; };

	function showAt(element, lines) {
		const rect = element.getBoundingClientRect();
		show(lines, rect.left + Math.min(rect.width / 2, 200), rect.bottom - GAP / 2);
	}

	/**
	 * Explains the parts of a graphic. linesOf(element) gives the lines for an element below `root`, or null for one
	 * that has nothing to say.
	 */
	function attach(root, linesOf) {
		root.addEventListener("pointermove", (event) => {
			const lines = linesOf(event.target);
			if (lines)
				show(lines, event.clientX, event.clientY);
			else
				hide();
		});
		root.addEventListener("pointerleave", hide);
		root.addEventListener("focusin", (event) => {
			const lines = event.target.matches(":focus-visible") ? linesOf(event.target) : null;
			if (lines)
				showAt(event.target, lines);
		});
		root.addEventListener("focusout", hide);
	}

	document.addEventListener("keydown", (event) => {
		if (event.key === "Escape")
			hide();
	});
	addEventListener("scroll", hide, { passive: true });
	document.body.append(box);

	page.tip = { attach, hide };
})();
