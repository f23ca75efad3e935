#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests trial=SECONDS: when the time is over, the built-in driver has its PMU back,
# whatever events are open, unless root has confirmed the trial.
# Starts and ends on the built-in driver.

. ./ktap.sh

LENGTH=4
PARAMETER=/sys/module/rpmu/parameters/trial

# on_trial [SECONDS]: loads rpmu on trial.
on_trial() {
	log_mark "$0"
	load_with "trial=${1:-$LENGTH}" && return
	because "load: $said"
	return 1
}

# logged PATTERN: waits at most 20 s until rpmu has logged it.
logged() {
	tries=0
	until said_by_rpmu | grep -qE "$1"; do
		tries=$((tries + 1))
		if [ "$tries" -gt 100 ]; then
			because "no line with \"$1\" in the log"
			said_by_rpmu | sed 's/^/# /'
			return 1
		fi
		usleep 200000
	done
}

# time_of PATTERN: prints the time of the line in the log, in microseconds.
time_of() {
	said_by_rpmu | grep -m 1 -E "$1" | sed -nE 's/^\[ *([0-9]+)\.([0-9]+)\].*/\1\2/p'
}

# over: waits until the trial is over; the built-in driver must have its PMU within two seconds, and count exactly.
over() {
	logged 'the built-in driver has its PMU back' || return
	took=$(($(time_of 'has its PMU back') - $(time_of 'the trial is over')))
	if [ "$took" -gt 2000000 ]; then
		because "giving back took $took microseconds"
		return 1
	fi
	counts
}

# ended: unloads rpmu after a trial.
ended() {
	unload && counts && return
	because "unload: $said"
	return 1
}

# held FILE: waits until the file exists.
held() {
	tries=0
	until [ -e "$1" ]; do
		tries=$((tries + 1))
		if [ "$tries" -gt 100 ]; then
			because "no event was opened"
			return 1
		fi
		usleep 100000
	done
}

# end PID: ends a process.
end() {
	kill "$1"
	wait "$1"
} 2>/dev/null

gives_back() {
	on_trial || return
	logged "trial: the built-in driver gets its PMU back in $LENGTH s" && counts && over
	status=$?
	ended && return "$status"
	return 1
}

# Events of a task and of a CPU.
revokes_open_events() {
	on_trial || return
	rm -f /tmp/held /tmp/held-cpu
	./counted hold /tmp/held &
	task=$!
	./counted hold-cpu /tmp/held-cpu &
	cpu=$!
	held /tmp/held && held /tmp/held-cpu && over
	status=$?
	end "$task"
	end "$cpu"
	ended && return "$status"
	return 1
}

# perf stat ends as ever. perf record, which has mapped its events, ends when they do, and has samples from before.
revokes_events_of_perf() {
	on_trial || return
	perf stat -x, -e instructions:u,branches:u -- sleep 9 >/tmp/stat 2>&1 &
	stat=$!
	# shellcheck disable=SC2016 # the shell that is measured expands it
	perf record -q -e instructions:u -c 100000 -o /tmp/trial.data -- sh -c \
		'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; sleep 9' >/tmp/record 2>&1 &
	record=$!
	over
	status=$?
	wait "$stat" || {
		because "perf stat: $(head -n 1 /tmp/stat)"
		status=1
	}
	wait "$record"
	if [ "$status" = 0 ] && [ "$(perf script -i /tmp/trial.data 2>/dev/null | wc -l)" -lt 2 ]; then
		because "perf record has no samples from before the end"
		status=1
	fi
	ended && return "$status"
	return 1
}

# The watchdog's events are revoked, too; it can be switched off and on.
revokes_the_watchdog() {
	on_trial || return
	if ! watchdog 1; then
		ended
		because "the kernel has no NMI watchdog here"
		return "$KSFT_SKIP"
	fi
	over
	status=$?
	if ! watchdog 0 || ! watchdog 1; then
		because "the watchdog cannot be switched off and on"
		status=1
	fi
	counts || status=1
	watchdog 0
	ended && return "$status"
	return 1
}

# A task is stuck in an ioctl, with the mutex of its events locked: the log names it, and giving back follows its end.
names_what_it_cannot_revoke() {
	on_trial 8 || return
	rm -f /tmp/held
	./counted stuck-open /tmp/held &
	stuck=$!
	held /tmp/held && logged "does not get its PMU back yet: events of user space: 1, 1 of counted\[$stuck\]"
	status=$?
	kill -9 "$stuck"
	wait "$stuck"
	logged 'the built-in driver has its PMU back' && counts || status=1
	ended && return "$status"
	return 1
} 2>/dev/null

pages_have_no_index() {
	on_trial 60 || return
	./counted page
	status=$?
	[ "$status" = 0 ] || because "the page of an event: status $status"
	ended && return "$status"
	return 1
}

# Only 0 confirms a trial. Then events stay, and keep rpmu from being unloaded.
keeps_if_confirmed() {
	on_trial || return
	status=0
	if echo 100 >$PARAMETER; then
		because "100 was accepted"
		status=1
	fi
	echo 0 >$PARAMETER
	rm -f /tmp/held
	./counted hold /tmp/held &
	task=$!
	held /tmp/held && logged 'the trial was confirmed: rpmu keeps the PMU' && counts || status=1
	if unload; then
		because "rpmu was unloaded while an event was open"
		status=1
	fi
	end "$task"
	unload && counts && return "$status"
	because "unload: $said"
	return 1
} 2>/dev/null

# Unloaded before the end, rpmu leaves nothing behind that could run later.
ends_early() {
	for _ in 1 2 3; do
		on_trial 2 && counts && ended || return
	done
	sleep 3
	counts
}

refuses_too_long_trials() {
	for seconds in 1000001 -1 many; do
		if load_with "trial=$seconds"; then
			because "trial=$seconds was accepted"
			unload
			return 1
		fi
	done
	counts
}

for name in gives_back revokes_open_events revokes_events_of_perf revokes_the_watchdog names_what_it_cannot_revoke \
	pages_have_no_index keeps_if_confirmed ends_early refuses_too_long_trials; do
	run_test $name
done
finish
