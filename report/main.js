// SPDX-License-Identifier: GPL-2.0-or-later
//
// Starts everything and shows what was hidden. A part that fails stays hidden, and the others go on.

(() => {
	"use strict";

	const { byId } = page.dom;

	/** Shows a section and its link once start(body) says that there is something to see. */
	function startSection(id, part) {
		const section = byId(id);
		section.hidden = false;		// what draws needs to know how wide it is
		try {
			section.hidden = !part.start(section.querySelector(".body"));
		} catch (error) {
			section.hidden = true;
			console.error(`section ${id}:`, error);
		}
		document.querySelector(`.sections a[href="#${id}"]`).parentElement.hidden = section.hidden;
	}

	function startPart(name) {
		try {
			page[name].start();
		} catch (error) {
			console.error(`${name}:`, error);
		}
	}

	/** Lists that are closed on the screen to save room are open on paper, where nobody can open them. */
	function openForPrint() {
		const closed = () => document.querySelectorAll(".mark-list:not([open]), .top-stacks:not([open])");
		let opened = [];
		addEventListener("beforeprint", () => {
			opened = [...closed()];
			opened.forEach((details) => { details.open = true; });
		});
		addEventListener("afterprint", () => opened.forEach((details) => { details.open = false; }));
	}

	startPart("tables");
	startPart("loads");
	startPart("victims");
	startPart("strip");
	startSection("timeline", page.timeline);
	startSection("latency", page.heatmap);
	startSection("threads", page.lanes);
	startSection("stacks", page.flame);
	openForPrint();
	document.documentElement.classList.add("ready");
})();
