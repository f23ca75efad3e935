#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests rpmu with initcall_blacklist=init_hw_perf_events,bts_init, with which the
# built-in driver never runs: rpmu uses the PMU without a take-over, sets up the
# CPUs itself, and leaves no PMU and no changes in the built-in driver's data.

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

# Another module has registered a PMU of rpmu's type.
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

# The data of the built-in driver that rdpmc needs: x86_pmu, and each CPU's dirty counters.
built_in_data() {
	./kdata x86_pmu 512
	for cpu in 0 1; do
		./kdata cpu_hw_events 1024 $cpu
	done
}

no_rdpmc() {
	./counted rdpmc || return 0
	because "$1: RDPMC does not fault"
	return 1
}

# In mode 2, any task may read counters; after unload, no task may. The data is the same as before.
rdpmc_ends() {
	before=$(built_in_data) || {
		because "the data cannot be read: $before"
		return 1
	}
	no_rdpmc before || return
	load || {
		because "load: $said"
		return 1
	}
	no_rdpmc loaded || return
	echo 2 >"$CPU_PMU/rdpmc"
	./counted rdpmc || {
		because "RDPMC faults in mode 2"
		return 1
	}
	# Leaves dirty counters behind on both CPUs.
	for cpu in 0 1; do
		taskset -c $cpu ./counted check >/dev/null || {
			because "no exact count on CPU $cpu"
			return 1
		}
	done
	if [ "$(built_in_data)" = "$before" ]; then
		because "the data has not changed"
		return 1
	fi
	unload || {
		because "unload: $said"
		return 1
	}
	no_rdpmc unloaded || return
	[ "$(built_in_data)" = "$before" ] && return
	because "the data differs from before"
	return 1
}

dry_run_finds_no_driver() {
	log_mark "$0"
	if load_with dry_run=1; then
		because "a dry run has loaded rpmu"
		unload
		return 1
	fi
	for line in 'no built-in driver is in charge' 'dry run: rpmu would load; nothing has changed'; do
		said_by_rpmu | grep -q "$line" && continue
		because "$said: no line with \"$line\" in the log"
		return 1
	done
	no_built_in
}

for name in no_built_in dry_run_finds_no_driver refused_while_module_drives five_rounds rdpmc_ends; do
	run_test $name
done
finish
