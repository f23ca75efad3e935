#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Tests make modules_install. Prints TAP.
# shellcheck disable=SC2317 # functions are called by their names
. "$(dirname "$0")/../../scripts/lib.sh"
. "$(dirname "$0")/../../scripts/tap.sh"
usage "usage: selftests/install/install.sh

Runs make modules_install for Debian's stock kernel, with a temporary directory as INSTALL_MOD_PATH. modprobe must find
rpmu.ko there through the files that depmod wrote, and modinfo must show that rpmu.ko was built for that kernel. Repeats this
with KDIR set, as on a machine that has compilers and no tool root." "${1:-}"

unset KDIR KERNEL LLVM CC RUSTC BINDGEN INSTALL_MOD_PATH INSTALL_MOD_DIR INSTALL_MOD_STRIP
kernel=$("$top/scripts/kernel")
root=$("$top/scripts/toolroot")
release=$(<"$kernel/release")
lock install
work=$cache/install-$(key "$top")
said=$work/said

# install VARIABLE=VALUE …: runs make modules_install into an empty directory, with its output in the file $said.
install() {
	rm -rf "$work"
	mkdir -p "$work/there"
	make -C "$top" modules_install INSTALL_MOD_PATH="$work/there" "$@" >"$said" 2>&1
}

# modprobe, modinfo: run the tool root's programs on the installed files.
modprobe() { in_root "$root" modprobe --dirname "$work/there" --set-version "$release" "$@" 2>>"$said"; }
modinfo() { in_root "$root" modinfo --basedir "$work/there" --set-version "$release" "$@" 2>>"$said"; }

because() { tail -n 5 "$said" | sed 's/^/# /'; }

# found_in DIR: succeeds if modprobe rpmu would load the file in DIR, and no other.
found_in() {
	local would
	would=$(modprobe --show-depends rpmu) || return
	echo "modprobe rpmu: $would" >>"$said"
	read -r would <<<"$would"
	[[ $would == "insmod $work/there/lib/modules/$release/$1/rpmu.ko"* && -s ${would#insmod } ]]
}

is_for_this_kernel() {
	local magic
	magic=$(modinfo --field vermagic rpmu) || return
	echo "vermagic: $magic" >>"$said"
	[[ $magic == "$release "* && $(modinfo --field license rpmu) == GPL && $(modinfo --field name rpmu) == rpmu ]]
}

# has_version: succeeds if rpmu.ko has the version of the Debian packages.
has_version() {
	local version
	version=$(modinfo --field version rpmu) || return
	echo "version: $version" >>"$said"
	[[ $version == "$(sed -n '1s/.*(\(.*\)).*/\1/p' "$top/debian/changelog")" ]]
}

has_parameters() {
	local name
	modinfo --field parm rpmu >"$work/parameters" || return
	for name in dry_run ht_workaround policy share trial trust_layouts max_period; do
		grep "^$name:" "$work/parameters" >/dev/null || {
			echo "no parameter $name" >>"$said"
			return 1
		}
	done
}

# The manual has an entry for each parameter, and for no other.
manual_has_them() {
	diff <(sed 's/:.*//' "$work/parameters" | sort) \
		<(sed -n '/^\.SH PARAMETERS/,/^\.SH FILES/s/^\.B[RI]* \([a-z_]*\) *=.*/\1/p' "$top/Documentation/rpmu.4" | sort) >"$said"
}

# size: prints the size of the installed rpmu.ko.
size() { find "$work/there" -name 'rpmu.ko*' -printf '%s\n'; }

is_smaller() {
	echo "$(size) bytes, $full bytes before strip" >>"$said"
	(($(size) < full))
}

# The tool root stands in for the machine: it has no bwrap, so make cannot enter a tool root from it. The kernel's tree is
# read-only. With another CPP than the tree's last build had, Kbuild would preprocess the tree's generated Rust files again;
# a build of another checkout can have the same effect.
installs_without_a_tool_root() {
	local root_options=(--setenv KDIR "$kernel/tree" --ro-bind "$kernel/tree" "$kernel/tree" --setenv RPMU_CACHE "$cache"
		--setenv MAKEFLAGS 'CPP=x86_64-linux-gnu-gcc-14\ -E\ -DOTHER' --setenv INSTALL_MOD_PATH "$work/there")
	rm -rf "$work/there"
	mkdir "$work/there"
	! in_root "$root" sh -c 'command -v bwrap' >"$said" || return
	in_root "$root" make modules_install >"$said" 2>&1 || return
	! grep -E '^rpmu: (missing|note):' "$said" >/dev/null && root_options=() && found_in updates
}

# Without INSTALL_MOD_PATH, make must refuse a kernel that is not installed on this machine.
is_refused() {
	! make -C "$top" modules_install >"$said" 2>&1 &&
		grep "kernel $release is not installed on this machine" "$said" >/dev/null
}

echo 'TAP version 13'
check install.installs install
check install.modprobe_finds_it found_in updates
check install.is_for_this_kernel is_for_this_kernel
check install.has_version has_version
check install.has_parameters has_parameters
check install.manual_has_the_parameters manual_has_them
full=$(size)
check install.installs_elsewhere install INSTALL_MOD_DIR=extra/rpmu INSTALL_MOD_STRIP=1
check install.modprobe_finds_it_elsewhere found_in extra/rpmu
check install.is_stripped is_smaller
check install.installs_without_a_tool_root installs_without_a_tool_root
if [[ -e /lib/modules/$release ]]; then
	nr=$((nr + 1))
	echo "ok $nr install.kernel_not_here # SKIP this kernel is installed"
else
	check install.kernel_not_here is_refused
fi
rm -rf "$work"
echo "1..$nr"
exit "$failed"
