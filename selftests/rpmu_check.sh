#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests rpmu-check, which the guest has in an additional archive (rpmu-check/test.sh). Starts and ends on the built-in
# driver.
#
#	rpmu_check.sh WORD...	part	(default) a part of the checks
#				all	all checks instead of a part, also hotplug
#				page	also print the report's page, compressed
#				TEST	only the tests that are named

. ./ktap.sh

REPORT=/tmp/report
PART=exact,counters,machine,groups,pebs,branches,take-over,rdpmc
# As in wrong_hardware.sh, breaker.sh and other_nmis.sh.
LATE_PMI=1
REPEATED_PMI=2
STUCK_GENERAL=4
STUCK_FIXED=8
FEWER=16
MISSING=32
HYBRID=64
STUCK_STATUS=$((1 << 7))
VERSION=256
MODEL=65536
MORE=$((1 << 24))
WRONG_RECORDS=$((1 << 25))
NO_SMM_FREEZE=$((1 << 26))
RESERVED_STATUS=$((1 << 27))
ENDLESS_PMI=$((1 << 28))
STILL=$((1 << 29))
BACKWARDS=$((1 << 30))
FAULTING=$((1 << 31))

# Details of a person, which must not be in a report.
HOST=gandalf-of-jane
USER=janeroe

# rpmu_check OPTION…: runs it; sets $status, and $said to its messages.
rpmu_check() {
	rm -rf $REPORT
	mkdir -p $REPORT
	said=$(./rpmu-check --module "$RPMU/rpmu.ko" --programs "$RPMU" --out $REPORT "$@" 2>&1)
	status=$?
}

# ends STATUS PATTERN…: succeeds if rpmu-check has ended with that status, its messages match each pattern, and the
# built-in driver has the PMU.
ends() {
	if [ "$status" != "$1" ]; then
		because "status $status instead of $1"
		echo "$said" | tail -n 60 | sed 's/^/# /'
		return 1
	fi
	shift
	for pattern; do
		echo "$said" | grep -qE -e "$pattern" && continue
		because "it does not say \"$pattern\""
		echo "$said" | tail -n 60 | sed 's/^/# /'
		return 1
	done
	if loaded; then
		because "rpmu is still loaded"
		unload
		return 1
	fi
	counts
}

# until_done COMMAND: waits at most 60 s until the command succeeds.
until_done() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ "$tries" -lt 600 ] || return
		usleep 100000
	done
}

says_what_loading_would_do() {
	rpmu_check --dry-run
	ends 0 'rpmu would load' 'Nothing prevents rpmu' 'perf record and perf top work' || return
	[ -z "$(ls $REPORT)" ] && return
	because "a dry run has written a report"
	return 1
}

passes() {
	if [ "$1" = all ]; then
		rpmu_check --hotplug --minutes 60
	else
		rpmu_check --only "$PART"
	fi
	ends 0 'rpmu works on this machine' '^exact .* ok .* ok .* ok ' '^take-over ' 'exact counts of instructions +100 +100 +100'
	status=$?
	# The time that each check took, in all phases.
	echo "$said" | grep -E '^ *[0-9]+ s  ' | sed 's/^/# /'
	return $status
}

# Of the last report, that of a run that passed: three files, and none has a name, a path or an address.
has_nothing_personal() {
	for form in txt json html; do
		if ! grep -q "works on this machine" $REPORT/rpmu-check.$form && [ $form != json ]; then
			because "no report in rpmu-check.$form"
			return 1
		fi
		for word in "$HOST" "$USER" "$RPMU" /tmp '([0-9a-f]{2}:){5}[0-9a-f]{2}'; do
			grep -qE -e "$word" $REPORT/rpmu-check.$form || continue
			because "rpmu-check.$form has \"$word\": $(grep -m 1 -oE -e ".{0,40}$word" $REPORT/rpmu-check.$form)"
			return 1
		done
	done
	grep -q '"end": "complete"' $REPORT/rpmu-check.json
}

