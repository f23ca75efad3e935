#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Counters that overflow all the time: with rpmu's parameter max_period a counter
# overflows after that many events instead of once a day. Each time the PMI (a
# non-maskable interrupt) adds the count up and restarts the counter, and no
# event may be lost. Starts and ends on the built-in driver.

. ./ktap.sh

# pmis: performance monitoring interrupts so far, on all CPUs.
pmis() {
	awk '$1 == "PMI:" { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

too_short_refused() {
	if load_with max_period=999; then
		because "a period of 999 was taken"
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

# overflowing PERIOD PROGRAM: its tests pass, and there were overflows in it.
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

# Overflows in the middle of a reading, at every place of it sooner or later:
# the kernel's instructions count too, and a reading takes about a period. Where
# the kernel checks itself, it takes many times that, and so does an interrupt,
# after which the next would be due.
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
