#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests that the perf tool accepts and refuses the lists of events in perf_forms as stated there. rpmu-plan is tested
# against the same file.

. ./ktap.sh

FORMS=./perf_forms
TAB=$(printf '\t')

# model: prints the name of the section for this CPU.
model() {
	case $(sed -n 's/^\(cpu family\|model\)[^:]*: //p' /proc/cpuinfo | head -n 2 | tr '\n' -) in
	6-60-) echo haswell ;;
	6-106-) echo icelakex ;;
	25-17-) echo amdzen4 ;;
	esac
}

# forms VERDICTS SECTION...: prints the lists of these sections with one of these verdicts.
forms() {
	verdicts=" $1 "
	shift
	section=''
	while IFS=$TAB read -r verdict form why; do
		case $verdict in
		'#'* | '') continue ;;
		'['*)
			section=${verdict#?}
			section=${section%?}
			continue
			;;
		esac
		case $verdicts in
		*" $verdict "*) ;;
		*) continue ;;
		esac
		case " $* " in
		*" $section "*) ;;
		*) continue ;;
		esac
		# Skip lists whose verdict depends on the machine.
		case "$why" in *depends*) continue ;; esac
		printf '%s\n' "$form"
	done <"$FORMS"
}

has_perf() {
	case $(perf --version) in
	*' 7.3'*) return ;;
	esac
	because "the lists are those of perf 7.3"
	return "$KSFT_SKIP"
}

# ask OPTION...: runs perf stat, whose status is 129 if it does not accept the lists of events. The events stay disabled,
# because some set bits of the event select that fault on some CPUs.
ask() {
	perf stat -D -1 "$@" true
}

# take FILE: succeeds if perf accepts all lists of events in the file, in one command.
take() {
	list=$1
	shift
	while IFS= read -r form; do
		set -- "$@" -e "$form"
	done <"$list"
	ask "$@" >/tmp/shown 2>&1 </dev/null
	[ $? != 129 ] && return
	while IFS= read -r form; do
		ask -e "$form" >/tmp/shown 2>&1 </dev/null
		[ $? != 129 ] || because "refused: $form"
	done <"$list"
	return 1
}

# Use a separate command for precise events. If the PMU has none (EOPNOTSUPP), perf retries with exclude_guest. But
# after one event that the PMU does not have (EINVAL), perf believes for good that exclude_guest is missing.
taken() {
	has_perf || return
	forms both all "$(model)" >/tmp/forms
	status=0
	for option in -h -v; do
		grep "$option" -E '[:/][a-zA-Z]*p+[a-zA-Z]*([,}]|$)' /tmp/forms >/tmp/list
		take /tmp/list || status=1
	done
	return "$status"
}

# Use one command for each list. Lists that perf refuses on every model are also refused without a PMU; rpmu-plan's
# tests check these.
refused() {
	has_perf || return
	status=0
	forms 'none record' "$(model)" >/tmp/forms
	while IFS= read -r form; do
		ask -e "$form" >/tmp/shown 2>&1 </dev/null
		[ $? = 129 ] && continue
		because "accepted: $form"
		status=1
	done </tmp/forms
	return "$status"
}

trap 'rm -f /tmp/forms /tmp/list /tmp/shown' EXIT
for name in taken refused; do
	run_test $name
done
finish