# A dry run is over by then, and has not been mistaken for a load.
tests_rpmu() {
	loaded && pidof exact_count >/dev/null
}

# in_background OPTION…: starts a run and waits until rpmu is loaded and a test program runs.
in_background() {
	rm -rf $REPORT
	mkdir -p $REPORT
	./rpmu-check --module "$RPMU/rpmu.ko" --programs "$RPMU" --out $REPORT "$@" >/tmp/said 2>&1 &
	checker=$!
	until_done tests_rpmu && return
	because "rpmu was not loaded, or no test has run"
	kill -9 $checker
	unload
	return 1
}

# Ctrl-C: rpmu-check ends its test programs and gives the PMU back.
gives_back_when_interrupted() {
	in_background --only exact || return
	kill -INT $checker
	wait $checker
	status=$?
	said=$(cat /tmp/said)
	ends 130 'interrupted; the built-in driver has the PMU' 'Interrupted' || return
	pidof exact_count >/dev/null || return 0
	because "a test program still runs"
	return 1
}

# If rpmu-check is killed, the trial gives the PMU back.
gives_back_when_killed() {
	log_mark "$0"
	in_background --only exact --minutes 1 || return
	kill -9 $checker
	wait $checker
	killall -9 exact_count
	tries=0
	until said_by_rpmu | grep -q 'the built-in driver has its PMU back'; do
		tries=$((tries + 1))
		if [ $tries -gt 18 ]; then
			because "the PMU did not go back"
			unload
			return 1
		fi
		sleep 10
	done
	counts
	status=$?
	rm -rf /tmp/rpmu-check-*
	unload && return $status
	because "unload: $said"
	return 1
} 2>/dev/null

names_what_uses_the_pmu() {
	rm -f /tmp/held
	./counted hold /tmp/held &
	held=$!
	until_done test -e /tmp/held
	rpmu_check --only exact
	kill $held
	wait $held
	ends 1 'PMU is in use' 'End what the line names' 'Stopped: rpmu would not load' || return
	! grep -q 'counted\[' $REPORT/rpmu-check.html && return
	because "the report names a process"
	return 1
} 2>/dev/null

wants_rpmu_unloaded() {
	load
	rpmu_check --only exact
	heard=$said
	unload
	said=$heard
	ends 2 'rpmu is loaded already: unload it first'
}

wants_root() {
	said=$(su -s /bin/sh "$USER" -c './rpmu-check' 2>&1)
	status=$?
	ends 2 'only root may load a module: type: sudo rpmu-check'
}

wants_a_module() {
	said=$(./rpmu-check --module /tmp/none.ko 2>&1)
	status=$?
	ends 2 'no such module; make KDIR='
}

# fails WHAT CHECKS PATTERN…: succeeds if rpmu-check fails on a PMU with an injected error, and its messages match each
# pattern.
fails() {
	what=$1
	checks=$2
	shift 2
	if ! output=$(./module load ./wrong.ko "what=$what" 2>&1); then
		because "what=$what: $output"
		return 1
	fi
	rpmu_check --only "$checks"
	./module unload wrong
	ends 1 "$@"
}

# rpmu refuses to load, and says why.
refused_by() {
	what=$1
	checks=$2
	shift 2
	fails "$what" "$checks" '^take-over: loading rpmu: fails on rpmu only' 'Stopped: loading rpmu failed' "$@"
}

# The dry run says that rpmu would not load. No check runs.
would_not_load() {
	what=$1
	shift
	fails "$what" exact 'Stopped: rpmu would not load' "$@" || return
	echo "$said" | grep -q 's  built-in: ' || return 0
	because "a check has run"
	return 1
}

