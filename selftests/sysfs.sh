#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# /sys/bus/event_source/devices/cpu: what the built-in driver shows there is
# kept, and what rpmu shows is compared with it, for perf resolves its names
# of events by these files. Run it on the built-in driver first.

. ./ktap.sh

KEPT=/tmp/built-in-sysfs

FORMAT='event umask edge inv cmask'
EVENTS='cpu-cycles instructions cache-references cache-misses
	branch-instructions branch-misses bus-cycles ref-cycles'

keep() {
	mkdir -p "$KEPT/format" "$KEPT/events" &&
		cp "$CPU_PMU/format"/* "$KEPT/format" &&
		cp "$CPU_PMU/events"/* "$KEPT/events" &&
		cp "$CPU_PMU/type" "$KEPT"
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

# same DIRECTORY: what is in it is in the built-in's, word for word.
same() {
	if [ ! -d "$KEPT" ]; then
		because "there was no built-in driver to compare with"
		return "$SKIP"
	fi
	status=0
	files=0
	for file in "$CPU_PMU/$1"/*; do
		name=${file##*/}
		files=$((files + 1))
		if [ ! -e "$KEPT/$1/$name" ]; then
			because "$1/$name is not in the built-in's"
			status=1
		elif ! cmp -s "$file" "$KEPT/$1/$name"; then
			because "$1/$name: $(text "$file"); the built-in's: $(text "$KEPT/$1/$name")"
			status=1
		fi
	done
	if [ "$files" -eq 0 ]; then
		because "$1 is empty"
		status=1
	fi
	return "$status"
}

format_same() {
	same format
}

events_same() {
	same events
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
		branches=${line%%,*}
		case $branches in
		4999998 | 4999999) ;;
		*)
			because "$event: $line"
			return 1
			;;
		esac
	done
}

if ! loaded; then
	run_test keep
fi
for name in type_is_raw format_complete events_complete format_same \
	events_same perf_resolves; do
	run_test $name
done
finish
