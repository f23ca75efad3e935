#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests a CPU without a PMU (QEMU: pmu=off): rpmu refuses to load, with one line in
# the log.

. ./ktap.sh

no_pmu_here() {
	[ ! -e "$CPU_PMU" ] && return
	because "there is a PMU \"cpu\": not the guest for this test"
	return 1
}

refused_without_pmu() {
	log_mark "$0"
	refused 'No such device' && one_line 'no .*(PMU|performance|perfmon)'
}

refused_again() {
	refused_without_pmu
}

for name in no_pmu_here refused_without_pmu refused_again; do
	run_test $name
done
finish
