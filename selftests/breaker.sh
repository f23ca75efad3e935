#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests the circuit breaker: if the PMU shows that it does not work, rpmu switches
# it off and says why. Errors are injected into the emulated PMU
# (selftests/vpmu/README.md). Starts and ends on the built-in driver.

. ./ktap.sh

STUCK_STATUS=$((1 << 7))
STUCK_FIXED=$((1 << 3))
ENDLESS_PMI=$((1 << 28))
STILL=$((1 << 29))
BACKWARDS=$((1 << 30))
FAULTING=$((1 << 31))

GIVEN_UP='All counters are off, their events are in the error state'
BREAKER=/sys/kernel/debug/rpmu/breaker
CPU1=/sys/devices/system/cpu/cpu1/online

# within SECONDS COMMAND...: succeeds if the command does within this time.
within() {
	tries=$(($1 * 20))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return
		usleep 50000
	done
}

given_up() {
	log_since | grep -qF "$GIVEN_UP"
}

# samples: takes samples in user space.
samples() {
	perf record -o /tmp/breaker.data -c 1000003 -e instructions:u ./exact_loop >/dev/null 2>&1
}

# counts_all: counts instructions of all levels for a second, and reads them ten times.
counts_all() {
	perf stat -o /tmp/breaker.stat -I 100 -e instructions timeout 1 sh -c 'while :; do :; done' >/dev/null 2>&1
}

counts_reference_cycles() {
	perf stat -o /tmp/breaker.stat -e ref-cycles:u ./exact_loop >/dev/null 2>&1
}

cpu_comes_up() {
	echo 0 >$CPU1 && echo 1 >$CPU1
}

# no_longer_counts CAUSE: succeeds if rpmu has given up for the CAUSE, which it names in its only line and in debugfs,
# an event that was counting has no count, and new events are refused with the cause.
no_longer_counts() {
	if ! within 1 given_up; then
		because 'rpmu has not given up'
		[ ! -e $BREAKER ] || sed 's/^/# /' $BREAKER
		return 1
	fi
	touch /tmp/breaker.end
	wait "$hog"
	if [ "$(log_since | grep -cF "$GIVEN_UP")" != 1 ] || ! log_since | grep -F "$GIVEN_UP" | grep -qF "$1"; then
		because "the log: $(said_by_rpmu | tail -n 3)"
		return 1
	fi
	if ! grep -qF "$1" $BREAKER; then
		because "$BREAKER: $(head -n 1 $BREAKER)"
		return 1
	fi
	if ! grep -q '^<not counted>,' /tmp/breaker.hog; then
		because "an event that was counting: $(cat /tmp/breaker.hog)"
		return 1
	fi
	refused=$(perf stat -e r0c4:u true 2>&1)
	case $refused in
	*'No such device'*) ;;
	*)
		because "a new event: $(echo "$refused" | head -n 2)"
		return 1
		;;
	esac
	# A kernel without CONFIG_SYMBOLIC_ERRNAME prints the number.
	if ! tail -n 1 /sys/kernel/debug/rpmu/refusals | grep -F "$1" | grep -qE 'ENODEV|Error\(19\)'; then
		because "refusals: $(tail -n 1 /sys/kernel/debug/rpmu/refusals)"
		return 1
	fi
}

# gives_up CAUSE WHAT COMMAND: loads rpmu, and injects the error WHAT while an event counts; the COMMAND makes the error
# show. Once the error has been removed, both drivers must count exactly.
gives_up() {
	log_mark "$0"
	if ! load; then
		because "load: $said"
		return 1
	fi
	status=1
	if counts; then
		rm -f /tmp/breaker.begun /tmp/breaker.end
		perf stat -x, -o /tmp/breaker.hog -e r0c4:u -- \
			sh -c 'touch /tmp/breaker.begun; until [ -e /tmp/breaker.end ]; do :; done' &
		hog=$!
		if within 60 [ -e /tmp/breaker.begun ] && inject "$2"; then
			$3
			no_longer_counts "$1"
			status=$?
			repair || status=1
		fi
		touch /tmp/breaker.end
		wait "$hog"
	fi
	trouble=$(log_trouble since)
	if [ -n "$trouble" ]; then
		because "$(echo "$trouble" | head -n 1)"
		status=1
	fi
	if ! unload; then
		because "unload: $said"
		return 1
	fi
	counts && load && counts && unload && return "$status"
	because 'not exact after the error'
	return 1
}

is_amd() {
	grep -q AuthenticAMD /proc/cpuinfo || return
	because 'not for the PMUs of AMD (limits.md)'
}

interrupts_do_not_end() {
	is_amd && return "$KSFT_SKIP"
	gives_up 'interrupts without an overflow' $ENDLESS_PMI samples
}

overflows_cannot_be_acknowledged() {
	is_amd && return "$KSFT_SKIP"
	gives_up 'cannot be acknowledged' $STUCK_STATUS samples
}

counters_stand_still() {
	gives_up 'does not count' $STILL counts_all
}

counters_run_backwards() {
	gives_up 'ran backwards' $BACKWARDS counts_all
}

fixed_counter_ignores_writes() {
	is_amd && return "$KSFT_SKIP"
	gives_up 'ran backwards or jumped' $STUCK_FIXED counts_reference_cycles
}

# Without a breaker: wrong counts, and no error.
built_in_driver_counts_wrongly() {
	for what in $STILL $BACKWARDS; do
		inject "$what" || return
		wrong=1
		./counted check >/dev/null 2>&1 && wrong=0
		repair || return
		if [ "$wrong" = 0 ]; then
			because "what=$what has no effect"
			return 1
		fi
		counts || return
	done
}

register_faults_at_load() {
	inject $FAULTING || return
	log_mark "$0"
	refused 'No such device' && one_reason 'PMC[0-9] does not hold what is written to it'
	status=$?
	repair && counts && return "$status"
	return 1
}

register_faults() {
	gives_up 'a register of the PMU faults' $FAULTING cpu_comes_up
}

for name in built_in_driver_counts_wrongly overflows_cannot_be_acknowledged interrupts_do_not_end counters_stand_still counters_run_backwards \
	fixed_counter_ignores_writes register_faults register_faults_at_load; do
	run_test $name
done
finish
