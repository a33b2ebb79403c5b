# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes docs/kernel-support.md from the reports of doctor and the coverage of a record under each kernel. With
# --arg check 1 it prints a line for each difference between the two instead.
#   $kernels  [{kernel, doctor: [lines of doctor --json], open: the first line of a record}, ...]

def cell: if . == null then "" else gsub("\\|"; "\\|") end;
def row: "| " + (map(cell) | join(" | ")) + " |";
def table($head): ($head | row), ($head | map("---") | row), (.[] | row);

# [{probe, backend, works, chosen, why}] of one kernel. In "load: Invalid argument; a hint" the reason is first.
def backends: [.doctor[] | select(.area == "probe") | (.name | split("/")) as $name
	| {probe: $name[0], backend: $name[1], works: (.result == "ok"),
	   chosen: (.detail | test("in use")), why: (.detail | split("; ")[0])}];

def differences: .kernel as $kernel | backends as $backends
	| ((.open.coverage // [])[]
	   | . as $path
	   | if .probe != null
	     then ($backends | map(select(.probe == $path.probe and .backend == $path.backend)) | .[0]) as $b
		| if $b == null then "\(.path): doctor does not know \(.probe)/\(.backend)"
		  elif $b.works and $b.chosen then empty
		  else "\(.path): the record has \(.probe)/\(.backend), of which doctor says \($b | tojson)" end
	     elif .reason // "" | length > 0 then empty
	     else "\(.path): neither a probe nor a reason" end),
	  (if .open.coverage | length > 0 then empty else "a record without coverage" end),
	  ($backends | group_by(.probe)[] | select(map(select(.works)) | length > 0)
	   | select(map(select(.chosen)) | length != 1)
	   | "doctor: \(.[0].probe) works, and \(map(select(.chosen)) | length) backends are in use")
	| "\($kernel): \(.)";

if $ARGS.named.check then $kernels[] | differences
else
	($kernels | map(.kernel)) as $names
	| ($kernels[0] | backends | map([.probe, .backend])) as $all
	| "# What works under which kernel",
	  "",
	  "`tests/vm/support` generates this page from what `iostall doctor` and a record say under each of",
	  "Debian's kernels; `make check-vm` fails when the page is out of date. Under 6.12-arm64 the program was built by a",
	  "cross compiler, and fewer live tests run: the paths of I/O, hangs, what was blocked before arming, and verdicts.",
	  "",
	  "A probe uses one backend, the one **in use**. The others that work are there for kernels that refuse",
	  "it. For a backend that does not work the table has the kernel's reason. If no backend of a probe works,",
	  "only the kinds of I/O that no other probe sees are missing from records.",
	  "",
	  "## Probes and their backends",
	  "",
	  ([$all[] | . as [$probe, $backend]
	    | ["\($probe)/\($backend)"] + [$kernels[] | backends[]
		| select(.probe == $probe and .backend == $backend)
		| if .chosen then "**in use**" elif .works then "works" else .why end]]
	   | table(["probe"] + $names)),
	  "",
	  "## Kinds of I/O, and the probe that sees each",
	  "",
	  "`coverage` in iostall-record(5) explains the names.",
	  "",
	  ([$kernels[0].open.coverage[].path | . as $path
	    | [$path] + [$kernels[] | .open.coverage[] | select(.path == $path)
		| if .probe then "\(.probe) (\(.backend))" else "not seen: \(.reason)" end]]
	   | table(["path"] + $names)),
	  "",
	  "## Who holds a lock",
	  "",
	  "The probe `wait` asks for the holder of the lock of a memory map or an inode, with the same two programs under each",
	  "of these kernels. It needs the names that the lock has since 5.8, and a kernel that is not a real-time kernel, whose",
	  "locks do not tell their owner. A writer is named under each of them, and so is a single reader, as a thread is that",
	  "populates a mapping, where its kernel functions could be read. Mutexes of the kernel are not asked about under any."
end
