// SPDX-License-Identifier: GPL-2.0-or-later
//
// Sorting and filters of tables, and tables made of rows. Tables that the program wrote and those of the scripts are
// treated the same: what sorts is `data-value`, else the text.

(() => {
	"use strict";

	const { el, fill, newId } = page.dom;

	const LONG_STATEMENT = 500;
	const collator = new Intl.Collator("en", { numeric: true });

	/** The value of a cell: a number where the column has numbers, and null where it is not known. */
	function cellValue(row, column, isNumber) {
		const cell = row.cells[column];
		if (!isNumber)
			return cell.dataset.value ?? cell.textContent.trim();
		return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
	}

	/** Compares two values; what is not known comes last in both directions. */
	function compare(a, b, direction) {
		if (a === null || b === null)
			return (a === null) - (b === null);
		return direction * (typeof a === "number" ? a - b : collator.compare(a, b));
	}

	function sortBy(table, column, direction) {
		const header = table.tHead.rows[0].cells[column];
		const isNumber = header.classList.contains("num");
		const body = table.tBodies[0];
		const rows = [...body.rows].map((row) => ({ row, value: cellValue(row, column, isNumber) }));
		rows.sort((a, b) => compare(a.value, b.value, direction));
		body.append(...rows.map(({ row }) => row));
		for (const other of table.tHead.rows[0].cells)
			other.removeAttribute("aria-sort");
		header.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
	}

	/** Numbers begin with the largest, texts with A; a second time turns it round. */
	function onHeader(table, header) {
		const first = header.classList.contains("num") ? "descending" : "ascending";
		const other = first === "ascending" ? "descending" : "ascending";
		const next = header.getAttribute("aria-sort") === first ? other : first;
		sortBy(table, header.cellIndex, next === "ascending" ? 1 : -1);
	}

	function addSorting(table) {
		for (const header of table.tHead.rows[0].cells) {
			const button = el("button", { type: "button", class: "sort" }, header.textContent);
			button.addEventListener("click", () => onHeader(table, header));
			fill(header, button);
		}
	}

	/** Shows the rows that have all words of the filter and that `accepts` says yes to. */
	function applyFilter(table, text, status) {
		const words = text.toLowerCase().split(/\s+/).filter(Boolean);
		const accepts = table.acceptsRow || (() => true);
		let shown = 0;
		for (const row of table.tBodies[0].rows) {
			const content = row.textContent.toLowerCase();
			row.hidden = !accepts(row) || !words.every((word) => content.includes(word));
			shown += !row.hidden;
		}
		status.textContent = words.length ? `${shown} of ${table.tBodies[0].rows.length} rows` : "";
	}

	function makeFilter(table, name) {
		const input = el("input", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: "Filter" });
		const status = el("span", { class: "filter-status", role: "status" });
		table.refilter = () => applyFilter(table, input.value, status);
		input.addEventListener("input", table.refilter);
		return el("p", { class: "table-tools" },
			el("label", null, el("span", { class: "unseen" }, `Filter: ${name}`), input), status);
	}

	/** A long statement scrolls; who uses the keyboard has to reach it for that. */
	function limitStatements(table) {
		for (const code of table.querySelectorAll("code.sql"))
			if (code.textContent.length > LONG_STATEMENT) {
				code.classList.add("long");
				code.tabIndex = 0;
			}
	}

	/** Gives a table its buttons, its filter and the box in which it scrolls on a narrow screen. */
	function enhance(table) {
		const caption = table.caption;
		caption.id = caption.id || newId("caption");
		addSorting(table);
		limitStatements(table);
		const box = el("div", { class: "scroll", role: "region", tabindex: 0, "aria-labelledby": caption.id });
		const frame = el("div", { class: "table-frame" }, makeFilter(table, caption.textContent), box);
		table.replaceWith(frame);
		box.append(table);
		return frame;
	}

	/** A cell from {text, value, node, title}, or from a text. */
	function makeCell(cell, column) {
		const { text, value, node } = typeof cell === "object" && cell !== null ? cell : { text: cell };
		return el("td", { class: column.num ? "num" : null, "data-value": value }, node || text);
	}

	/** A table from columns {title, num} and rows of cells, ready for use. */
	function make(caption, columns, rows) {
		const head = el("tr", null, columns.map((column) =>
			el("th", { scope: "col", class: column.num ? "num" : null }, column.title)));
		const table = el("table", { class: "sortable" }, el("caption", null, caption), el("thead", null, head),
			el("tbody", null, rows.map((cells) => el("tr", null, cells.map((cell, i) => makeCell(cell, columns[i]))))));
		return { table, frame: enhance(table) };
	}

	/** The label for what a row stands on, as the program writes it. */
	const basis = (word) => el("span", { class: `basis ${word}` }, word);

	const text = (value) => ({ node: el("bdi", null, value || "-") });
	const path = (value) => ({ node: el("bdi", { class: "path" }, value || "-") });

	/** A cell with a number: format(value) is what is shown. */
	const num = (value, format) => ({ text: format(value), value });

	/** Process name with its number. */
	const process = (name, pid) => ({
		node: el("span", null, el("bdi", null, name || "-"),
			pid === null || pid === undefined ? null : el("span", { class: "minor" }, ` pid ${pid}`)),
	});

	function start() {
		for (const table of document.querySelectorAll("main table.sortable"))
			enhance(table);
	}

	page.tables = { start, make, basis, text, path, num, process };
})();
