#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests the NMI watchdog on rpmu: an overflow of its counter detects a CPU that hangs
# with interrupts off. Starts and ends on the built-in driver, which is tested, too.

. ./ktap.sh

SETTINGS='watchdog_thresh soft_watchdog hardlockup_panic nmi_watchdog'
before=$(for setting in $SETTINGS; do echo "$setting $(cat "/proc/sys/kernel/$setting")"; done)
put_back() {
	echo "$before" | while read -r setting value; do
		echo "$value" >"/proc/sys/kernel/$setting"
	done
}
trap put_back EXIT
trap 'exit 1' HUP INT TERM

found() {
	cat /sys/kernel/hardlockup_count
}

# hangs: hangs the last CPU; succeeds if the watchdog reports that CPU.
hangs() {
	cpu=$(($(nproc) - 1))
	# Keep the CPU busy first, so that the watchdog's counter overflows and the watchdog checks the CPU: after a
	# report, it reports no other hang of the CPU until a check has found the CPU alive. One overflow may not be
	# enough, as touch_nmi_watchdog() makes the watchdog skip a check.
	timeout 3 taskset -c "$cpu" ./counted branches 4000000000
	before_hang=$(found)
	log_mark watchdog
	taskset -c "$cpu" ./module load ./stuck.ko "rounds=$rounds" >/tmp/stuck
	after_hang=$(found)
	lines=$(log_since | grep -c "Watchdog detected hard LOCKUP on cpu $cpu")
	if [ "$after_hang" -le "$before_hang" ] || [ "$lines" != 1 ]; then
		because "$((after_hang - before_hang)) found, $lines lines in the log; $(cat /tmp/stuck)"
		return 1
	fi
	# The log has no trouble besides the report.
	other=$(log_trouble since | grep -vE 'hard LOCKUP|Call Trace')
	[ -z "$other" ] && return
	because "$other"
	return 1
}

# watched TEST: runs the test with the watchdog on. As watchdog_thresh is 1, its counter overflows every cpu_khz * 1000
# cycles.
watched() {
	echo 1 >/proc/sys/kernel/nmi_watchdog
	"$@"
	status=$?
	echo 0 >/proc/sys/kernel/nmi_watchdog
	return "$status"
}

found_by_built_in() {
	watched hangs
}

found_by_rpmu() {
	load || {
		because "load: $said"
		return 1
	}
	watched hangs
	status=$?
	unload || {
		because "unload: $said"
		return 1
	}
	return "$status"
}

# The watchdog does not report a busy CPU.
busy_is_not_stuck() {
	load || {
		because "load: $said"
		return 1
	}
	before_busy=$(found)
	watched ./counted check >/tmp/busy 2>&1
	watched ./counted branches 400000000 >/tmp/busy 2>&1
	after_busy=$(found)
	unload || {
		because "unload: $said"
		return 1
	}
	[ "$after_busy" = "$before_busy" ] && return
	because "$((after_busy - before_busy)) false reports"
	return 1
}

# The length of a hang in rounds of stuck.ko's loop, not in seconds: the watchdog's counter counts cycles. A timer
# interrupt may have run shortly before the hang, so that only the second overflow or a later one detects it.
rounds=1000000000
echo 1 >/proc/sys/kernel/watchdog_thresh
echo 0 >/proc/sys/kernel/soft_watchdog
echo 0 >/proc/sys/kernel/hardlockup_panic

for name in found_by_built_in found_by_rpmu busy_is_not_stuck; do
	run_test $name
done
finish
