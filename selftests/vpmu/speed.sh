#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Measures the cost of the emulated PMU: QEMU's CPU time with and without it, for the same work.
. "$(dirname "$0")/../../scripts/lib.sh"
. "$(dirname "$0")/ask.sh"
usage "usage: selftests/vpmu/speed.sh [OPTION …]

Boots the stock kernel and copies 1 GB with dd, with pmu=off and with pmu=on at the same time, so that other load affects
both equally. Compares the user and system time of the two QEMU processes. The PMU is idle: no counter is enabled, the
NMI watchdog is off.

  --runs N         number of pairs (default 5)
  --cpu MODEL      QEMU's CPU model (default Haswell)
  --smp C,T        cores, threads per core (default 1,1)
  --icount         run under icount
  --busy           enable the NMI watchdog, which samples cycles on every CPU
  --limit PERCENT  fail if the median cost of the pairs is higher (default 5)" "$@"

runs=5 cpu=Haswell smp=1,1 limit=5 watchdog=0 options=()
while (($#)); do
	case $1 in
	--icount) options+=(--icount) ;;
	--busy) watchdog=1 ;;
	--runs | --cpu | --smp | --limit)
		(($# > 1)) || die "$1 needs a value: see --help"
		printf -v "${1#--}" %s "$2"
		shift
		;;
	*) die "unknown option $1: see --help" ;;
	esac
	shift
done
[[ $runs =~ ^[1-9][0-9]*$ ]] || die "--runs $runs: not a number"

# The quotes keep the echoed commands from looking like output.
commands='dd if=/dev/zero of=/dev/null bs=1M count=1024 2>&1 | sed "s/^/d""d: /"
exit
'

# measure on|off: boots once and writes the CPU seconds to a file.
measure() {
	local kind=$1 answer=$logs/speed-$1.answer times=$logs/speed-$1.times
	: >"$times"
	if ! ask "$answer" "$commands" --cpu "$cpu" --smp "$smp" --pmu "$kind" --name "speed-$kind" \
		--append "nmi_watchdog=$watchdog" --cpu-time "$times" "${options[@]}" ||
		! grep -q '^dd: 1024+0 records out' "$answer"; then
		: >"$times"
		say "the guest did not finish: see $answer"
	fi
}

# column NUMBER: prints the minimum and the median of that column of standard input.
column() {
	awk -v n="$1" '{ print $n }' | sort -n |
		awk '{ v[NR] = $1 } END { print v[1], (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

mkdir -p "$logs"
# Build everything first, as both guests need it.
"$top/scripts/image" >/dev/null
"$top/scripts/qemu" >/dev/null
"$top/scripts/vpmu" >/dev/null
pairs=$logs/speed.pairs
: >"$pairs"
for ((run = 1; run <= runs; run++)); do
	processes=()
	for kind in off on; do
		# Ctrl-C ends the whole group.
		group measure "$kind"
		processes+=("$group")
	done
	wait "${processes[@]}"
	pair=$(awk 'NF == 2 { sum = sum sprintf(" %.2f", $1 + $2); n++ } END { if (n == 2) print sum }' \
		"$logs/speed-off.times" "$logs/speed-on.times")
	[[ -n $pair ]] || die "a guest failed"
	echo "$pair" | awk '{ print $1, $2, $2 / $1 }' | tee -a "$pairs" |
		awk -v run="$run" '{ printf "run %d: pmu=off %.2f s, pmu=on %.2f s, costs %+.1f %%\n", run, $1, $2, ($3 - 1) * 100 }' >&2
done
read -r off_least off_middle < <(column 1 <"$pairs")
read -r on_least on_middle < <(column 2 <"$pairs")
read -r _ ratio < <(column 3 <"$pairs")
echo "$cpu, $smp: a boot and dd of 1 GB, CPU seconds of QEMU, $runs pairs"
printf '%-8s %8s %8s\n' '' minimum median pmu=off "$off_least" "$off_middle" pmu=on "$on_least" "$on_middle"
awk -v on="$on_least" -v off="$off_least" -v ratio="$ratio" -v limit="$limit" 'BEGIN {
	printf "costs %+.1f %% by the minimum, %+.1f %% by the median of the pairs\n", (on / off - 1) * 100, (ratio - 1) * 100
	exit ratio - 1 > limit / 100
}'
