# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash disable=SC2034
# Functions of the guest's scripts and the shell tests; sourced by busybox sh.

RPMU=$PWD
CPU_PMU=/sys/bus/event_source/devices/cpu

# Lines that must not appear in the kernel's log during a run.
TROUBLE='WARNING:|BUG:|Oops|Call Trace|general protection|unchecked MSR|[Uu]nknown NMI|NMI received for unknown reason|[Uu]hhuh|Dazed and confused|irq loop stuck|possible .*lock|inconsistent lock|lock held when|suspicious RCU|soft lockup|hard LOCKUP|detected stall|blocked for more than|UBSAN|KASAN|KCSAN|refcount_t|sleeping function called|scheduling while atomic|non-static key|panicked at|page allocation failure'

# cmdline KEY: prints the value of rpmu.KEY= on the kernel's command line.
cmdline() {
	sed -n "s/.*\\brpmu\\.$1=\\([^ ]*\\).*/\\1/p" /proc/cmdline
}

# checks_itself: succeeds on the debug kernel (KERNEL=debug: KASAN, lockdep and more).
checks_itself() {
	case $(uname -r) in
	*-debug) ;;
	*) return 1 ;;
	esac
}

# log_mark WHAT: writes a mark to the kernel's log, at which log_since starts.
log_mark() {
	mark="rpmu-selftest: mark $(cut -d' ' -f1 /proc/uptime) $*"
	echo "<6>$mark" >/dev/kmsg
}

# log_since: prints the kernel's log since log_mark.
log_since() {
	# Without the mark the log has wrapped around, and trouble may be lost.
	dmesg | grep -qF "$mark" || echo "BUG: the kernel's log no longer holds '$mark'"
	dmesg | sed "1,\\|$mark|d"
}

# log_trouble [all]: prints the lines of TROUBLE since log_mark, or since boot.
log_trouble() {
	if [ "$1" = all ]; then dmesg; else log_since; fi | grep -E "$TROUBLE"
}

# watchdog 0|1: switches the NMI watchdog, which uses a counter of each CPU; succeeds if the kernel has done it.
watchdog() {
	echo "$1" >/proc/sys/kernel/nmi_watchdog 2>/dev/null
	[ "$(cat /proc/sys/kernel/nmi_watchdog 2>/dev/null)" = "$1" ]
}

loaded() {
	[ -d /sys/module/rpmu ]
}

# load, load_with PARAMETERS, unload: load or unload rpmu; set $said to the error
# message. RPMU_PARAMETERS are the parameters that rpmu needs on this kernel.
load_with() {
	said=$(./module load "$RPMU/rpmu.ko" "$1 $RPMU_PARAMETERS" 2>&1)
}

load() {
	load_with ''
}

unload() {
	said=$(./module unload rpmu 2>&1)
}
