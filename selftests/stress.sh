#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Runs the stress tests. After each part, the kernel's log must be clean and
# events must count exactly. Starts and ends without rpmu. On Intel's CPUs, the PMU has
# other users during all parts except failures, called neighbours, which vm_entry.ko
# and tracers.ko imitate (stress/neighbours.c).
#
#	rpmu.stress=LIST	the tests to run (default: all)
#		fuzz		random system calls (stress/fuzz.c)
#		loads		load and unload rpmu while tasks open and close
#				software events (stress/rounds.c)
#		hotplug		take CPUs offline and online while events count
#				on them (stress/rounds.c)
#		nmi		overflows on every counter as fast as possible,
#				without and with the NMI watchdog on rpmu
#		shared		random steps on equal events (shared_random.c)
#		failures	inject a failure into each allocation of loading
#				and opening
#	rpmu.seed=N		the seed of the random calls and steps
#	rpmu.calls=N		the number of random calls
#	rpmu.steps=N		the number of random steps on equal events
#	rpmu.rounds=N		the number of loads, and of CPUs taken offline
#	rpmu.pmis=N		the number of PMIs without the watchdog, and again with it
#	rpmu.part=N,M		the Nth of M parts of the failures
#	rpmu.without=LIST	kinds of random calls to leave out
#	rpmu.driver=built-in	run fuzz on the built-in driver, for comparison

. ./ktap.sh

SEED=$(cmdline seed)
CALLS=$(cmdline calls)
STEPS=$(cmdline steps)
ROUNDS=$(cmdline rounds)
PMIS=$(cmdline pmis)
LIST=$(cmdline stress)
DRIVER=$(cmdline driver)
WITHOUT=$(cmdline without | tr , ' ')
PART=$(cmdline part | tr , ' ')

# progress WORDS: prints the words at once; run-tests prints a test's output only when the test has ended.
progress() {
	echo "# $(cut -d. -f1 /proc/uptime) s: $*" >&3
} 2>/dev/null

# Lines of TROUBLE in the log that rpmu does not cause.
NOT_OURS='^$'

# all_is_well: succeeds if the log is clean and events count exactly.
all_is_well() {
	trouble=$(log_trouble since | grep -vE "$NOT_OURS")
	if [ -n "$trouble" ]; then
		because "$(echo "$trouble" | head -n 1)"
		log_since | grep -A 30 -E "$TROUBLE" | head -n 60 | sed 's/^/# /'
		return 1
	fi
	counts && return
	# Show which events have the counters, for debugging.
	sed 's/^/# /' /sys/kernel/debug/rpmu/cpu*/schedule 2>/dev/null
	return 1
}

ensure_loaded() {
	[ "$DRIVER" != built-in ] || return 0
	loaded || load && return
	because "load: $said"
	return 1
}

ensure_unloaded() {
	loaded || return 0
	# The last events of a task that has just ended may still exist.
	tries=0
	until unload; do
		tries=$((tries + 1))
		if [ "$tries" -gt 50 ]; then
			because "unload: $said"
			return 1
		fi
		usleep 100000
	done
}

TRACERS=/sys/module/tracers/parameters

# tracers.ko must be loaded before rpmu, which checks the CPU's features.
load_neighbours() {
	./module load ./vm_entry.ko 2>/tmp/module || {
		because "vm_entry.ko: $(cat /tmp/module)"
		return 1
	}
	# Before version 4 of the PMU, no software can set PT's status bit.
	./module load ./tracers.ko 2>/tmp/module || return 0
	echo 1 >$TRACERS/pt
}

unload_neighbours() {
	if [ -d $TRACERS ]; then
		# PT's calls in the wrong order, and CPUs whose status bit is still set.
		disordered=$(cut -d' ' -f3,4 $TRACERS/calls)
		echo 0 >$TRACERS/pt
		./module unload tracers
		if [ "$disordered" != '0 0' ]; then
			because "PT: $disordered calls in the wrong order and status bits left"
			return 1
		fi
	fi
	./module unload vm_entry
}

# beside_neighbours WORDS COMMAND...: runs the command while the program neighbours runs, with WORDS as its arguments
# after the seed. On AMD's CPUs, runs only the command, because neighbours calls functions of Intel's driver.
beside_neighbours() {
	if grep -q AuthenticAMD /proc/cpuinfo; then
		shift
		"$@"
		return
	fi
	# shellcheck disable=SC2086 # words
	./neighbours "$SEED" $1 >/tmp/neighbours 2>&1 &
	neighbours=$!
	shift
	"$@"
	status=$?
	if ! kill "$neighbours" || ! wait "$neighbours"; then
		because "neighbours: $(head -n 1 /tmp/neighbours)"
		status=1
	fi
	cat /tmp/neighbours
	return "$status"
}

# fuzz_piece SEED CALLS: runs the fuzzer and checks that all is well.
# shellcheck disable=SC2086 # words
fuzz_piece() {
	if ! ./fuzz "$1" "$2" $WITHOUT; then
		because "the fuzzer with seed $1 did not finish"
		return 1
	fi
	all_is_well
}

# fuzz_by_two SEED CALLS: the same while a second fuzzer runs, whose calls are not
# counted.
# shellcheck disable=SC2086 # words
fuzz_by_two() {
	./fuzz $(($1 + 1)) "$2" $WITHOUT >/dev/null 2>&1 &
	other=$!
	fuzz_piece "$1" "$2" && wait "$other"
}

# Number of calls between two checks: few enough to find the call that caused a failure.
PIECE=5000

