#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests /sys/bus/event_source/devices/cpu: saves the built-in driver's tree, and
# compares rpmu's tree with it, file by file: names, modes, contents. perf resolves
# event names through these files. Must run on the built-in driver first.

. ./ktap.sh

KEPT=/tmp/built-in-sysfs

# without_feature FILE: prints the feature that FILE depends on, if rpmu does not use it here, by its own files. These are
# like the built-in driver's on hardware without the feature. Fails if FILE must be the same.
without_feature() {
	case $1 in
	./caps/max_precise | ./events/mem-loads | ./events/mem-loads-aux | ./events/mem-stores)
		[ "$(cat "$CPU_PMU/caps/max_precise")" = 0 ] && echo PEBS
		;;
	./caps/branches | ./events/branch-brs)
		amd && [ ! -e "$CPU_PMU/caps/branches" ] && echo "branch stacks"
		;;
	./caps/branch_counter_nr | ./caps/branch_counter_width) echo "branch counters" ;;
	*) return 1 ;;
	esac
}

# own FILE: succeeds if only rpmu has the file.
own() {
	case $1 in
	./rpmu | ./rpmu/*) ;;
	*) return 1 ;;
	esac
}

# emulated: succeeds on the emulated PMU.
emulated() {
	grep -qw hypervisor /proc/cpuinfo && ! dmesg | grep -q 'Hypervisor detected'
}

# amd: succeeds on AMD's CPUs and Hygon's.
amd() {
	grep -qE 'AuthenticAMD|HygonGenuine' /proc/cpuinfo
}

FORMAT='event umask edge inv cmask'
EVENTS='cpu-cycles instructions cache-references cache-misses
	branch-instructions branch-misses'
# AMD's CPUs have an event of reference cycles from Zen 4 on.
amd || EVENTS="$EVENTS ref-cycles"

# list DIR: prints the mode, type and name of each file below.
list() {
	(cd "$1" && find . ! -name . -exec stat -c '%a %F %n' {} + | sort -k 3)
}

keep() {
	rm -rf "$KEPT"
	mkdir -p "$KEPT/tree"
	list "$CPU_PMU/" >"$KEPT/list"
	(cd "$CPU_PMU/" && find . -type d) | while read -r directory; do
		mkdir -p "$KEPT/tree/$directory"
	done
	(cd "$CPU_PMU/" && find . -type f) | while read -r file; do
		# Some files cannot be read.
		cat "$CPU_PMU/$file" >"$KEPT/tree/$file" 2>/dev/null
	done
	[ "$(wc -l <"$KEPT/list")" -gt 25 ] && return
	because "the built-in driver has fewer files than expected"
	return 1
}

# differs FILE HOW: reports a difference; sets $status unless the difference is due to a feature that rpmu does not use here.
# On the emulated PMU, no difference is allowed.
differs() {
	if why=$(without_feature "$1") && ! emulated; then
		echo "# $1 $2: rpmu does not use $why"
	else
		because "$1 $2"
		status=1
	fi
}

compared() {
	[ -d "$KEPT" ] && return
	because "there was no built-in driver to compare with"
	return "$KSFT_SKIP"
}

# line FILE LIST: prints the file's line in the list.
line() {
	awk -v file="$1" '{ name = $0; sub(/^.* \.\//, "./", name); if (name == file) print }' "$2"
}

same_names_and_modes() {
	compared || return
	status=0
	list "$CPU_PMU/" >/tmp/here
	sed 's/^.* \.\//.\//' /tmp/here "$KEPT/list" | sort -u >/tmp/names
	while read -r file; do
		! own "$file" || continue
		here=$(line "$file" /tmp/here)
		there=$(line "$file" "$KEPT/list")
		[ "$here" = "$there" ] || differs "$file" "is \"${here% *}\", the built-in's \"${there% *}\""
	done </tmp/names
	return "$status"
}

# text FILE: prints the contents and the size, which shows a missing newline.
text() {
	echo "\"$(cat "$1")\" in $(wc -c <"$1") bytes"
}

# Omits the statistics of power management, which change all the time.
same_contents() {
	compared || return
	status=0
	(cd "$KEPT/tree" && find . -type f ! -path './power/*') >/tmp/names
	while read -r file; do
		[ -e "$CPU_PMU/$file" ] || continue
		cat "$CPU_PMU/$file" >/tmp/text 2>/dev/null
		cmp -s /tmp/text "$KEPT/tree/$file" ||
			differs "$file" "is $(text /tmp/text), the built-in's $(text "$KEPT/tree/$file")"
	done </tmp/names
	return "$status"
}

# all_there DIRECTORY NAME...: succeeds if none of the files is missing or empty.
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

# By the kernel's ABI (Documentation/ABI/testing/sysfs-bus-event_source-devices-format), fields are in config, config1
# and config2 only. Older perf prints a warning for other words at each event of the PMU.
format_is_for_any_perf() {
	bad=$(cd "$CPU_PMU/format" && grep -vE '^config[12]?:[0-9,-]+$' ./*)
	[ -z "$bad" ] && return
	because "fields that older perf does not know: $(echo "$bad" | tr '\n' ' ')"
	return 1
}

# own_format: prints the fields in format/ that only rpmu has.
own_format() {
	(cd "$CPU_PMU/format" && grep -E '^config[34]:' ./* | sed 's/^\.\///' | tr '\n' ' ')
}

# rpmu/format shows rpmu's own fields to perf.
own_format_on_request() {
	loaded || {
		because "only rpmu has its own fields"
		return "$KSFT_SKIP"
	}
	mkdir -p /tmp/format
	cp "$CPU_PMU"/format/* /tmp/format
	takes rpmu/format <<-END || return
		1 1
		1 1
		0 0
		x Invalid argument
		1 1
	END
	status=0
	for pass in 1 2; do
		echo 1 >"$CPU_PMU/rpmu/format"
		shown=$(own_format)
		echo 0 >"$CPU_PMU/rpmu/format"
		[ "$shown" = "rand_mask:config3:0-31 rand_seed:config3:32-63 switch:config4:0 " ] && continue
		because "pass $pass: the fields are \"$shown\""
		status=1
	done
	diff -r /tmp/format "$CPU_PMU/format" >/tmp/shown && return "$status"
	because "format/ has changed: $(cat /tmp/shown)"
	return 1
}

# has_transactions: succeeds in the guest with TSX, by the kernel's command line.
has_transactions() {
	grep -qw setcpuid=rtm /proc/cmdline
}

events_complete() {
	# shellcheck disable=SC2086
	all_there events $EVENTS || return
	has_transactions || return 0
	all_there events tx-start tx-abort tx-commit tx-conflict cycles-t cycles-ct &&
		all_there format in_tx in_tx_cp
}

type_is_raw() {
	type=$(cat "$CPU_PMU/type")
	[ "$type" = 4 ] && return
	because "type is $type"
	return 1
}

# perf resolves event names by its own table for this CPU and by the files in sysfs.
perf_resolves() {
	if amd; then
		names='cpu/event=0xc2,umask=0x0/u'
	else
		names='cpu/event=0xc4,umask=0x0/u br_inst_retired.all_branches:u'
	fi
	for event in cpu/branch-instructions/u $names branches:u; do
		line=$(perf stat -x, -e "$event" ./exact_loop 2>&1 | tail -n 1)
		# Every pass has one branch, and the SYSCALL at the end is one.
		[ "${line%%,*}" = 4999999 ] && continue
		because "$event: $line"
		return 1
	done
}

# perf opens the events of TSX by name. Their counts are not checked, because no program here starts a transaction.
transactions_open() {
	has_transactions || {
		because "the CPU has no transactions"
		return "$KSFT_SKIP"
	}
	for event in tx-start tx-commit tx-abort tx-conflict tx-capacity el-start el-commit el-abort \
		el-conflict el-capacity cycles-t cycles-ct; do
		line=$(perf stat -x, -e "$event" ./exact_loop 2>&1 | tail -n 1)
		case ${line%%,*} in
		'' | *[!0-9]*) ;;
		*) continue ;;
		esac
		because "$event: $line"
		return 1
	done
}

# written FILE TEXT: writes the text; prints the error, or else the file's contents.
written() {
	if echo "$2" 2>/tmp/error >"$CPU_PMU/$1"; then
		cat "$CPU_PMU/$1"
	else
		sed 's/.*: //' /tmp/error
	fi
}

# takes FILE <LINES: writes the first word of each line to the attribute and compares the
# result of `written` with the rest. Restores the attribute.
takes() {
	setting=$1
	before=$(cat "$CPU_PMU/$setting")
	status=0
	while read -r text expected; do
		got=$(written "$setting" "$text")
		[ "$got" = "$expected" ] && continue
		because "$setting: \"$text\" gives \"$got\", expected \"$expected\""
		status=1
	done
	echo "$before" >"$CPU_PMU/$setting"
	return "$status"
}

rdpmc_takes() {
	takes rdpmc <<-END
		0 0
		1 1
		2 2
		0x1 1
		3 Invalid argument
		-1 Invalid argument
		x Invalid argument
		01 1
	END
}

# intel: skips a test that needs an Intel CPU.
intel() {
	amd || return 0
	because "the CPU is not Intel's"
	return "$KSFT_SKIP"
}

freeze_on_smi_takes() {
	intel || return
	takes freeze_on_smi <<-END
		1 1
		0 0
		2 Invalid argument
		yes Invalid argument
		0x1 1
	END
}

# freezes 0|1: succeeds if writing freeze_on_smi writes bit 14 of IA32_DEBUGCTL of every CPU. Where LBRs are
# architectural, branch stacks have left bit 11 set.
freezes() {
	events=/sys/kernel/tracing/events/msr/write_msr
	trace=/sys/kernel/tracing/trace
	# Write once in advance, because the first event after boot is lost while the buffer grows.
	echo 1 >"$events/enable"
	echo $((1 - $1)) >"$CPU_PMU/freeze_on_smi"
	echo >"$trace"
	echo "$1" >"$CPU_PMU/freeze_on_smi"
	echo 0 >"$events/enable"
	said=$(sed -n 's/.*write_msr: 1d9, value //p' "$trace" | while read -r value; do
		[ $((0x$value & ~(1 << 11))) != $(($1 << 14)) ] || echo "$value"
	done | grep -c .)
	cpus=$(grep -c ^processor /proc/cpuinfo)
	[ "$said" = "$cpus" ] && return
	because "$said of $cpus CPUs got $1 in bit 14"
	return 1
}

freeze_on_smi_freezes() {
	intel || return
	before=$(cat "$CPU_PMU/freeze_on_smi")
	freezes 1 && freezes 0
	status=$?
	echo "$before" >"$CPU_PMU/freeze_on_smi"
	return "$status"
}

switch_max_percent_takes() {
	loaded || {
		because "only rpmu has event sets"
		return "$KSFT_SKIP"
	}
	takes rpmu/switch_max_percent <<-END
		1 1
		100 100
		0 Invalid argument
		101 Invalid argument
		x Invalid argument
		25 25
	END
}

# Run the same number of tests on both drivers.
if ! loaded && [ -e "$CPU_PMU" ]; then
	run_test keep
else
	run_test compared
fi
for name in type_is_raw format_complete format_is_for_any_perf own_format_on_request events_complete \
	same_names_and_modes same_contents perf_resolves transactions_open rdpmc_takes freeze_on_smi_takes \
	freeze_on_smi_freezes switch_max_percent_takes; do
	run_test $name
done
finish
