#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests the give-back of precise events: the built-in driver caches the contents of records that it has
# last selected, and does not write the register again for these. Starts and ends on the built-in driver.

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

# The records of each driver have more fields than an address, or fewer, than the records of the other driver before it.
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
