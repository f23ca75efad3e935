#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Tests the end of a machine while events count and sample. Prints TAP.
. "$(dirname "$0")/../../scripts/lib.sh"
. "$(dirname "$0")/../../scripts/tap.sh"
usage "usage: selftests/shutdown/shutdown.sh [DRIVER/END …]

Boots a guest for each argument. DRIVER is rpmu or built-in; END is reboot, panic or kexec. The NMI watchdog, tasks and CPUs
count and sample on that driver when the guest ends. The guest must not hang, and the kernel must log no trouble. After kexec,
the next kernel's built-in driver must find a PMU with all counters disabled. Default: all three on rpmu, kexec on built-in." "$@"

kernel=$("$top/scripts/kernel")
root=$("$top/scripts/toolroot")
lock shutdown

# The kernel that is started next.
work=$cache/shutdown-$(key "$top")
rm -rf "$work"
mkdir -p "$work/root/opt/rpmu"
cp "$kernel/vmlinuz" "$work/root/opt/rpmu"
# shellcheck disable=SC2016
in_root "$root" sh -c 'cd "$1" && find . | cpio --quiet -o -H newc -R 0:0 >"$2"' sh "$work/root" "$work/extra.cpio"
trouble=$(sed -n "s/^TROUBLE='\(.*\)'\$/\1/p" "$top/selftests/guest/guest-lib.sh")

# Print the log of the first kernel and of the next one. Readers must not stop early (no grep -q): awk would get SIGPIPE,
# and the pipeline would fail.
# shellcheck disable=SC2317 # check calls these
first() { awk '/Linux version/ { n++ } n <= 1' "$log"; }
# shellcheck disable=SC2317
next() { awk '/Linux version/ { n++ } n > 1' "$log"; }

# shellcheck disable=SC2317
boot() {
	"$top/scripts/guest" --run end --icount --name "$guest" --cpu Haswell --smp 2,1 --timeout 1800 \
		--initrd "$work/extra.cpio" --append "rpmu.end=$which" >/dev/null </dev/null
}

# Five jobs count, and all CPUs have had PMIs.
# shellcheck disable=SC2317
was_busy() { grep -q "^busy: $1, 5 jobs, 0 idle CPUs" "$out"; }

# shellcheck disable=SC2317
has_ended() {
	case $1 in
	reboot) first | grep 'reboot: machine restart' >/dev/null ;;
	panic) first | grep 'Kernel panic - not syncing: sysrq triggered crash' >/dev/null ;;
	kexec) first | grep 'Starting new kernel' >/dev/null && next | grep 'Unable to mount root fs' >/dev/null ;;
	esac
}

# Ignores the backtrace of a panic, and warnings about a task that is woken on a CPU that the kernel has just stopped,
# which do not depend on events.
# shellcheck disable=SC2317
no_complaint() {
	local complaint
	complaint=$(grep -E "$trouble|Firmware Bug|corrupted hw-PMU" "$log" |
		grep -vE 'Call Trace|WARNING: (kernel/sched/core|arch/x86/kernel/apic/ipi)\.c' || true)
	[[ -s $log && -z $complaint ]] && return
	echo "# ${complaint//$'\n'/$'\n'# }"
	return 1
}

# shellcheck disable=SC2317
finds_its_pmu() { next | grep 'Performance Events: .*Intel PMU driver' >/dev/null; }

(($#)) || set -- rpmu/reboot rpmu/panic rpmu/kexec built-in/kexec
echo 'TAP version 13'
for which; do
	driver=${which%/*} end=${which#*/}
	[[ $which =~ ^(rpmu|built-in)/(reboot|panic|kexec)$ ]] || die "selftests/shutdown/shutdown.sh does not know $which: see --help"
	guest=shutdown-$driver-$end
	out=$logs/guest-$guest.out log=$logs/guest-$guest.log
	check "shutdown/$which/ends" boot
	check "shutdown/$which/was_busy" was_busy "$driver"
	check "shutdown/$which/has_ended" has_ended "$end"
	check "shutdown/$which/no_complaint" no_complaint
	[[ $end != kexec ]] || check "shutdown/$which/next_kernel_finds_its_pmu" finds_its_pmu
done
echo "1..$nr"
exit "$failed"
