#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# /sys/bus/event_source/devices/cpu: what the built-in driver shows there is
# kept, and what rpmu shows is compared with it both ways, for perf resolves its
# names of events by these files. Run it on the built-in driver first.

. ./ktap.sh

KEPT=/tmp/built-in-sysfs
DIRECTORIES='. format events caps'

# known FILE: where rpmu differs from the built-in driver, and why.
known() {
	case $1 in
	./rdpmc) echo 'rpmu does not let user space read counters' ;;
	./freeze_on_smi) echo 'rpmu does not do that' ;;
	events/mem-loads | events/mem-loads-aux | events/mem-stores) echo 'rpmu has no precise events' ;;
	caps/max_precise) echo 'rpmu has no precise events' ;;
	events/tx-* | events/el-* | events/cycles-t | events/cycles-ct) echo "rpmu has no names for transactions' events" ;;
	caps/branches | caps/branch_counter_*) echo 'rpmu has no branch records' ;;
	*) return 1 ;;
	esac
}

FORMAT='event umask edge inv cmask'
EVENTS='cpu-cycles instructions cache-references cache-misses
	branch-instructions branch-misses ref-cycles'

keep() {
	rm -rf "$KEPT"
	for directory in $DIRECTORIES; do
		mkdir -p "$KEPT/$directory"
		for file in "$CPU_PMU/$directory"/*; do
			[ -f "$file" ] || continue
			# A copy with its mode; some files cannot be read.
			copy=$KEPT/$directory/${file##*/}
			cat "$file" >"$copy" 2>/dev/null
			chmod "$(mode "$file")" "$copy"
		done
	done
}

mode() {
	stat -c %a "$1"
}

# all_there DIRECTORY NAME...
all_there() {
	directory=$1
	shift
	status=0
	for file; do
		[ -s "$CPU_PMU/$directory/$file" ] && continue
		because "$directory/$file is missing"
		status=1
	done
	return "$status"
}

format_complete() {
	# shellcheck disable=SC2086
	all_there format $FORMAT
}

events_complete() {
	# shellcheck disable=SC2086
	all_there events $EVENTS
}

# text FILE: with its size, for the end of the line is part of it.
text() {
	echo "\"$(cat "$1")\" in $(wc -c <"$1") bytes"
}

# differs FILE HOW: unless that is known.
differs() {
	if why=$(known "$1"); then
		echo "# $1 $2: $why"
	else
		because "$1 $2"
		status=1
	fi
}

# same DIRECTORY: the same files, word for word, with the same modes.
same() {
	if [ ! -d "$KEPT" ]; then
		because "there was no built-in driver to compare with"
		return "$SKIP"
	fi
	status=0
	files=0
	for kept in "$KEPT/$1"/*; do
		[ -f "$kept" ] || continue
		[ -e "$CPU_PMU/$1/${kept##*/}" ] || differs "$1/${kept##*/}" 'is missing'
	done
	for file in "$CPU_PMU/$1"/*; do
		[ -f "$file" ] || continue
		name=$1/${file##*/}
		kept=$KEPT/$name
		files=$((files + 1))
		if [ ! -e "$kept" ]; then
			differs "$name" "is not in the built-in's"
			continue
		fi
		[ "$(mode "$file")" = "$(mode "$kept")" ] ||
			differs "$name" "has mode $(mode "$file"), the built-in's $(mode "$kept")"
		# What a file does when it is written is none of its text.
		[ "$(mode "$file")" = 444 ] || continue
		cmp -s "$file" "$kept" ||
			differs "$name" "is $(text "$file"), the built-in's $(text "$kept")"
	done
	if [ "$files" -eq 0 ]; then
		because "$1 is empty"
		status=1
	fi
	return "$status"
}

device_same() {
	same .
}

format_same() {
	same format
}

events_same() {
	same events
}

caps_same() {
	same caps
}

type_is_raw() {
	type=$(cat "$CPU_PMU/type")
	[ "$type" = 4 ] && return
	because "type is $type"
	return 1
}

# perf's own table of this CPU's events, and the files here, give a config.
perf_resolves() {
	for event in cpu/branch-instructions/u cpu/event=0xc4,umask=0x0/u \
		br_inst_retired.all_branches:u branches:u; do
		line=$(perf stat -x, -e "$event" ./exact_loop 2>&1 | tail -n 1)
		# Every pass ends with one, the program with a SYSCALL.
		[ "${line%%,*}" = 4999999 ] && continue
		because "$event: $line"
		return 1
	done
}

if ! loaded; then
	run_test keep
fi
for name in type_is_raw format_complete events_complete device_same format_same \
	events_same caps_same perf_resolves; do
	run_test $name
done
finish
