#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests perf stat on programs with known counts.

. ./ktap.sh

# Restore the interval, which two_offcore_registers changes, at any exit.
rotation=$CPU_PMU/perf_event_mux_interval_ms
rotation_before=$(cat "$rotation")
trap 'echo "$rotation_before" >"$rotation"' EXIT
trap 'exit 1' HUP INT TERM

# count EVENT...: prints perf stat's CSV lines for exact_loop.
count() {
	events=$1
	shift
	perf stat -x, -e "$events" -- ./exact_loop 2>&1
}

field() {
	echo "$2" | cut -d, -f"$1"
}

instructions_three_times() {
	for run in 1 2 3; do
		line=$(count instructions:u)
		[ "$(field 1 "$line")" = 10000000 ] && continue
		because "run $run: $line"
		return 1
	done
}

# Each event of a group counts 100 % of the time.
group() {
	lines=$(count '{cycles:u,instructions:u,branches:u}')
	[ "$(echo "$lines" | wc -l)" = 3 ] || {
		because "$lines"
		return 1
	}
	for line in $lines; do
		[ "$(field 5 "$line")" = 100.00 ] && continue
		because "$line"
		return 1
	done
	line=$(echo "$lines" | sed -n 2p)
	[ "$(field 1 "$line")" = 10000000 ] && return
	because "$line"
	return 1
}

# Counts on all CPUs at once (perf stat -a).
all_cpus() {
	line=$(perf stat -x, -a -e instructions:u -- ./exact_loop 2>&1)
	value=$(field 1 "$line")
	case $value in
	'' | *[!0-9]*) ;;
	*) [ "$value" -ge 10000000 ] && return ;;
	esac
	because "$line"
	return 1
}

# mix NUMBER=EVENT...: checks the counts of exact_mix, whose source states them. At most
# four events may need general-purpose counters.
mix() {
	events=''
	for pair; do
		events=$events${events:+,}${pair#*=}
	done
	lines=$(perf stat -x, -e "$events" -- ./exact_mix 2>&1)
	for pair; do
		line=$(echo "$lines" | sed 1q)
		lines=$(echo "$lines" | sed 1d)
		[ "$(field 1 "$line")" = "${pair%%=*}" ] && continue
		because "${pair%%=*} expected: $line"
		return 1
	done
}

# Prints the unit mask of conditional branches, taken or not.
conditional() {
	case $(sed -n 's/^model\t*: //p' /proc/cpuinfo | head -n 1) in
	106 | 108 | 125 | 126 | 140 | 141 | 167 | 143 | 207) echo 0x11 ;; # Ice Lake and later
	*) echo 0x1 ;;
	esac
}

# intel_events: skips a test of event codes that only Intel's CPUs have.
intel_events() {
	grep -qE 'AuthenticAMD|HygonGenuine' /proc/cpuinfo || return 0
	because "the event codes are Intel's"
	return "$KSFT_SKIP"
}

# Counts are exact across faults, signals, string instructions, system calls and ticks.
mix_of_branches() {
	intel_events || return
	mix 60627573=instructions:u 30511711=branches:u "30306100=cpu/event=0xc4,umask=$(conditional)/u" \
		200008=cpu/event=0xc4,umask=0x10/u 30310398=cpu/event=0xc4,umask=0x20/u
}

mix_of_calls() {
	intel_events || return
	mix 60627573=instructions:u 2003=cpu/event=0xc4,umask=0x2/u 2303=cpu/event=0xc4,umask=0x8/u \
		1305=cpu/event=0xc4,umask=0x40/u
}

# Four events that each need a different value in one of the two offcore response registers: without rotation, the first
# two always count and the others never.
two_offcore_registers() {
	interval=$CPU_PMU/perf_event_mux_interval_ms
	before=$(cat "$interval")
	echo 1000 >"$interval"
	lines=$(perf stat -x, -e LLC-load-misses,LLC-stores,LLC-store-misses,LLC-loads -- sleep 2 2>&1 |
		grep LLC)
	echo "$before" >"$interval"
	# A running rotation timer keeps its expiry time.
	sleep 1
	case $lines in
	*'not supported'*)
		because "the registers of this CPU do not accept the bits of LLC misses"
		return "$KSFT_SKIP"
		;;
	esac
	seen=''
	for nr in 1 2 3 4; do
		line=$(echo "$lines" | sed -n "${nr}p")
		case $(field 1 "$line")/$(field 5 "$line") in
		'<not counted>/0.00') seen=$seen-nc ;;
		*[!0-9]*/100.00) seen=$seen-other ;;
		*/100.00) seen=$seen-counted ;;
		*) seen=$seen-other ;;
		esac
	done
	[ "$seen" = -counted-counted-nc-nc ] && return
	because "$lines"
	return 1
}

mix_of_memory() {
	intel_events || return
	mix 60627573=instructions:u 2605=cpu/event=0xd0,umask=0x81/u 5306=cpu/event=0xd0,umask=0x82/u
}

for name in instructions_three_times group all_cpus mix_of_branches mix_of_calls mix_of_memory two_offcore_registers; do
	run_test $name
done
finish
