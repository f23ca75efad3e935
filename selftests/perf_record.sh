#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests the perf tool's sampling commands on known programs: exact_loop executes
# 10,000,000 instructions, nearly all of them in _start.

. ./ktap.sh

DATA=/tmp/perf.data
trap 'rm -f "$DATA" "$DATA.old" /tmp/record /tmp/shown; put_back_sample_limits' EXIT
trap 'exit 1' HUP INT TERM

record() {
	perf record -q -o "$DATA" "$@" >/tmp/record 2>&1 && return
	because "perf record $*: $(cat /tmp/record)"
	return 1
}

# shown PATTERN COMMAND...: succeeds if a line of the command's output matches.
shown() {
	pattern=$1
	shift
	"$@" >/tmp/shown 2>&1 </dev/null && grep -qE "$pattern" /tmp/shown && return
	because "$* does not show \"$pattern\""
	head -n 20 /tmp/shown | sed 's/^/# /'
	return 1
}

# Takes a sample every 100,003 instructions, all in the only function.
fixed_period() {
	record -c 100003 -e instructions:u -- ./exact_loop || return
	samples=$(perf script -i "$DATA" -F ip,sym 2>/dev/null | grep -c '_start')
	if [ "$samples" -lt 98 ] || [ "$samples" -gt 100 ]; then
		because "$samples samples instead of 99"
		return 1
	fi
	perf script -i "$DATA" --show-lost-events 2>/dev/null | grep LOST >/tmp/shown || return 0
	because "lost: $(cat /tmp/shown)"
	return 1
}

report() {
	record -c 100003 -e instructions:u -- ./exact_loop || return
	shown '100\.00% .*exact_loop .*_start' perf report -i "$DATA" --stdio -s dso,sym
}

annotate() {
	record -c 10007 -e instructions:u -- ./exact_loop || return
	shown '[0-9]+\.[0-9]+ .*(dec|jne)' perf annotate -i "$DATA" --stdio -s _start
}

# Sample perf's default event: cycles, at a frequency. Without a PMU, perf would use a clock instead.
by_default() {
	record -- ./counted branches 20000000 || return
	shown '^(cpu/)?cycles' perf evlist -i "$DATA" || return
	shown '[0-9]' perf script -i "$DATA" -F ip,sym,period
}

call_graph() {
	record -c 100003 -e cycles -g -- ./counted branches 2000000 || return
	shown 'main' perf report -i "$DATA" --stdio --no-children -g caller
}

system_wide() {
	record -a -c 1000003 -e cycles -- ./counted branches 2000000 || return
	shown 'counted' perf report -i "$DATA" --stdio -s comm
}

# Sample with the leader; the samples contain the counts of the group.
group_read() {
	record -c 100003 -e '{instructions:u,branches:u}:S' -- ./exact_loop || return
	shown 'branches:u' perf script -i "$DATA" -F event,ip
}

# Sample children too, each from its first instruction.
children() {
	record -c 100003 -e instructions:u -- sh -c './exact_loop & ./exact_loop; wait' || return
	samples=$(perf script -i "$DATA" -F pid,ip,sym 2>/dev/null | grep -c '_start')
	[ "$samples" -ge 196 ] && [ "$samples" -le 200 ] && return
	because "$samples samples instead of 198"
	return 1
}

# Sample with random periods: the shortest is the given one, none is longer than the mask allows, and the periods, which
# are perf's weights, add up to the instructions.
random_periods() {
	if ! loaded; then
		because "only rpmu has random periods"
		return "$KSFT_SKIP"
	fi
	echo 1 >"$CPU_PMU/rpmu/format"
	record -P -e cpu/event=0xc0,period=10000,rand_mask=0xfff/u -- ./exact_loop
	status=$?
	echo 0 >"$CPU_PMU/rpmu/format"
	[ "$status" = 0 ] || return
	perf script -i "$DATA" -F period 2>/dev/null | awk '
		{ sum += $1; if ($1 < 10000 || $1 > 14095) bad++; if ($1 != last) differ++; last = $1 }
		END { print NR, sum, bad + 0, differ; exit !(NR > 800 && NR < 850 && !bad && differ > 700 &&
			sum > 9985000 && sum <= 10000000) }' >/tmp/shown && return
	because "samples, sum of periods, bad periods, changes: $(cat /tmp/shown)"
	return 1
}

# Use a set whose overflow ends its turn: perf accepts the field, and gets the set's counts with each sample.
# event_sets.c tests the rest.
event_set() {
	if ! loaded; then
		because "only rpmu has event sets that switch on overflow"
		return "$KSFT_SKIP"
	fi
	echo 1 >"$CPU_PMU/rpmu/format"
	record -e '{cpu/event=0xc0,period=100003,switch=1/u,branches:u}:S' -- ./exact_loop
	status=$?
	echo 0 >"$CPU_PMU/rpmu/format"
	[ "$status" = 0 ] || return
	samples=$(perf script -i "$DATA" -F event,ip 2>/dev/null | grep -c 'branches:u')
	[ "$samples" -ge 98 ] && [ "$samples" -le 100 ] && return
	because "$samples samples instead of 99"
	return 1
}

top() {
	./counted branches 4000000000 &
	busy=$!
	perf top --stdio -d 1 -e cycles:u -c 1000003 </dev/null >/tmp/shown 2>&1 &
	top=$!
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		sleep 1
		grep -qE '[0-9]+\.[0-9]+%.*counted' /tmp/shown && break
	done
	kill "$busy" "$top"
	wait "$busy" "$top" 2>/dev/null
	grep -qE '[0-9]+\.[0-9]+%.*counted' /tmp/shown && return
	because "perf top shows nothing of a busy program"
	tail -n 20 /tmp/shown | sed 's/^/# /'
	return 1
}

lift_sample_limits
for name in fixed_period report annotate by_default call_graph system_wide group_read children random_periods event_set top; do
	run_test $name
done
finish
