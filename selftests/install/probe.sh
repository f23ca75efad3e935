#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Tests scripts/probe on made-up kernel build directories. Prints TAP.
# shellcheck disable=SC2317 # functions are called by their names
. "$(dirname "$0")/../../scripts/lib.sh"
. "$(dirname "$0")/../../scripts/tap.sh"
usage "usage: selftests/install/probe.sh

Makes build directories that lack one thing each, and tools that only print their version. The probe must name what is
missing, with the reason, and nothing else." "${1:-}"

unset LLVM CC RUSTC BINDGEN
work=$(mktemp -d "${TMPDIR:-/tmp}/rpmu-probe.XXXXXX")
trap 'rm -rf "$work"' EXIT
kdir=$work/kdir said=$work/said

# tool NAME TEXT: creates a program that prints TEXT.
tool() { printf '#!/bin/sh\necho "%s"\n' "$2" >"$work/bin/$1" && chmod +x "$work/bin/$1"; }

# fresh: creates a complete build directory, and its tools.
fresh() {
	local program
	rm -rf "${work:?}"/{kdir,bin}
	mkdir -p "$kdir"/{include/config,rust} "$work/bin"
	touch "$kdir/Makefile" "$kdir/rust/libkernel.rmeta"
	echo '0x0 printk vmlinux EXPORT_SYMBOL' >"$kdir/Module.symvers"
	echo 7.3.4+deb13-amd64 >"$kdir/include/config/kernel.release"
	printf 'CONFIG_%s\n' RUST=y 'RUSTC_VERSION_TEXT="rustc 1.85.1 (4eb 2025-03-15) (from a tarball)"' \
		'BINDGEN_VERSION_TEXT="bindgen 0.71.1"' 'CC_VERSION_TEXT="gcc-14 (Debian 14.2.0-19) 14.2.0"' \
		DEBUG_INFO_BTF=y KPROBES=y KALLSYMS_ALL=y >"$kdir/include/config/auto.conf"
	tool rustc 'rustc 1.85.1 (4eb 2025-03-15) (from a tarball)'
	tool bindgen 'bindgen 0.71.1'
	tool gcc-14 'gcc-14'
	for program in bash sh sed grep head sort tr cat; do
		ln -s "$(command -v "$program")" "$work/bin"
	done
}

because() { sed 's/^/# /' "$said"; }

probe() { PATH=$work/bin "$top/scripts/probe" "$@" >"$said" 2>&1; }

lacks_nothing() { fresh && probe "$kdir" && [[ ! -s $said ]]; }

# finds WORDS COMMAND…: after COMMAND, the probe fails with one line, which contains WORDS.
finds() {
	local words=$1
	shift
	fresh
	"$@"
	! probe "$kdir" && [[ $(wc -l <"$said") == 1 ]] && grep -q "^rpmu: missing: .*$words" "$said"
}

# notes WORDS COMMAND…: after COMMAND, the probe succeeds with one line, which contains WORDS.
notes() {
	local words=$1
	shift
	fresh
	"$@"
	probe "$kdir" && [[ $(wc -l <"$said") == 1 ]] && grep -q "^rpmu: note: .*$words" "$said"
}

without() { sed -i "/CONFIG_$1=/d" "$kdir/include/config/auto.conf"; }
has_vmlinux() { touch "$kdir/vmlinux" && echo CONFIG_DEBUG_INFO_BTF_MODULES=y >>"$kdir/include/config/auto.conf"; }
older() { release "$1" && rm "$kdir/rust/libkernel.rmeta"; }
release() { echo "$1" >"$kdir/include/config/kernel.release"; }

newer() {
	fresh
	release "$1"
	probe "$kdir" && [[ ! -s $said ]]
}

has_pahole() {
	fresh
	has_vmlinux
	tool pahole v1.30
	probe "$kdir" && [[ ! -s $said ]]
}

needs_no_metadata() {
	fresh
	rm "$kdir/rust/libkernel.rmeta"
	has_vmlinux
	probe --from-source "$kdir"
}

# names LLVM COMPILER: for a kernel that clang built, the probe requires the compiler that LLVM=… selects, until it
# exists.
names() {
	fresh
	sed -i 's/^CONFIG_CC_VERSION_TEXT=.*/CONFIG_CC_VERSION_TEXT="Debian clang version 19.1.7"/' "$kdir/include/config/auto.conf"
	! LLVM=$1 probe "$kdir" && grep -q "^rpmu: missing: $2, the C compiler" "$said" || return
	tool "${2##*/}" "$2"
	LLVM=$1 probe "$kdir" && [[ ! -s $said ]]
}

