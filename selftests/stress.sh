#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Abuse, one kind a test. After each piece the kernel's log has no complaint
# and events count exactly. Starts and ends without rpmu.
#
#	rpmu.stress=LIST	which (default: all)
#		fuzz		random calls, see stress/fuzz.c
#		loads		loading, which takes the PMU over from the built-in
#				driver, and unloading, while tasks with software
#				events come and go
#		hotplug		CPUs that go and come while events count on them;
#				both by stress/rounds.c
#		nmi		overflows of every counter as fast as they come, with
#				the NMI watchdog on rpmu and without
#		failures	each allocation of loading and of opening fails once
#	rpmu.seed=N		of the random calls
#	rpmu.calls=N		how many
#	rpmu.rounds=N		loads and unloads; CPUs off and on line
#	rpmu.pmis=N		overflow interrupts in each of the two storms
#	rpmu.without=LIST	kinds of random calls to leave out
#	rpmu.driver=built-in	the same calls to the built-in driver, to compare with

. ./ktap.sh

SEED=$(cmdline seed)
CALLS=$(cmdline calls)
ROUNDS=$(cmdline rounds)
PMIS=$(cmdline pmis)
LIST=$(cmdline stress)
DRIVER=$(cmdline driver)
WITHOUT=$(cmdline without | tr , ' ')

# progress WORDS: run-tests shows what a test says when it has ended, and this at once.
progress() {
	echo "# $(cut -d. -f1 /proc/uptime) s: $*" >&3
} 2>/dev/null

# What of the log's trouble is no fault of rpmu's.
NOT_OURS='^$'

# all_is_well: what must hold after everything.
all_is_well() {
	trouble=$(log_trouble since | grep -vE "$NOT_OURS")
	if [ -n "$trouble" ]; then
		because "$(echo "$trouble" | head -n 1)"
		log_since | grep -A 30 -E "$TROUBLE" | head -n 60 | sed 's/^/# /'
		return 1
	fi
	counts && return
	# Who has the counters then, for whoever looks into it.
	sed 's/^/# /' /sys/kernel/debug/rpmu/cpu*/schedule 2>/dev/null
	return 1
}

loaded_first() {
	[ "$DRIVER" != built-in ] || return 0
	loaded || load && return
	because "load: $said"
	return 1
}

unloaded_then() {
	loaded || return 0
	# The last events of a task that has just ended may still be there.
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

# fuzz_piece SEED CALLS: and then all is well.
# shellcheck disable=SC2086 # words
fuzz_piece() {
	if ! ./fuzz "$1" "$2" $WITHOUT; then
		because "the fuzzer with seed $1 did not come to its end"
		return 1
	fi
	all_is_well
}

# fuzz_by_two SEED CALLS: the same at once with another, whose calls do not count.
# shellcheck disable=SC2086 # words
fuzz_by_two() {
	./fuzz $(($1 + 1)) "$2" $WITHOUT >/dev/null 2>&1 &
	other=$!
	fuzz_piece "$1" "$2" && wait "$other"
}

# Often enough that what goes wrong is near what has been called.
PIECE=5000

fuzz() {
	loaded_first || return
	mkdir -p /tmp/fuzz-cgroup
	mount -t cgroup -o perf_event none /tmp/fuzz-cgroup 2>/dev/null ||
		mount -t cgroup2 none /tmp/fuzz-cgroup
	seed=$((SEED * 1000))
	# A small part, as emulated CPUs that take turns wait for each other most of the time then.
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
	[ "$status" = 0 ] && unloaded_then && all_is_well
}

# Both say how far they are, at once.
loads() {
	./rounds loads "$ROUNDS" "$RPMU/rpmu.ko" >&3 && all_is_well
}

hotplug() {
	if [ "$(nproc)" = 1 ]; then
		because "one CPU"
		return "$KSFT_SKIP"
	fi
	loaded_first && ./rounds hotplug "$ROUNDS" >&3 && all_is_well && unloaded_then && all_is_well
}

nmi() {
	loaded_first || return
	./nmi_storm "$PMIS" && watchdog 1 && ./nmi_storm "$PMIS" && watchdog 0 && all_is_well && unloaded_then && all_is_well
}

failures() {
	# Short of memory the kernel shows where, and warns of its tables of a module's jump labels and tracepoints.
	NOT_OURS='Call Trace|page allocation failure|WARNING: kernel/(jump_label|trace/trace_events)\.c'
	for attr in failslab fail_page_alloc; do
		[ -d /sys/kernel/debug/"$attr" ] || continue
		echo N >/sys/kernel/debug/"$attr"/ignore-gfp-wait
		echo 0 >/sys/kernel/debug/"$attr"/verbose
	done
	[ ! -d /sys/kernel/debug/fail_page_alloc ] || echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
	./fail_nth load "$RPMU/rpmu.ko"
	status=$?
	if [ "$status" = 4 ]; then
		because "this kernel has no fault injection"
		return "$KSFT_SKIP"
	fi
	[ "$status" = 0 ] && all_is_well && loaded_first && ./fail_nth open && all_is_well && unloaded_then && all_is_well
}

LEAKS=/sys/kernel/debug/kmemleak

# With kmemleak=off the file is there as well, and can even be cleared.
looks_for_leaks() {
	(echo stack=on >$LEAKS) 2>/dev/null
}

# leaks: what nothing refers to any more. What is younger than five seconds is not looked at.
leaks() {
	sleep 6
	echo scan >$LEAKS
	echo scan >$LEAKS
	cat $LEAKS
}

no_leak() {
	if ! looks_for_leaks; then
		because "this kernel does not look for leaks"
		return "$KSFT_SKIP"
	fi
	leaks >/tmp/leaks
	[ -s /tmp/leaks ] || return 0
	because "$(grep -c '^unreferenced' /tmp/leaks) leaks"
	head -n 60 /tmp/leaks | sed 's/^/# /'
	return 1
}

# What the kernel has lost while it booted is not ours.
if looks_for_leaks; then
	leaks >/dev/null
	echo clear >$LEAKS
fi
for name in $(echo "${LIST:-fuzz,loads,hotplug,nmi,failures}" | tr , ' '); do
	log_mark "$name"
	progress "$name"
	run_test "$name"
done
run_test no_leak
finish
