#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# Functions for the shell tests, on top of the kernel's ktap_helpers.sh; sourced.
#
# A test is a function that returns $KSFT_PASS, $KSFT_FAIL or $KSFT_SKIP, and
# reports the reason with `because`.

# shellcheck source-path=SCRIPTDIR/guest
. ./guest-lib.sh
# shellcheck source=/dev/null
. ../kselftest/ktap_helpers.sh

because() {
	reason=$*
	echo "# $*"
}

# run_test NAME: runs the function of that name and prints its result.
run_test() {
	reason=''
	"$1"
	case $? in
	"$KSFT_PASS") ktap_test_pass "$1" ;;
	"$KSFT_SKIP")
		# Like ktap_test_skip, but with the reason.
		__ktap_test ok "$1" "SKIP $reason"
		KTAP_CNT_SKIP=$((KTAP_CNT_SKIP + 1))
		;;
	*) ktap_test_fail "$1" ;;
	esac
}

finish() {
	ktap_set_plan $((KTAP_TESTNO - 1))
	ktap_finished
}

# counts: succeeds if a known loop is counted exactly.
counts() {
	counted_said=$(./counted check 2>&1) && return
	because "a known loop: $counted_said"
	return 1
}

# refused ERROR: succeeds if loading fails with that message and leaves no module loaded.
refused() {
	if load; then
		because "loading was not refused"
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

# said_by_rpmu: prints rpmu's lines in the log since log_mark. Omits the kernel's lines about out-of-tree and unsigned
# modules and, with trust_layouts=1 on a kernel without BTF, rpmu's line about that.
said_by_rpmu() {
	usual='loading out-of-tree module|module verification failed'
	case $RPMU_PARAMETERS in
	*trust_layouts=1*) usual="$usual|structures cannot be checked .*with trust_layouts=1, rpmu assumes" ;;
	esac
	log_since | grep 'rpmu: ' | grep -vE "$usual"
}

# one_line PATTERN: succeeds if rpmu has logged exactly one line since log_mark, and
# it matches.
one_line() {
	lines=$(said_by_rpmu | wc -l)
	if [ "$lines" -ne 1 ]; then
		because "$lines lines in the log instead of one"
		said_by_rpmu | sed 's/^/# /'
		return 1
	fi
	said_by_rpmu | grep -qiE "$1" && return
	because "the line does not contain \"$1\": $(said_by_rpmu)"
	return 1
}

# one_reason PATTERN: the same, but ignores the line that the built-in driver has its PMU back.
one_reason() {
	reasons=$(said_by_rpmu | grep -v 'the built-in driver has its PMU back$')
	[ "$(echo "$reasons" | wc -l)" = 1 ] && echo "$reasons" | grep -qE "$1" && return
	because "not one line with \"$1\": $reasons"
	return 1
}

# sample_limits RATE PERCENT: sets the limits on samples per second and on their share of the CPU's time. With 0
# percent, the kernel does not lower the rate when interrupts take long.
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

# put_back_sample_limits: restores the limits at boot.
put_back_sample_limits() {
	sample_limits 100000 25
}

# forget_log: empties the kernel's log except for the marks, if a test has provoked trouble there and checked it.
forget_log() {
	marks=$(dmesg | sed -n 's/.*\(rpmu-selftest: mark .*\)/<6>\1/p')
	dmesg -c >/dev/null
	echo "$marks" | while IFS= read -r line; do
		echo "$line" >/dev/kmsg
	done
}

# inject WHAT: injects defects into the emulated PMU until `repair`.
inject() {
	output=$(./module load ./wrong.ko "what=$1" 2>&1) && return
	because "what=$1: $output"
	return 1
}

repair() {
	output=$(./module unload wrong 2>&1) && return
	because "unload: $output"
	return 1
}

# passes PROGRAM...: runs the program. If it fails, prints its messages about failed tests, and gives its last line as
# the reason.
passes() {
	"$@" >/tmp/passes 2>&1 && return
	grep -B 6 '^not ok' /tmp/passes | sed 's/^#* */# /'
	because "$*: $(tail -n 1 /tmp/passes)"
	return 1
}
