// SPDX-License-Identifier: GPL-2.0-or-later
//
// Makes elements. Texts of a record are written by whoever runs programs on the host, so they only ever become text
// nodes or values of attributes that cannot run anything.

const page = {};

(() => {
	"use strict";

	const SVG = "http://www.w3.org/2000/svg";
	const PAPER_WIDTH = 680;	// what A4 and Letter have within their margins
	const UNSAFE = /^(on|style$|src|href$|xlink|formaction$|action$)/;

	/** Sets attributes; null and false leave one out, true sets it without a value. */
	function setAttributes(node, attributes) {
		for (const [name, value] of Object.entries(attributes || {})) {
			if (UNSAFE.test(name))
				throw new Error(`attribute ${name} is not for this`);
			if (value === null || value === undefined || value === false)
				continue;
			node.setAttribute(name, value === true ? "" : String(value));
		}
		return node;
	}

	/** Appends nodes, and anything else as text. */
	function append(node, children) {
		for (const child of children.flat(Infinity)) {
			if (child === null || child === undefined || child === false)
				continue;
			node.append(child instanceof Node ? child : document.createTextNode(String(child)));
		}
		return node;
	}

	/** An HTML element: el("p", {class: "about"}, "text", otherNode). */
	function el(tag, attributes, ...children) {
		return append(setAttributes(document.createElement(tag), attributes), children);
	}

	/** The same for SVG. */
	function svg(tag, attributes, ...children) {
		return append(setAttributes(document.createElementNS(SVG, tag), attributes), children);
	}

	/** Puts children in place of all that a node has. */
	function fill(node, ...children) {
		node.replaceChildren();
		return append(node, children);
	}

	/** Calls draw(width) now and whenever the width of the node changes, also to that of paper. */
	function onWidth(node, draw) {
		let last = 0;
		addEventListener("beforeprint", () => { if (last) draw(PAPER_WIDTH); });
		addEventListener("afterprint", () => { if (last) draw(last); });
		const check = () => {
			const width = Math.floor(node.clientWidth);
			if (width > 0 && width !== last) {
				last = width;
				draw(width);
			}
		};
		new ResizeObserver(check).observe(node);
		check();
	}

	let ids = 0;

	/** An id that nothing else on the page has. */
	const newId = (prefix) => `${prefix}-${++ids}`;

	page.dom = { el, svg, fill, setAttributes, onWidth, newId, byId: (id) => document.getElementById(id) };
})();
