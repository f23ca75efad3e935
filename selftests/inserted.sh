#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests a kernel whose struct perf_event has a member that did not exist when rpmu was
# built (scripts/inserted): rpmu refuses to load and changes nothing. Starts and ends on
# the built-in driver.

. ./ktap.sh

member_inserted() {
	counts || return
	log_mark "$0"
	refused 'Exec format error' &&
		one_line 'struct perf_event, member hw\.event_base_rdpmc: built for 4 bytes at offset [0-9]+, this kernel has 4 bytes at offset [0-9]+;' &&
		counts
}

run_test member_inserted
finish
