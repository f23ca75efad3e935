#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests frequent overflows: with rpmu's parameter max_period, a counter overflows
# after at most this many events instead of once a day. Each time, the PMI handler adds the
# count to the event and restarts the counter; no count may be lost. Starts and ends on
# the built-in driver.

. ./ktap.sh

# pmis: prints the number of PMIs so far, on all CPUs.
pmis() {
	awk '$1 == "PMI:" { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

too_short_refused() {
	if load_with max_period=999; then
		because "a period of 999 was accepted"
		unload
		return 1
	fi
	case $said in
	*'Invalid argument'*) ;;
	*)
		because "load: $said"
		return 1
		;;
	esac
}

# overflowing PERIOD PROGRAM: succeeds if the program's tests pass with that max_period, and counters have overflowed.
overflowing() {
	load_with "max_period=$1" || {
		because "load: $said"
		return 1
	}
	before=$(pmis)
	"./$2" >/tmp/overflow 2>&1
	status=$?
	after=$(pmis)
	unload || {
		because "unload: $said"
		return 1
	}
	if [ "$status" != 0 ]; then
		because "$2 failed"
		grep -v '^ok' /tmp/overflow | sed 's/^/# /'
		return 1
	fi
	echo "# $((after - before)) interrupts"
	[ $((after - before)) -ge 100 ] && return
	because "$((after - before)) interrupts: nothing has overflowed"
	return 1
}

counts_exact() {
	overflowing 10000 exact_count
}

groups_exact() {
	overflowing 10000 group_read
}

states() {
	overflowing 10000 event_state
}

# Makes counters overflow at each instruction of read(), over time: the kernel's instructions also count, and a read()
# takes about one period. On the debug kernel, read() and the PMI handler take many times as long, so that each PMI would
# be followed by another one at once.
reads_in_order() {
	times=1
	! checks_itself || times=20
	for period in 1009 1213 1427 1601 1789 2003 2287 2503 2731 2870 2971 3170 3301; do
		period=$((period * times))
		load_with "max_period=$period" || {
			because "load: $said"
			return 1
		}
		./counted reads $((60000 / times)) >/tmp/overflow 2>&1
		status=$?
		unload || {
			because "unload: $said"
			return 1
		}
		if [ "$status" != 0 ]; then
			because "period $period: $(cat /tmp/overflow)"
			return 1
		fi
	done
}

for name in too_short_refused counts_exact groups_exact states reads_in_order; do
	run_test $name
done
finish
