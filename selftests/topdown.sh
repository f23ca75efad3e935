#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests the perf tool's topdown metrics. On the emulated PMU, half of exact_loop's
# slots retire, because every second instruction is a branch.

. ./ktap.sh

DATA=/tmp/perf.data
trap 'rm -f "$DATA" /tmp/shown' EXIT
trap 'exit 1' HUP INT TERM

# metrics: skips a test on a CPU without PERF_METRICS.
metrics() {
	grep -qE '^model name.*(Icelake|Ice Lake|SapphireRapids|Sapphire Rapids|Ice lake)|Icelake|Sapphire|Granite' /proc/cpuinfo && return
	because "this CPU has no PERF_METRICS"
	return "$KSFT_SKIP"
}

# shows PATTERN COMMAND...: succeeds if a line of the command's output matches.
shows() {
	pattern=$1
	shift
	"$@" >/tmp/shown 2>&1 </dev/null && grep -qE "$pattern" /tmp/shown && return
	because "$* does not show \"$pattern\""
	head -n 30 /tmp/shown | sed 's/^/# /'
	return 1
}

# no_refusal: succeeds if the command of `shows` could open and count all of its events.
no_refusal() {
	grep -qE 'not (supported|counted)|nan *%' /tmp/shown || return 0
	because "$(grep -E 'not (supported|counted)|nan *%' /tmp/shown | head -n 1)"
	return 1
}

perf_test() {
	metrics || return
	shows ': Ok' perf test 'x86 topdown'
}

by_default() {
	metrics || return
	shows 'tma_retiring' perf stat ./exact_loop && no_refusal
}

of_a_cpu() {
	metrics || return
	shows 'tma_retiring' perf stat --topdown -a ./exact_loop && no_refusal
}

two_levels() {
	metrics || return
	shows 'tma_retiring' perf stat -M TopdownL1,TopdownL2 ./exact_loop
}

shares() {
	metrics || return
	events='{slots,topdown-retiring,topdown-bad-spec,topdown-fe-bound,topdown-be-bound}:u'
	shows '.' perf stat -x, -e "$events" ./exact_loop && no_refusal || return
	# Out of 1000 slots: all shares, and the first one.
	retiring=$(awk -F, '/^[0-9]/ { n++; if (n == 1) slots = $1; if (n == 2) print int(1000 * $1 / slots) }' /tmp/shown)
	all=$(awk -F, '/^[0-9]/ { n++; if (n == 1) slots = $1; else sum += $1 } END { print int(1000 * sum / slots) }' /tmp/shown)
	if [ "$all" -lt 980 ] || [ "$all" -gt 1000 ]; then
		because "$all of 1000 slots are in a share"
		return 1
	fi
	grep -qw hypervisor /proc/cpuinfo || return 0
	[ "$retiring" -ge 490 ] && [ "$retiring" -le 510 ] && return
	because "$retiring of 1000 slots retire"
	return 1
}

sampled() {
	metrics || return
	perf record -q -o "$DATA" -e '{instructions,slots,topdown-retiring}:uS' ./exact_loop >/tmp/shown 2>&1 || {
		because "perf record: $(cat /tmp/shown)"
		return 1
	}
	shows 'topdown-retiring' perf script -i "$DATA" -F event,period
}

for name in perf_test by_default of_a_cpu two_levels shares sampled; do
	run_test $name
done
finish
