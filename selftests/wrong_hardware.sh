#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests faulty hardware: rpmu refuses to load with one line in the log, or is not
# affected. Errors are injected into the emulated PMU (selftests/vpmu/README.md)
# while the kernel runs. Starts and ends on the built-in driver.

. ./ktap.sh

LATE_PMI=1
REPEATED_PMI=2
STUCK_GENERAL=4
STUCK_FIXED=8
FEWER=16
MISSING=32
HYBRID=64
VERSION=256
MODEL=65536
MORE=16777216
WRONG_RECORDS=33554432
NO_SMM_FREEZE=67108864
STUCK_CTRL=$((1 << 33))
FREEZE=$CPU_PMU/freeze_on_smi
CPU1=/sys/devices/system/cpu/cpu1/online

built_in_at_start() {
	if loaded; then
		because "rpmu is loaded already"
		return 1
	fi
	counts
}

# no_trouble: succeeds if the kernel's log is clean since log_mark.
no_trouble() {
	trouble=$(log_trouble since)
	[ -z "$trouble" ] && return
	because "$(echo "$trouble" | head -n 1)"
	return 1
}

# stays_out WHAT PATTERN: succeeds if rpmu refuses to load with the defect, gives the
# reason, and leaves the built-in driver working.
stays_out() {
	inject "$1" || return
	log_mark "$0"
	refused 'No such device' && one_reason "$2" && no_trouble
	status=$?
	repair && counts && return "$status"
	return 1
}

models_that_are_not_driven() {
	stays_out $((0x0f * MODEL)) 'Core 2 is not supported yet: it needs a table of its events; keep the built-in driver' &&
		stays_out $((0xaa * MODEL)) 'Meteor Lake is not .*: it needs CPUID leaf 0x23; keep' &&
		stays_out $((0xdd * MODEL)) 'Clearwater Forest is not .*: it needs a table of its events, CPUID leaf 0x23 and arch.* PEBS; keep'
}

hybrid_cpu() {
	stays_out "$HYBRID" 'hybrid.*keep the built-in driver'
}

version_too_old() {
	stays_out $((1 * VERSION)) 'version 1 is too old.*keep the built-in driver'
}

no_version() {
	stays_out $((255 * VERSION)) 'has no PMU'
}

general_counter_is_stuck() {
	stays_out "$STUCK_GENERAL" 'PMC[37] does not hold what is written to it'
}

fixed_counter_is_stuck() {
	stays_out "$STUCK_FIXED" 'FIXED[23] does not hold what is written to it'
}

counters_missing() {
	stays_out "$MISSING" 'PMC2 does not hold what is written to it'
}

# Counts six events on two counters. An event that needs the third counter is refused; Ice Lake has no such event.
multiplexes() {
	passes perf stat -x, -e r0c4:u,r1c4:u,r2c4:u,r4c4:u,r8c4:u,r20c4:u ./counted branches 3000000 || return
	if grep -q '<not' /tmp/passes; then
		because "$(grep -m 1 '<not' /tmp/passes)"
		return 1
	fi
	grep -q '^model name.*Icelake' /proc/cpuinfo && return
	perf stat -e r148:u true >/tmp/passes 2>&1
	grep -q 'r148:u.*Invalid argument' /tmp/passes && return
	because "an event for counter 2: $(head -n 3 /tmp/passes)"
	return 1
}

# loaded_with PARAMETERS WHAT TEST: loads rpmu with the defect and runs the test.
loaded_with() {
	inject "$2" || return
	log_mark "$0"
	status=1
	if load_with "$1"; then
		"$3"
		status=$?
		if ! unload; then
			because "unload: $said"
			status=1
		fi
	else
		because "load: $said"
	fi
	no_trouble || status=1
	repair && counts && return "$status"
	return 1
}

few_counters_do() {
	log_since | grep -q ' 2 general-purpose and 1 fixed counters' || {
		because "$(log_since | grep rpmu: | head -n 1)"
		return 1
	}
	counts && multiplexes
}

fewer_counters() {
	loaded_with '' "$FEWER" few_counters_do
}

eight_counters_do() {
	if log_since | grep -q ' 8 general-purpose and [34] fixed counters' &&
		log_since | grep -q ' 2 more general-purpose counters are not used'; then
		counts
		return
	fi
	because "$(log_since | grep -m 1 rpmu:)"
	return 1
}

# A CPU of an unknown model reports ten counters: rpmu uses the eight whose registers have the same addresses on all
# models.
more_counters_than_addresses() {
	if [ "$(cat /sys/devices/system/cpu/smt/active)" != 0 ]; then
		because "a thread of this core has four counters, and not eight"
		return "$KSFT_SKIP"
	fi
	loaded_with '' $((MORE + 0xee * MODEL)) eight_counters_do
}

