// SPDX-License-Identifier: GPL-2.0-or-later
//
// Adds up blocked time as a tree: the processes, above each the functions of its program, above those the functions of
// the kernel. Nothing here draws.

(() => {
	"use strict";

	const { offcpu, operations } = page.data;

	const SOURCES = {
		offcpu: offcpu.map((o) => ({
			process: o.process || o.comm || "?", pid: o.pid, state: o.state, from: o.from, to: o.to, ms: o.ms,
			user: o.user, kernel: o.kernel, cause: "",
		})),
		operations: operations.map((o) => ({
			process: o.comm || "?", pid: o.pid, state: "", from: o.t, to: o.t + o.ms, ms: o.threads * o.ms,
			user: [], kernel: o.stack, cause: o.cause,
		})),
	};

	/** Which sources have anything, the better one first. */
	const sources = () => Object.keys(SOURCES).filter((name) => SOURCES[name].length);

	/** States in which threads of a source were off the CPU, most time first. */
	function statesOf(source) {
		const together = new Map();
		for (const { state, ms } of SOURCES[source])
			if (state)
				together.set(state, (together.get(state) || 0) + ms);
		return [...together.keys()].sort((a, b) => together.get(b) - together.get(a));
	}

	/** The part of the time that is in the span. Within a window it is taken to be spread evenly. */
	function timeInSpan(entry) {
		const length = entry.to - entry.from;
		return length > 0 ? entry.ms * page.span.overlap(entry.from, entry.to) / length : entry.ms;
	}

	function child(node, name, kind) {
		const key = `${kind}\u0000${name}`;
		if (!node.index.has(key))
			node.index.set(key, makeNode(name, kind, node));
		return node.index.get(key);
	}

	function makeNode(name, kind, parent) {
		const depth = parent ? parent.depth + 1 : 0;
		return { name, kind, parent, depth, value: 0, self: 0, index: new Map(), children: [] };
	}

	const noStack = (entry) => (entry.cause ? `no stack, waited for ${entry.cause}` : "no stack");

	function addEntry(root, entry, ms) {
		const path = [
			[entry.pid === null ? entry.process : `${entry.process} [${entry.pid}]`, "process"],
			...entry.user.map((name) => [name, "user"]), ...entry.kernel.map((name) => [name, "kernel"]),
		];
		if (path.length === 1)
			path.push([noStack(entry), "none"]);
		let node = root;
		root.value += ms;
		for (const [name, kind] of path) {
			node = child(node, name, kind);
			node.value += ms;
		}
		node.self += ms;
	}

	/** Children in a fixed order, so that a box stays where it was when the span changes. */
	function sortChildren(node) {
		node.children = [...node.index.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
		node.children.forEach(sortChildren);
	}

	/** The tree of a source in the selected span, of threads in the given states. */
	function build(source, states) {
		const root = makeNode("all", "root", null);
		for (const entry of SOURCES[source]) {
			const ms = entry.state && !states.has(entry.state) ? 0 : timeInSpan(entry);
			if (ms > 0)
				addEntry(root, entry, ms);
		}
		sortChildren(root);
		return root;
	}

	function* walk(node) {
		yield node;
		for (const next of node.children)
			yield* walk(next);
	}

	/** Nodes from below the root to a node. */
	function pathOf(node) {
		const path = [];
		for (; node.parent; node = node.parent)
			path.unshift(node);
		return path;
	}

	/** The node of another tree that stands where this one stood, or the nearest one below it. */
	function findAgain(root, node) {
		let found = root;
		for (const { name, kind } of pathOf(node)) {
			const next = found.children.find((c) => c.name === name && c.kind === kind);
			if (!next)
				break;
			found = next;
		}
		return found;
	}

	/** Stacks that end in a node, most time first. */
	function topStacks(root, number) {
		return [...walk(root)].filter((node) => node.self > 0).sort((a, b) => b.self - a.self).slice(0, number);
	}

	/** Time of the nodes whose name has a text in it; those above a match count once. */
	function matched(node, text) {
		if (node.name.toLowerCase().includes(text) && node.kind !== "root")
			return node.value;
		return node.children.reduce((sum, c) => sum + matched(c, text), 0);
	}

	/** The interval that is known of when windows are only partly in the span; null when all are whole. */
	function wholeWindows(source) {
		const span = page.span.get();
		if (!span || source !== "offcpu")
			return null;
		const hit = SOURCES.offcpu.filter((e) => page.span.overlap(e.from, e.to) > 0);
		if (!hit.length || !hit.some((e) => e.from < span.from || e.to > span.to))
			return null;
		return { from: hit.reduce((a, e) => Math.min(a, e.from), Infinity),
			to: hit.reduce((a, e) => Math.max(a, e.to), -Infinity) };
	}

	page.stacks = { sources, statesOf, build, pathOf, findAgain, topStacks, matched, wholeWindows };
})();
