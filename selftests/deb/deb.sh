#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Tests the Debian packages. Prints TAP.
# shellcheck disable=SC2317 # functions are called by their names
. "$(dirname "$0")/../../scripts/lib.sh"
. "$(dirname "$0")/../../scripts/tap.sh"
usage "usage: selftests/deb/deb.sh

Builds rpmu-dkms, rpmu-demo and rpmu-tools and installs them with apt in a clean Debian, as described in the README, beside
Debian's stock kernel, the perf of backports and the headers of a kernel without Rust. apt must be able to install them without
perf, together with perf and after perf, with and without recommended packages. DKMS must build rpmu.ko there, sign it and skip
the other kernel. rpmu-demo must run there in a guest with the emulated PMU's package. Another guest then loads rpmu with that
Debian's modprobe, counts with its perf and runs rpmu-demo. Purging the packages must leave nothing behind.

FLAVOUR=cloud-amd64|amd64   which of Debian's kernels (default cloud-amd64)" "${1:-}"

unset KDIR KERNEL
flavour=${FLAVOUR:-cloud-amd64}
root=$("$top/scripts/toolroot")
work=$cache/deb-test-$(key "$top")
results=$work/results

"$top/scripts/deb" >/dev/null
vpmu=$("$top/scripts/vpmu-package")
lock deb-test
rm -rf "$work"
mkdir -p "$work/packages"
for name in rpmu-dkms rpmu-demo rpmu-tools; do
	cp "$top/build/$name"_*.deb "$work/packages/$name.deb"
done
mkdir "$work/packages/vpmu"
tar -xJ --strip-components=1 -C "$work/packages/vpmu" -f "$vpmu"

install_in_debian() {
	local mode=root option=() proxy sources
	proxy=$(apt-config dump --format '%v' Acquire::http::Proxy 2>/dev/null || true)
	[[ -z $proxy ]] || option+=(--aptopt="Acquire::http::Proxy \"$proxy\"")
	((EUID == 0)) || mode=unshare
	export TMPDIR=${TMPDIR:-$cache}
	mapfile -t sources < <(grep '^deb ' "$root/etc/apt/sources.list")
	mmdebstrap --variant=apt --mode="$mode" --format=null "${option[@]}" \
		--customize-hook="copy-in $work/packages /" \
		--customize-hook="$top/selftests/deb/in-root \"\$1\" $flavour" \
		--customize-hook="sync-out /results $results" \
		trixie /dev/null "${sources[@]}"
}

mkdir "$results"
step deb-test "installing the packages in a clean Debian (about 5 minutes)" install_in_debian
read -r release old <"$results/releases"

because() { tail -n 10 "$results/$phase.log" | sed 's/^/# /'; }

# went PHASE [WORDS]: succeeds if the phase has ended with status 0, and its output contains the words.
went() {
	phase=$1
	[[ $(<"$results/$1.status") == 0 ]] && { [[ -z ${2:-} ]] || grep -qF -e "$2" "$results/$1.log"; }
}

# says PHASE STATUS WORDS: succeeds if the phase has ended with that status, and its output contains the words.
says() {
	phase=$1
	[[ $(<"$results/$1.status") == "$2" ]] && grep -qE "$3" "$results/$1.log"
}

is_silent() {
	phase=$1
	[[ ! -s $results/$1.log ]]
}

is_skipped() {
	phase=status
	! grep -F "$old" "$results/status.log"
}

echo 'TAP version 13'
for name in {alone,with-perf,beside-perf}{,-lean}; do
	check "deb.apt_solves_${name//-/_}" went "$name" 'Inst rpmu-dkms'
done
check deb.tools_installs went tools
check deb.plan_runs went plan-runs 'cycles'
check deb.plan_completes went plan-completes '--sibling'
check deb.plan_has_a_manual went plan-man
check deb.check_lists_its_checks went check-lists 'take-over'
check deb.check_needs_root says check-user 2 'only root may load a module'
check deb.check_has_a_manual went check-man
check deb.check_completes went check-completes
check deb.check_has_its_programs went check-programs
check deb.installs went install
check deb.module_has_a_manual went dkms-man
check deb.dkms_has_built_it says status 0 "^rpmu/[0-9.]+, ${release/+/.}, x86_64: installed"
check deb.dkms_has_skipped_the_old_kernel is_skipped
check deb.is_signed says modinfo 0 '^signer: +DKMS'
check deb.is_in_updates says modinfo 0 '^filename: .*/updates/dkms/rpmu\.ko'
check deb.leaves_no_tree is_silent left
check deb.demo_installs went demo-package
check deb.demo_helps went demo-help '--vpmu DIR'
check deb.demo_has_a_manual went demo-man
check deb.demo_needs_root says demo-user 1 'rpmu-demo: only root may load a module'
check deb.demo_in_a_guest went demo-guest 'demo: all went well'
check deb.demo_wants_a_module says demo-not-built 1 "DKMS has built rpmu for no kernel ${old/+/.}"
check deb.is_not_loaded_by_itself is_silent autoload
check deb.skips_without_the_source says without-source 77 'Consult'
check deb.names_the_missing_package says without-source-says 0 '^rpmu: missing: the package linux-source-7'
check deb.apt_goes_on_without_the_source went reinstall 'rpmu: missing: the package linux-source-7'
check deb.skips_an_old_kernel says too-old 77 'BUILD_EXCLUSIVE'
check deb.purges went purge
check deb.leaves_nothing is_silent rest

# Load the DKMS-built module in a guest and use it.
pack() {
	# shellcheck disable=SC2016
	in_root "$root" sh -c 'cd "$1" && find . | cpio --quiet -o -H newc -R 0:0 >"$2"' sh "$results/files" "$work/files.cpio"
}
check deb.collects went collect
check deb.packs pack
phase=guest
guest() {
	FLAVOUR=$flavour "$top/scripts/guest" --run installed --name deb --icount --smp 2,1 --cpu Haswell --initrd "$work/files.cpio" \
		</dev/null >"$results/guest.log"
}
check deb.guest guest
sed 's/^/# /' "$results/guest.log"
seconds() { cat "$results/$1.seconds"; }
printf '# time: kernel and headers %s s; rpmu-dkms with its build %s s; rpmu-tools %s s; rpmu-demo %s s, its guest %s s\n' \
	"$(seconds kernel)" "$(seconds install)" "$(seconds tools)" "$(seconds demo-package)" "$(seconds demo-guest)"
((failed)) || rm -rf "$work"
echo "1..$nr"
exit "$failed"
