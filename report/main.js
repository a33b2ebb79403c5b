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

	/** What is closed or filtered on the screen to save room is there on paper, where nobody can open it. */
	function openForPrint() {
		const closed = () => document.querySelectorAll(".mark-list:not([open]), .top-stacks:not([open])");
		const hidden = () => document.querySelectorAll("table.sortable tr[hidden]");
		let opened = [];
		let shown = [];
		addEventListener("beforeprint", () => {
			opened = [...closed()];
			shown = [...hidden()];
			opened.forEach((details) => { details.open = true; });
			shown.forEach((row) => { row.hidden = false; });
		});
		addEventListener("afterprint", () => {
			opened.forEach((details) => { details.open = false; });
			shown.forEach((row) => { row.hidden = true; });
		});
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
