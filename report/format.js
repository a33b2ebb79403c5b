// SPDX-License-Identifier: GPL-2.0-or-later
//
// Numbers and texts for people.

(() => {
	"use strict";

	const NONE = "-";
	const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

	// Characters that nobody sees or that change the order of others; a path may have any of them.
	const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
	const NAMED = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };

	function escapeCharacter(c) {
		const hex = c.charCodeAt(0).toString(16);
		return NAMED[c] || (hex.length > 2 ? `\\u${hex.padStart(4, "0")}` : `\\x${hex.padStart(2, "0")}`);
	}

	/** A text on one line in which every character can be seen. */
	const visible = (text) => text.replace(INVISIBLE, escapeCharacter);

	/** A statement: its lines stay lines. */
	const visibleLines = (text) =>
		text.replace(INVISIBLE, (c) => (c === "\n" || c === "\t" ? c : escapeCharacter(c)));

	const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

	/** Three digits or so: 0.12, 9.1, 161, 12 300. */
	function number(value) {
		if (!known(value))
			return NONE;
		const size = Math.abs(value);
		if (size === 0 || Number.isInteger(value) && size < 1e4)
			return String(value);
		if (size >= 100)
			return Math.round(value).toLocaleString("en").replace(/,/g, "\u202f");
		return String(Number(value.toPrecision(2 + (size >= 10 ? 1 : 0))));
	}

	function duration(ms) {
		if (!known(ms))
			return NONE;
		const size = Math.abs(ms);
		if (size > 0 && size < 1)
			return `${number(ms * 1000)} us`;
		if (size < 1000)
			return `${number(ms)} ms`;
		if (size < 120e3)
			return `${(ms / 1000).toFixed(size < 10e3 ? 2 : 1)} s`;
		const whole = Math.round(ms / 1000);
		return `${Math.trunc(whole / 60)} min ${Math.abs(whole % 60)} s`;
	}

	function bytes(value) {
		if (!known(value))
			return NONE;
		let unit = 0;
		while (value >= 1024 && unit < UNITS.length - 1) {
			value /= 1024;
			unit++;
		}
		return `${unit ? value.toFixed(value < 100 ? 1 : 0) : value} ${UNITS[unit]}`;
	}

	/** A time since iostall was armed, in seconds. */
	const seconds = (ms) => `${(Math.round(ms / 100) / 10 + 0).toFixed(1)}\u00a0s`;

	const percent = (value) => (known(value) ? `${value < 10 ? number(value) : Math.round(value)} %` : NONE);

	/** "1 thread", "2 threads" */
	const count = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;

	/** The time of day of a time since the trigger, in UTC as everything in a record. */
	function clock(ms, openedMs) {
		return known(openedMs) ? new Date(openedMs + ms).toISOString().slice(11, 21) + " UTC" : "";
	}

	/** The end of a text that is too long: of a path the end tells most. */
	const tail = (text, length) => (text.length > length ? `…${text.slice(1 - length)}` : text);
	const head = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

	page.format = {
		NONE, visible, visibleLines, known, number, duration, bytes, seconds, percent, count, clock, tail, head,
	};
})();