# while_loaded before|after WHAT CHECKS: runs rpmu-check with errors that are injected before or after each load of rpmu,
# and removed before it is unloaded. The built-in driver, on which the checks start, does not survive some errors: it
# faults in RDPMC if counters are missing, and in the handler if PEBS records are wrong, and it warns of an endless loop
# if its status cannot be cleared.
while_loaded() {
	export ERRORS_WHEN="$1" ERRORS="$2" ERRORS_SEEN=/tmp/errors-seen
	rm -f $ERRORS_SEEN
	ln -s "$RPMU/with-errors" /usr/sbin/insmod && ln -s "$RPMU/with-errors" /usr/sbin/rmmod || return
	rpmu_check --only "$3"
	rm /usr/sbin/insmod /usr/sbin/rmmod
	if ! [ -e $ERRORS_SEEN ]; then
		because "what=$2: not injected"
		echo "$said" | tail -n 20 | sed 's/^/# /'
		return 1
	fi
	[ -d /sys/module/wrong ] || return 0
	because "what=$2: not removed"
	./module unload wrong
	return 1
}

# fails_on_rpmu before|after WHAT CHECKS PATTERN…: like fails, but rpmu alone meets the error.
fails_on_rpmu() {
	while_loaded "$1" "$2" "$3" || return
	shift 3
	ends 1 "$@"
}

# switches_off WHAT REASON: rpmu switches its counters off for the reason, which comes first and is explained, and no
# further check runs on it.
switches_off() {
	fails_on_rpmu after "$1" machine,groups,take-over "^breaker: rpmu has switched its counters off: $2" \
		'^    The PMU .* a fault of the hardware or of the hypervisor' '^machine: [a-z_]+: fails on rpmu only' \
		'problems: breaker, machine\.' '^groups .* ok +not run .* ok ' '^take-over .* ok +not run .* ok '
}

# handles WHAT CHECKS PATTERN…: succeeds if rpmu-check passes in spite of the error, and its messages match each pattern.
handles() {
	while_loaded before "$1" "$2" || return
	shift 2
	ends 0 'rpmu works on this machine' "$@"
}

is_amd() {
	grep -q AuthenticAMD /proc/cpuinfo || return
	because "AMD's PMUs do not have it"
}

# A counter that ignores writes: the test of all counters fails.
names_a_stuck_counter() {
	refused_by "$STUCK_GENERAL" exact,counters '^counters: exact\.(task|cpu)\.every_counter: fails on the built-in driver' \
		'does not hold what is written to it' 'A counter of this machine does not work'
}

names_a_stuck_fixed_counter() {
	is_amd && return "$KSFT_SKIP"
	refused_by "$STUCK_FIXED" exact 'FIXED[23] does not hold what is written to it' 'A counter of this machine does not work'
}

names_a_register_that_faults() {
	refused_by "$FAULTING" exact 'PMC[0-9] does not hold what is written to it'
}

names_counters_that_stand_still() {
	fails "$STILL" exact '^exact: exact\.(task|cpu)\.instructions_user: fails on both drivers' 'problems?: .*exact'
}

names_counters_that_run_backwards() {
	fails "$BACKWARDS" exact '^breaker: rpmu has switched its counters off: a counter ran backwards or jumped' \
		'A counter has changed by more than it can count' \
		'^exact: exact\.(task|cpu)\.instructions_user: fails on both drivers' 'problems?: .*exact'
}

names_a_hybrid_processor() {
	is_amd && return "$KSFT_SKIP"
	would_not_load "$HYBRID" 'This processor has cores of different types'
}

names_an_old_version() {
	is_amd && return "$KSFT_SKIP"
	would_not_load $((1 * VERSION)) 'version 1 is too old'
}

names_an_unknown_model() {
	is_amd && return "$KSFT_SKIP"
	would_not_load $((0x0f * MODEL)) 'is not supported' 'rpmu does not know this processor'
}

# The dry run and the checks on the built-in driver find nothing.
names_missing_counters() {
	fails_on_rpmu before "$MISSING" exact '^take-over: loading rpmu: fails on rpmu only' 'Stopped: loading rpmu failed' \
		'PMC2 does not hold what is written to it' 'A counter of this machine does not work'
}

