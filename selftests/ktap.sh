#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# TAP for the shell tests; sourced.
#
# A test is a function that returns 0 (passed), 1 (failed) or $SKIP. It says
# why with `because`, which is also the reason of a skip.

# shellcheck source-path=SCRIPTDIR/guest
. ./guest-lib.sh

SKIP=4
ktap_nr=0
ktap_failed=0

because() {
	reason=$*
	echo "# $*"
}

# run_test NAME: run the function of that name.
run_test() {
	ktap_nr=$((ktap_nr + 1))
	reason=''
	"$1"
	case $? in
	0) echo "ok $ktap_nr $1" ;;
	"$SKIP") echo "ok $ktap_nr $1 # SKIP $reason" ;;
	*)
		echo "not ok $ktap_nr $1"
		ktap_failed=1
		;;
	esac
}

finish() {
	echo "1..$ktap_nr"
	exit $ktap_failed
}

# counts: does a known loop count exactly right now?
counts() {
	counted_said=$(./counted check 2>&1) && return
	because "a known loop: $counted_said"
	return 1
}

# refused ERROR: loading fails with that message, and nothing has changed.
refused() {
	if load; then
		because "loading was let through"
		unload
		return 1
	fi
	case $said in
	*"$1"*) ;;
	*)
		because "load: $said"
		return 1
		;;
	esac
	if loaded; then
		because "refused, yet there is a /sys/module/rpmu"
		return 1
	fi
}

# said_by_rpmu: since log_mark; what the kernel says of every such module at
# its first load is not its own.
said_by_rpmu() {
	log_since | grep 'rpmu: ' |
		grep -vE 'loading out-of-tree module|module verification failed'
}

# one_line PATTERN: rpmu has said exactly one line since log_mark, and that.
one_line() {
	lines=$(said_by_rpmu | wc -l)
	if [ "$lines" -ne 1 ]; then
		because "$lines lines in the log instead of one"
		said_by_rpmu | sed 's/^/# /'
		return 1
	fi
	said_by_rpmu | grep -qiE "$1" && return
	because "the line does not say \"$1\": $(said_by_rpmu)"
	return 1
}

# one_reason PATTERN: one line, and that, besides what says that the built-in driver goes on.
one_reason() {
	reasons=$(said_by_rpmu | grep -v 'the built-in driver has its PMU back$')
	[ "$(echo "$reasons" | wc -l)" = 1 ] && echo "$reasons" | grep -qE "$1" && return
	because "not one line with \"$1\": $reasons"
	return 1
}

# sample_limits RATE PERCENT: of samples in a second, and of the CPU's time; with 0 percent the kernel does not lower
# the rate where interrupts take long.
sample_limits() {
	echo 25 >/proc/sys/kernel/perf_cpu_time_max_percent &&
		echo "$1" >/proc/sys/kernel/perf_event_max_sample_rate &&
		echo "$2" >/proc/sys/kernel/perf_cpu_time_max_percent && return
	because "cannot set the limits on samples"
	return 1
}

lift_sample_limits() {
	sample_limits 10000000 0
}

# put_back_sample_limits: to what they are at boot.
put_back_sample_limits() {
	sample_limits 100000 25
}