fuzz() {
	ensure_loaded && beside_neighbours counters fuzz_all && ensure_unloaded && all_is_well
}

fuzz_all() {
	mkdir -p /tmp/fuzz-cgroup
	mount -t cgroup -o perf_event none /tmp/fuzz-cgroup 2>/dev/null ||
		mount -t cgroup2 none /tmp/fuzz-cgroup
	seed=$((SEED * 1000))
	# Use only a small part of the calls: with two fuzzers, emulated CPUs on one host thread mostly wait for each
	# other.
	made=$((PIECE / 5))
	fuzz_by_two "$seed" "$made"
	status=$?
	seed=$((seed + 2))
	while [ "$made" -lt "$CALLS" ] && [ "$status" = 0 ]; do
		piece=$((CALLS - made < PIECE ? CALLS - made : PIECE))
		fuzz_piece "$seed" "$piece"
		status=$?
		made=$((made + piece))
		seed=$((seed + 1))
		progress "$made of $CALLS calls"
	done
	umount /tmp/fuzz-cgroup
	return "$status"
}

# loads, hotplug and failures print their progress at once.
loads() {
	beside_neighbours '' load_rounds && all_is_well
}

# Run without counters of guests, whose events prevent the take-over of the PMU.
load_rounds() {
	./rounds loads "$ROUNDS" "$RPMU/rpmu.ko" >&3
}

hotplug() {
	if [ "$(nproc)" = 1 ]; then
		because "one CPU"
		return "$KSFT_SKIP"
	fi
	ensure_loaded && beside_neighbours counters hotplug_rounds && ensure_unloaded && all_is_well
}

hotplug_rounds() {
	./rounds hotplug "$ROUNDS" >&3 && all_is_well
}

nmi() {
	ensure_loaded && beside_neighbours counters storms && ensure_unloaded && all_is_well
}

storms() {
	./nmi_storm "$PMIS" && watchdog 1 && ./nmi_storm "$PMIS" && watchdog 0 && all_is_well && far_from_limits
}

# far_from_limits: succeeds if no CPU has come closer than a tenth to a limit of the circuit breaker.
far_from_limits() {
	breaker=/sys/kernel/debug/rpmu/breaker
	sed -n 's/^cpu/# cpu/p' $breaker >&3
	near=$(grep '^cpu' $breaker | tr ' =/' '\n   ' | awk 'NF == 3 && $2 * 10 > $3')
	[ -z "$near" ] && return
	because "near a limit: $near"
	return 1
}

shared() {
	ensure_loaded && shared_pieces && ensure_unloaded && all_is_well
}

# shared_pieces: makes the steps in whole pieces, because shared_random fails if it has compared few counts.
shared_pieces() {
	seed=$((SEED * 1000))
	made=0
	while [ "$made" -lt "$STEPS" ]; do
		if ! ./shared_random "$PIECE" "$seed" >/tmp/shared; then
			because "shared_random $PIECE $seed"
			grep -E '^(#|not ok)' /tmp/shared | sed 's/^/# /'
			return 1
		fi
		grep -E ' steps in | operations on ' /tmp/shared
		all_is_well || return 1
		made=$((made + PIECE))
		seed=$((seed + 1))
		progress "$made of $STEPS steps"
	done
}

# shellcheck disable=SC2086 # words
failures() {
	# When allocations fail, the kernel prints a backtrace, and warns about a module's
	# jump labels and tracepoints.
	NOT_OURS='Call Trace|page allocation failure|WARNING: kernel/(jump_label|trace/trace_events)\.c'
	for attr in failslab fail_page_alloc; do
		[ -d /sys/kernel/debug/"$attr" ] || continue
		echo N >/sys/kernel/debug/"$attr"/ignore-gfp-wait
		echo 0 >/sys/kernel/debug/"$attr"/verbose
	done
	[ ! -d /sys/kernel/debug/fail_page_alloc ] || echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
	./fail_nth load "$RPMU/rpmu.ko" $PART >&3
	status=$?
	if [ "$status" = 4 ]; then
		because "this kernel has no fault injection"
		return "$KSFT_SKIP"
	fi
	[ "$status" = 0 ] && all_is_well && ensure_loaded && ./fail_nth open $PART >&3 && all_is_well && ensure_unloaded && all_is_well
}

LEAKS=/sys/kernel/debug/kmemleak

# With kmemleak=off, the file also exists, and "clear" succeeds.
looks_for_leaks() {
	(echo stack=on >$LEAKS) 2>/dev/null
}

# leaks: prints unreferenced objects. kmemleak ignores objects younger than five
# seconds.
leaks() {
	sleep 6
	echo scan >$LEAKS
	echo scan >$LEAKS
	cat $LEAKS
}

no_leak() {
	if ! looks_for_leaks; then
		because "this kernel has no kmemleak"
		return "$KSFT_SKIP"
	fi
	leaks >/tmp/leaks
	[ -s /tmp/leaks ] || return 0
	because "$(grep -c '^unreferenced' /tmp/leaks) leaks"
	head -n 60 /tmp/leaks | sed 's/^/# /'
	return 1
}

# Ignore leaks from before the tests.
if looks_for_leaks; then
	leaks >/dev/null
	echo clear >$LEAKS
fi
run_test load_neighbours
for name in $(echo "${LIST:-fuzz,loads,hotplug,nmi,shared,failures}" | tr , ' '); do
	log_mark "$name"
	progress "$name"
	run_test "$name"
done
run_test unload_neighbours
run_test no_leak
finish
