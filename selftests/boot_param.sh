#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# With initcall_blacklist=init_hw_perf_events,bts_init the built-in driver never
# runs: rpmu takes the PMU without a take-over, sets the CPUs up itself, and leaves
# no PMU behind.

. ./ktap.sh

no_built_in() {
	[ ! -e "$CPU_PMU" ] && return
	because "there is a PMU \"cpu\" before rpmu is loaded"
	return 1
}

five_rounds() {
	for round in 1 2 3 4 5; do
		load || {
			because "round $round: load: $said"
			return 1
		}
		counts || return
		unload || {
			because "round $round: unload: $said"
			return 1
		}
		no_built_in || return
	done
}

# Another module has a PMU of rpmu's type.
refused_while_module_drives() {
	if ! taken=$(./module load ./taken.ko what=pmu 2>&1); then
		because "what=pmu: $taken"
		return 1
	fi
	log_mark "$0"
	refused 'Device or resource busy' && said_by_rpmu | grep -q 'the module taken drives the PMU; unload it first'
	status=$?
	./module unload taken
	return "$status"
}

for name in no_built_in refused_while_module_drives five_rounds; do
	run_test $name
done
finish