# pmis: prints the number of PMIs so far, on all CPUs.
pmis() {
	awk '$1 == "PMI:" { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

# nothing_is_lost [PMIS]: counts and samples 10,000,000 instructions exactly, while counters overflow at least PMIS times
# (default: as often as with max_period=10000).
nothing_is_lost() {
	before=$(pmis)
	passes ./exact_count && passes ./counted reads 20000 && lift_sample_limits || return
	passes perf record -o /tmp/wrong.data -c 9001 -e instructions:u ./exact_loop
	status=$?
	put_back_sample_limits && [ "$status" = 0 ] || return 1
	after=$(pmis)
	samples=$(sed -n 's/.*(\([0-9]*\) samples).*/\1/p' /tmp/passes)
	echo "# $((after - before)) interrupts, ${samples:-no} samples"
	if [ $((after - before)) -lt "${1:-2000}" ]; then
		because "$((after - before)) interrupts: nothing has overflowed"
		return 1
	fi
	[ "${samples:-0}" -ge 1105 ] && [ "$samples" -le 1111 ] && return
	because "${samples:-no} samples"
	return 1
}

pmi_is_late() {
	loaded_with max_period=10000 "$LATE_PMI" nothing_is_lost
}

pmi_comes_twice() {
	loaded_with max_period=10000 "$REPEATED_PMI" nothing_is_lost
}

pmi_is_late_and_comes_twice() {
	loaded_with max_period=10000 $((LATE_PMI + REPEATED_PMI)) nothing_is_lost
}

# Takes precise samples from invalid records, with any content. Samples after the defect is removed must be right.
records_make_no_sense() {
	for program in precise precise_memory precise_shared; do
		./$program >/dev/null 2>&1
	done
	repair || return
	passes ./precise
	status=$?
	inject "$WRONG_RECORDS" && return "$status"
}

records_are_wrong() {
	if ! grep -q '[1-9]' $CPU_PMU/caps/max_precise; then
		because "this CPU has no PEBS"
		return "$KSFT_SKIP"
	fi
	loaded_with '' "$WRONG_RECORDS" records_make_no_sense
}

# Hypervisors may reject the bit of IA32_DEBUGCTL that stops counters in SMM.
no_smm_freeze() {
	loaded_with '' "$NO_SMM_FREEZE" counts
}

# beside WHAT TEST...: runs the test with the error on the driver that is loaded.
beside() {
	inject "$1" || return
	log_mark "$0"
	shift
	"$@"
	status=$?
	no_trouble || status=1
	repair && counts && return "$status"
	return 1
}

built_in_driver_beside_late_pmis() {
	beside "$LATE_PMI" nothing_is_lost 1100
}

# The built-in driver claims no interrupt without an overflow, so the kernel reports the repeated ones.
UNKNOWN_NMI='NMI received for unknown reason|Dazed and confused'

built_in_driver_beside_repeated_pmis() {
	inject "$REPEATED_PMI" || return
	log_mark "$0"
	nothing_is_lost 1100
	status=$?
	echo "# $(log_since | grep -cE "$UNKNOWN_NMI") lines about unknown NMIs"
	trouble=$(log_trouble since | grep -vE "$UNKNOWN_NMI")
	if [ -n "$trouble" ]; then
		because "$(echo "$trouble" | head -n 1)"
		status=1
	elif [ "$status" = 0 ]; then
		forget_log
	fi
	repair && counts && return "$status"
	return 1
}

# Counts exactly, also on a CPU that has come up again. exact_count would read CPUID itself.
works_on_each_cpu() {
	counts && passes ./counted reads 1000 || return
	[ -e $CPU1 ] || return 0
	echo 0 >$CPU1 && echo 1 >$CPU1 || return
	passes taskset 2 ./counted check
}

# CPUID reports another model and version than at boot, and a hybrid processor, as it may report something else after a
# late update of the microcode. The registers are as before.
CHANGED_CPUID=$((HYBRID + 1 * VERSION + 0xee * MODEL))

# on_both TEST...: runs the test on the built-in driver, and on rpmu after it has been loaded.
on_both() {
	"$@" || return
	load || {
		because "load: $said"
		return 1
	}
	"$@"
	status=$?
	unload || {
		because "unload: $said"
		return 1
	}
	counts && return "$status"
}

beside_changed_cpuid() {
	beside "$CHANGED_CPUID" works_on_each_cpu
}

cpuid_changes_later() {
	on_both beside_changed_cpuid
}

# freeze_on_smi can be set and counters count, although the register does not have the bit any more.
sets_freeze() {
	before=$(cat "$FREEZE")
	for value in 0 1 "$before"; do
		echo "$value" >"$FREEZE" && counts && continue
		because "freeze_on_smi=$value: ${counted_said:-cannot be set}"
		return 1
	done
}

beside_missing_freeze() {
	beside "$NO_SMM_FREEZE" sets_freeze && sets_freeze
}

smm_freeze_disappears() {
	on_both beside_missing_freeze
}

# A counter cannot be disabled in GLOBAL_CTRL.
beside_stuck_control() {
	beside "$STUCK_CTRL" nothing_is_lost 1100
}

counter_stays_enabled() {
	on_both beside_stuck_control
}

for name in built_in_at_start models_that_are_not_driven hybrid_cpu version_too_old no_version \
	general_counter_is_stuck fixed_counter_is_stuck counters_missing fewer_counters more_counters_than_addresses \
	pmi_is_late pmi_comes_twice pmi_is_late_and_comes_twice records_are_wrong no_smm_freeze \
	built_in_driver_beside_late_pmis built_in_driver_beside_repeated_pmis cpuid_changes_later smm_freeze_disappears \
	counter_stays_enabled; do
	run_test $name
done
finish