names_wrong_records() {
	is_amd && return "$KSFT_SKIP"
	if ! grep -q '[1-9]' $CPU_PMU/caps/max_precise; then
		because "this CPU has no PEBS"
		return "$KSFT_SKIP"
	fi
	fails_on_rpmu after "$WRONG_RECORDS" pebs '^pebs: precise\.[a-z_]+: fails on rpmu only' 'problems?: pebs'
}

names_a_status_that_cannot_be_cleared() {
	is_amd && return "$KSFT_SKIP"
	if grep -qE '^model name.*(Nehalem|Sandy Bridge|Ivy Bridge)' /proc/cpuinfo; then
		because "status bits may stay set on this model: rpmu does not give up (limits.md)"
		return "$KSFT_SKIP"
	fi
	switches_off "$STUCK_STATUS" 'overflows of counters cannot be acknowledged'
}

names_interrupts_without_end() {
	is_amd && return "$KSFT_SKIP"
	switches_off "$ENDLESS_PMI" 'counters raise interrupts without an overflow'
}

# Late by 5000 instructions: samples with shorter periods, as in the check "overflow", are lost on any driver.
handles_late_interrupts() {
	handles "$LATE_PMI" exact,machine
}

handles_repeated_interrupts() {
	handles "$REPEATED_PMI" exact,overflow
}

handles_late_and_repeated_interrupts() {
	handles $((LATE_PMI + REPEATED_PMI)) exact,machine
}

handles_fewer_counters() {
	is_amd && return "$KSFT_SKIP"
	handles "$FEWER" exact,counters,overflow ' 2 general-purpose and 1 fixed counters'
}

# As in wrong_hardware.sh, on a CPU of an unknown model that has the eight counters which rpmu then uses.
handles_more_counters() {
	rpmu_check --dry-run
	if ! echo "$said" | grep -q ' 8 general-purpose'; then
		because "this CPU does not have eight counters"
		return "$KSFT_SKIP"
	fi
	handles $((MORE + 0xee * MODEL)) exact,counters,groups ' 8 general-purpose and' \
		' 2 more general-purpose counters are not used'
}

handles_counters_that_run_in_smm() {
	is_amd && return "$KSFT_SKIP"
	handles "$NO_SMM_FREEZE" exact
}

handles_reserved_bits_of_the_status() {
	if ! grep -q perfmon_v2 /proc/cpuinfo; then
		because "only AMD's PerfMonV2 has them"
		return "$KSFT_SKIP"
	fi
	handles "$RESERVED_STATUS" exact,overflow
}

passes_part() { passes part; }
passes_all() { passes all; }

if [ ! -x ./rpmu-check ]; then
	ktap_skip_all 'no rpmu-check: selftests/rpmu-check/test.sh adds it'
	exit "$KSFT_SKIP"
fi
hostname $HOST
printf 'root:x:0:0:root:/root:/bin/sh\n%s:x:1000:1000:Jane Roe:/home/jane:/bin/sh\n' $USER >/etc/passwd

first=passes_part page='' named=''
for word; do
	case $word in
	part) ;;
	all) first=passes_all ;;
	page) page=1 ;;
	*) named="$named $word" ;;
	esac
done
all="$first has_nothing_personal says_what_loading_would_do names_what_uses_the_pmu wants_rpmu_unloaded wants_root wants_a_module \
	names_a_hybrid_processor names_an_old_version names_an_unknown_model names_a_stuck_counter names_a_stuck_fixed_counter \
	names_a_register_that_faults names_counters_that_stand_still names_counters_that_run_backwards \
	names_missing_counters names_wrong_records names_a_status_that_cannot_be_cleared names_interrupts_without_end \
	handles_late_interrupts handles_repeated_interrupts handles_late_and_repeated_interrupts handles_fewer_counters \
	handles_more_counters handles_counters_that_run_in_smm handles_reserved_bits_of_the_status \
	gives_back_when_interrupted gives_back_when_killed"
for name in ${named:-$all}; do
	run_test "$name"
	case $name in
	passes_*) [ -z "$page" ] || echo "# page: $(gzip -c $REPORT/rpmu-check.html | base64 -w 0)" ;;
	esac
done
finish