# chooses OPTIONS COMMAND…: after COMMAND, in a build directory of clang's and lld's, the probe passes OPTIONS to make.
chooses() {
	local expected=$1
	shift
	fresh
	sed -i 's/^CONFIG_CC_VERSION_TEXT=.*/CONFIG_CC_VERSION_TEXT="Debian clang version 19.1.7 (3)"/' "$kdir/include/config/auto.conf"
	echo CONFIG_LD_IS_LLD=y >>"$kdir/include/config/auto.conf"
	"$@"
	probe --tools "$kdir" && [[ $(paste -sd ' ' "$said") == "$expected" ]]
}
gcc() { sed -i "s/^CONFIG_CC_VERSION_TEXT=.*/CONFIG_CC_VERSION_TEXT=\"$1 (Debian 14.2.0-19) 14.2.0\"/" "$kdir/include/config/auto.conf"; }
two_clangs() { tool clang 'Debian clang version 17.0.6' && tool clang-19 'Debian clang version 19.1.7 (3)'; }

uses_others() {
	LLVM=-20 RUSTC=/opt/rustc BINDGEN=/opt/bindgen chooses 'LLVM=-20 RUSTC=/opt/rustc BINDGEN=/opt/bindgen' true &&
		CC='ccache gcc-14' chooses 'CC=ccache gcc-14' tool ccache '' && CC='ccache gcc-14' probe "$kdir" && [[ ! -s $said ]]
}

# make runs the probe before it compiles.
make_says_it() {
	fresh
	release 7.2.12+deb13-amd64
	! PATH=$work/bin:$PATH make -C "$top" KDIR="$kdir" >"$said" 2>&1 &&
		[[ $(grep -c 'older than 7\.3, the oldest' "$said") == 1 ]] && ! grep -q 'building rpmu.ko' "$said"
}

echo 'TAP version 13'
check probe.lacks_nothing lacks_nothing
check probe.directory finds 'is not a directory' rm -r "$kdir"
check probe.prepared finds 'not a prepared kernel build directory' rm "$kdir/include/config/auto.conf"
for version in 7.2.12+deb13-amd64 6.12.0 7.2.0-rc1; do
	check "probe.oldest.$version" finds "kernel ${version/+/.} is older than 7.3, the oldest" older "$version"
done
for version in 7.3.0 7.3.4+deb13-amd64 7.10.1 8.0.0-rc1; do
	check "probe.new_enough.$version" newer "$version"
done
check probe.rust finds 'CONFIG_RUST=y' without RUST
check probe.metadata finds 'libkernel.rmeta' rm "$kdir/rust/libkernel.rmeta"
check probe.metadata_from_source needs_no_metadata
check probe.rustc finds 'rustc; this kernel was built with rustc 1.85.1' rm "$work/bin/rustc"
check probe.rustc_version finds 'built with rustc 1.85.1 .*whose metadata rustc 1.95.0' tool rustc 'rustc 1.95.0 (598 2026-04-14)'
check probe.bindgen finds 'bindgen, which' rm "$work/bin/bindgen"
check probe.compiler finds 'gcc-14, the C compiler' rm "$work/bin/gcc-14"
check probe.symbols finds 'Module\.symvers' rm "$kdir/Module.symvers"
check probe.pahole finds 'pahole, which CONFIG_DEBUG_INFO_BTF_MODULES needs' has_vmlinux
check probe.pahole_is_there has_pahole
check probe.clang names '' clang
check probe.clang_of_llvm names 1 clang
check probe.clang_with_a_suffix names -19 clang-19
check probe.clang_in_a_directory names "$work/bin/" "$work/bin/clang"
check probe.tools_clang chooses LLVM=1 tool clang 'Debian clang version 19.1.7 (3)'
check probe.tools_clang_missing chooses LLVM=1 true
check probe.tools_clang_with_a_suffix chooses LLVM=-19 two_clangs
check probe.tools_clang_without_lld chooses CC=clang without LD_IS_LLD
check probe.tools_gcc chooses CC=gcc gcc gcc
check probe.tools_gcc_with_a_suffix chooses CC=x86_64-linux-gnu-gcc-14 gcc x86_64-linux-gnu-gcc-14
check probe.tools_of_the_user uses_others
for name in DEBUG_INFO_BTF KPROBES KALLSYMS_ALL; do
	check "probe.$name" notes "no CONFIG_$name: .*trust_layouts=1" without "$name"
done
check probe.make_says_it make_says_it
echo "1..$nr"
exit "$failed"
