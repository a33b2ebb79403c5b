#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
#
# drop-lines.pl <BTF.ext >BTF.ext: the same section of a BPF object without lines of source. Only the verifier's log shows
# them; of functions and of what is relocated on load nothing is lost.
use strict;
use warnings;

# struct btf_ext_header of libbpf, in the byte order of this machine; offsets count from its end.
my $HEADER = 'S C C L7';

binmode STDIN;
binmode STDOUT;
my $section = do { local $/ = undef; <STDIN> };
my ($magic, $version, $flags, $header_len, $functions, $functions_len, $lines, $lines_len, $relocations, $relocations_len) =
	unpack($HEADER, $section);
die "drop-lines: this is not BTF.ext of this machine's byte order\n"
	unless defined $relocations_len && $magic == 0xeb9f && $header_len == length(pack($HEADER, (0) x 10));
print pack($HEADER, $magic, $version, $flags, $header_len, 0, $functions_len, $functions_len, 0, $functions_len, $relocations_len),
	substr($section, $header_len + $functions, $functions_len),
	substr($section, $header_len + $relocations, $relocations_len);
