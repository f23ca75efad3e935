#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests dry_run=1: rpmu logs what loading would do, fails, and has changed nothing.
# Starts and ends on the built-in driver.

. ./ktap.sh

WOULD='Operation canceled'
BUSY='Device or resource busy'

# dry_run ERROR: succeeds if a dry run fails with that message.
dry_run() {
	log_mark "$0"
	if load_with dry_run=1; then
		because "a dry run has loaded rpmu"
		unload
		return 1
	fi
	case $said in
	*"$1"*) ;;
	*)
		because "dry run: $said"
		return 1
		;;
	esac
	if loaded; then
		because "there is a /sys/module/rpmu after a dry run"
		return 1
	fi
}

# says PATTERN…: succeeds if the log since log_mark has a line of rpmu's for each pattern.
says() {
	for pattern; do
		said_by_rpmu | grep -qE "$pattern" && continue
		because "no line with \"$pattern\" in the log"
		said_by_rpmu | sed 's/^/# /'
		return 1
	done
}

# The PMU's device, which a take-over replaces, its settings, and the built-in driver's data of each CPU that user
# space's reads of counters depend on.
state() {
	stat -c %i "$CPU_PMU/" 2>&1
	cat "$CPU_PMU/type" "$CPU_PMU/rdpmc" 2>&1
	./kdata x86_pmu 512
}

# unchanged ERROR PATTERN…: does a dry run that says this, and compares the state before and after.
unchanged() {
	error=$1
	shift
	before=$(state)
	dry_run "$error" && says "$@" || return
	after=$(state)
	[ "$before" = "$after" ] && return
	because "the dry run has changed: $before; $after"
	return 1
}

changes_nothing() {
	unchanged "$WOULD" 'dry run: .* PMU, [0-9]+ general-purpose and [0-9] fixed counters of [0-9]+ bits' \
		'KVM: ' 'dry run: rpmu would load; nothing has changed' && counts
}

# A dry run names the features that a load then has.
names_the_features() {
	dry_run "$WOULD" || return
	features='events can be precise up to|samples can have the last|transactions abort while|events 0xd0 to 0xd3'
	before=$(said_by_rpmu | grep -oE "($features).*" | sort)
	log_mark "$0"
	load || {
		because "load: $said"
		return 1
	}
	now=$(said_by_rpmu | grep -oE "($features).*" | sort)
	unload || {
		because "unload: $said"
		return 1
	}
	[ "$before" = "$now" ] && return
	because "the dry run has named '$before', the load '$now'"
	return 1
}

# The event that is in the way keeps counting.
names_the_users() {
	rm -f /tmp/held
	./counted hold /tmp/held &
	holder=$!
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ -e /tmp/held ] && break
		usleep 500000
	done
	unchanged "$BUSY" "1 of counted\[$holder\] \(end running perf" 'dry run: rpmu would not load \(EBUSY\)' && counts
	status=$?
	kill "$holder"
	wait "$holder" 2>/dev/null
	return "$status"
}

# taken WHAT PATTERN: the same while another module holds WHAT.
taken() {
	if ! taken=$(./module load ./taken.ko "what=$1" 2>&1); then
		because "what=$1: $taken"
		return 1
	fi
	dry_run "$BUSY" && says "$2" 'dry run: rpmu would not load \(EBUSY\)'
	status=$?
	./module unload taken >/dev/null || return
	return "$status"
}

names_a_taken_counter() {
	taken counter 'MSR 0x(c4|c0010207|c0010007) is reserved by another module'
}

names_a_counting_module() {
	taken event 'events of the kernel: 1, 1 of taken_overflow \[taken\]'
}

# Bad parameters are refused as in a load.
refuses_bad_parameters() {
	log_mark "$0"
	if load_with 'dry_run=1 policy=none'; then
		because "policy=none was accepted"
		unload
		return 1
	fi
	case $said in
	*'Invalid argument'*) one_line 'policy="none" is unknown' ;;
	*)
		because "$said"
		return 1
		;;
	esac
}

# After dry runs, a load works as ever.
loads_afterwards() {
	load || {
		because "load: $said"
		return 1
	}
	counts
	status=$?
	unload && counts && return "$status"
	because "unload: $said"
	return 1
}

for name in changes_nothing names_the_features names_the_users names_a_taken_counter names_a_counting_module \
	refuses_bad_parameters loads_afterwards; do
	run_test $name
done
finish
