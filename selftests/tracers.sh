#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests Intel PT and BTS beside rpmu, which shares the PMI with them. The emulated
# machine has neither, so tracers.ko imitates them. Starts and ends on the built-in
# driver, whose handler serves them before and after.

. ./ktap.sh

TRACERS=/sys/module/tracers/parameters
ROUNDS=50

# The numbers in $TRACERS/calls.
PT=1 BTS=2 DISORDERED=3 STUCK=4 TICKS=5

# calls NUMBER: prints this number.
calls() {
	cut -d' ' -f"$1" $TRACERS/calls
}

# tracer pt|bts 0|1: closes or opens an event of the tracer.
tracer() {
	echo "$2" 2>/tmp/tracer >$TRACERS/"$1" && return
	because "$1 $2: $(cat /tmp/tracer)"
	return 1
}

# in_order: succeeds if all calls were made in the built-in driver's order, and no CPU still has PT's status bit set.
in_order() {
	[ "$(calls $DISORDERED) $(calls $STUCK)" = '0 0' ] && return
	because "$(calls $DISORDERED) calls in the wrong order, PT's bit set on $(calls $STUCK) CPUs"
	return 1
}

# raised WHERE: raises interrupts of PT on all CPUs; succeeds if each was handled.
raised() {
	before=$(calls $PT)
	echo $ROUNDS >$TRACERS/raise
	after=$(calls $PT)
	if [ $((after - before)) != $((ROUNDS * $(nproc))) ]; then
		because "$1: $((after - before)) of $((ROUNDS * $(nproc))) interrupts of PT handled"
		return 1
	fi
	in_order
}

# beside TRACER TEST...: loads rpmu and runs the test while an event of that tracer is open.
beside() {
	which=$1
	shift
	load || {
		because "load: $said"
		return 1
	}
	status=1
	tracer "$which" 1 && "$@" && status=0
	tracer "$which" 0
	unload || {
		because "unload: $said"
		return 1
	}
	return "$status"
}

# passes PROGRAM: succeeds if its tests pass.
passes() {
	timeout 60 "./$1" >/tmp/tracers 2>&1 && return
	because "$1 failed"
	grep -v '^ok' /tmp/tracers | sed 's/^/# /'
	return 1
}

# while_raised TEST...: runs the test while PT raises interrupts all the time.
while_raised() {
	touch /tmp/raise
	while [ -e /tmp/raise ]; do
		echo 1 >$TRACERS/raise
		usleep 20000
	done &
	"$@"
	status=$?
	rm /tmp/raise
	wait
	in_order && return "$status"
}

# The built-in driver, before rpmu has been loaded.
pt_on_built_in() {
	tracer pt 1 || return
	raised built-in
	status=$?
	tracer pt 0
	return "$status"
}

# The CPUs have not had an event on rpmu.
pt_on_idle_cpus() {
	beside pt raised idle
}

pt_on_busy_cpus() {
	beside pt busy_cpus
}

busy_cpus() {
	perf stat -a -e instructions,cycles -- sleep 4 >/dev/null 2>&1 &
	sleep 1
	raised busy
	status=$?
	wait
	return "$status"
}

counts_beside_pt() {
	beside pt while_raised exactly
}

# exactly: succeeds if events count exactly, also while PT raises interrupts.
exactly() {
	passes exact_count || return
	n=$(perf stat -x, -r 50 -e instructions:u ./exact_loop 2>&1 | cut -d, -f1)
	[ "$n" = 10000000 ] && return
	because "$n instructions instead of 10000000"
	return 1
}

samples_beside_pt() {
	beside pt while_raised samples
}

# If PT and a counter cause the same interrupt, both are handled.
samples_together_with_pt() {
	beside pt together
}

together() {
	together_before=$(calls $PT)
	echo 10 >$TRACERS/fill
	samples
	status=$?
	echo 0 >$TRACERS/fill
	together_after=$(calls $PT)
	raised 'after them' && [ "$status" = 0 ] || return
	# At least one of two samples was in the same interrupt as PT.
	[ $((together_after - together_before)) -ge 100 ] && return
	because "PT was served $((together_after - together_before)) times with 200 samples"
	return 1
}

# Counters overflow every 10,000 events: if the built-in driver's handler still ran, it would take some of the overflows, and
# samples would be missing.
overflows_beside_pt() {
	load_with max_period=10000 || {
		because "load: $said"
		return 1
	}
	status=1
	tracer pt 1 && passes exact_count && samples && status=0
	tracer pt 0
	unload || {
		because "unload: $said"
		return 1
	}
	return "$status"
}

