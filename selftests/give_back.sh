#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests the give-back of PEBS: the built-in driver caches its last value of MSR_PEBS_DATA_CFG, and does not
# write the same value again, so rpmu must restore it. Starts and ends on the built-in driver.

. ./ktap.sh

# samples TEST: succeeds if the current driver passes a test of precise.
samples() {
	./precise -r "precise.$1" >/tmp/precise 2>&1 && return
	because "$1, $(loaded && echo on rpmu || echo on the built-in driver): $(grep -m 1 Expected /tmp/precise)"
	return 1
}

# give_back TEST: rpmu passes a test of precise, and gives the PMU back.
give_back() {
	load || {
		because "load: $said"
		return 1
	}
	samples "$1"
	status=$?
	unload && return "$status"
	because "unload: $said"
	return 1
}

# Consecutive tests, on alternating drivers, need different fields in the records.
records() {
	if [ "$(cat "$CPU_PMU"/caps/max_precise 2>/dev/null || echo 0)" = 0 ]; then
		because "the driver reports no precise events"
		return "$KSFT_SKIP"
	fi
	samples addresses && give_back branch_stacks && samples addresses || return
	samples xmm && give_back branch_stacks && samples addresses || return
	samples branch_stacks && give_back addresses && samples branch_stacks
}

run_test records
finish