# ticks: prints how often the watchdog ticks while a CPU is busy.
ticks() {
	ticks_before=$(calls $TICKS)
	taskset -c 0 ./counted branches 600000000
	echo $(($(calls $TICKS) - ticks_before))
}

# ticks_alike: succeeds if the watchdog ticks equally often with and without events of PT.
ticks_alike() {
	tracer pt 0
	thresh=$(cat /proc/sys/kernel/watchdog_thresh)
	echo 1 >/proc/sys/kernel/watchdog_thresh
	echo 1 >/proc/sys/kernel/nmi_watchdog
	alone=$(ticks)
	tracer pt 1
	beside=$(ticks)
	echo 0 >/proc/sys/kernel/nmi_watchdog
	echo "$thresh" >/proc/sys/kernel/watchdog_thresh
	echo "# $alone ticks, $beside beside PT"
	[ "$alone" -ge 2 ] && [ "$beside" -ge $((alone - 1)) ] && return
	because "the watchdog ticked $alone times, and $beside times beside PT"
	return 1
}

watchdog_beside_pt() {
	beside pt ticks_alike
}

# samples: succeeds if a loop of 2,000,000 branches gives a sample for each 10,000.
samples() {
	timeout 30 perf record -q -c 10000 -e r00c4:u -o /tmp/tracers.data ./counted branches 500000 >/dev/null 2>&1
	n=$(perf script -i /tmp/tracers.data -F ip 2>/dev/null | wc -l)
	[ "$n" -ge 200 ] && [ "$n" -le 220 ] && return
	because "$n samples instead of 200"
	return 1
}

# No function is called while no event of a tracer is open.
nothing_open() {
	load || {
		because "load: $said"
		return 1
	}
	before="$(calls $PT) $(calls $BTS)"
	samples
	status=$?
	after="$(calls $PT) $(calls $BTS)"
	unload || {
		because "unload: $said"
		return 1
	}
	[ "$before" = "$after" ] && return "$status"
	because "calls of PT and BTS: $before before, $after afterwards"
	return 1
}

bts_beside() {
	bts_before=$(calls $BTS)
	passes exact_count && samples && in_order || return
	[ "$(calls $BTS)" -gt "$bts_before" ] && return
	because "BTS was not called in any interrupt"
	return 1
}

# bts_event_init() reserves the counters, like rpmu.
bts_opens() {
	beside bts bts_beside
}

# load_and_unload TRACER: takes the PMU over and gives it back while an event is open that the built-in driver has
# served before.
load_and_unload() {
	tracer "$1" 1 || return
	status=0
	for round in 1 2 3; do
		load || {
			because "round $round: load: $said"
			status=1
			break
		}
		[ "$1" = bts ] || raised "round $round on rpmu" || status=1
		counts || status=1
		unload || {
			because "round $round: unload: $said"
			status=1
			break
		}
		[ "$1" = bts ] || raised "round $round on the built-in driver" || status=1
		counts || status=1
	done
	tracer "$1" 0 || status=1
	return "$status"
}

pt_open_at_load_and_unload() {
	load_and_unload pt
}

bts_open_at_load_and_unload() {
	load_and_unload bts
}

TESTS='pt_on_built_in pt_on_idle_cpus pt_on_busy_cpus counts_beside_pt samples_beside_pt samples_together_with_pt
	overflows_beside_pt watchdog_beside_pt nothing_open bts_opens pt_open_at_load_and_unload bts_open_at_load_and_unload'

watchdog 0
if ! said=$(./module load ./tracers.ko 2>&1); then
	reason="tracers.ko: $said"
	# Before version 4 of architectural performance monitoring, no register sets status bits.
	case $said in
	*'No such device'*)
		for name in $TESTS; do
			eval "$name() { because 'status bits cannot be set'; return $KSFT_SKIP; }"
		done
		;;
	*)
		for name in $TESTS; do
			eval "$name() { because 'tracers.ko cannot be loaded'; return 1; }"
		done
		;;
	esac
fi
# On slow CPUs, the perf core would throttle the events.
lift_sample_limits
for name in $TESTS; do
	run_test "$name"
done
put_back_sample_limits
[ ! -d /sys/module/tracers ] || ./module unload tracers
finish
