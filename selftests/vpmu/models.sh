#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Checks that the stock kernel's built-in driver works on each CPU model. TAP on stdout.
. "$(dirname "$0")/../../scripts/lib.sh"
. "$(dirname "$0")/../../scripts/tap.sh"
. "$(dirname "$0")/ask.sh"
usage "usage: selftests/vpmu/models.sh [MODEL …]

Boots the stock kernel on each model, with one and, on Intel's, with two threads per core. The built-in driver must bind
with that microarchitecture's events, find its counters, print no warning and count a known program to the instruction.
If the PMU has topdown metrics, the driver must offer them and count the shares that the emulated PMU declares. If it
records branches, perf record -b must find only the program's loop.
Boots Intel's models once more with PEBS: precise samples of a loop must lie on its two instructions, as often as counted.
Boots Alder Lake with big and small cores, of which each must count on all counters of its PMU, and with big cores only.
Boots Skylake once more with transactions that corrupt counter 3, which the driver must protect." "$@"

# MODEL:EVENTS:ONE:TWO:EXTRA: QEMU's model, the driver's name for its events, the number of general-purpose counters
# with one and with two threads per core, and another message that the driver must print. TWO is empty for AMD's models,
# for which TCG has no threads; EVENTS is then the driver's own name.
models=(
	'Nehalem:Nehalem:4:4:erratum AAJ80 worked around'
	'Westmere:Westmere:4:4:'
	'SandyBridge:SandyBridge:8:4:full-width counters'
	'IvyBridge:IvyBridge:8:4:full-width counters'
	'Haswell:Haswell:8:4:full-width counters'
	'Broadwell:Broadwell:8:4:full-width counters'
	'Skylake-Client:Skylake:8:4:full-width counters'
	'Icelake-Server:Icelake:8:8:AnyThread deprecated'
	'SapphireRapids:Sapphire Rapids:8:8:AnyThread deprecated'
	'GraniteRapids:Granite Rapids:8:8:AnyThread deprecated'
	'Denverton,model=77:Silvermont:2:2:full-width counters'
	'Denverton:Goldmont:4:4:full-width counters'
	'Denverton,model=122:Goldmont plus:4:4:full-width counters'
	'Snowridge:Tremont:4:4:AnyThread deprecated'
	'SierraForest,model=190:Gracemont:6:6:AnyThread deprecated'
	'SierraForest:Crestmont:8:8:AnyThread deprecated'
	'phenom:AMD PMU driver:4::'
	'Opteron_G3,family=21,model=2:Fam15h core perfctr, AMD PMU driver:6::'
	'Opteron_G3,family=22,model=0:AMD PMU driver:4::'
	'EPYC:Fam17h+ core perfctr, AMD PMU driver:6::'
	'EPYC-Rome:Fam17h+ core perfctr, AMD PMU driver:6::'
	'EPYC-Milan:Fam17h+ core perfctr, AMD PMU driver:6::'
	'EPYC-Genoa:Fam17h+ 16-deep LBR, core perfctr, AMD PMU driver:6::version:                   2'
	'EPYC-Genoa,family=26,model=2:Fam17h+ 16-deep LBR, core perfctr, AMD PMU driver:6::version:                   2'
	'EPYC-Genoa,family=26,model=80:Fam17h+ 16-deep LBR, core perfctr, AMD PMU driver:6::version:                   2'
)

# The commands for the guest. The quotes inside words keep the echoed commands from looking like output.
# shellcheck disable=SC2016
commands='. ./guest-lib.sh
dmesg | sed "s/^\[[^]]*\] //; s/^/lo""g: /"
log_trouble all | sed "s/^/trou""ble: /"
perf stat -x, -e instructions:u,instructions:u,branches:u ./exact_loop 2>&1 | sed "s/^/coun""ts: /"
[ ! -e /sys/devices/cpu/allow_tsx_force_abort ] || echo "tf""a: yes"
perf stat -x, -e branches:u,branches:u,branches:u,branches:u ./exact_loop 2>&1 | sed "s/^/fo""ur: /"
[ ! -e /sys/devices/cpu/events/slots ] || topdown=$(cd /sys/devices/cpu/events && echo slots topdown-*)
echo "eve""nts: $topdown"
[ -z "$topdown" ] || perf stat -x, -e "{${topdown// /,}}:u" ./exact_loop 2>&1 | sed "s/^/sha""res: /"
[ -z "$topdown" ] || perf stat -x, --topdown ./exact_loop 2>&1 | sed "s/^/lev""el 1: /"
perf record -q -b -e branches:u -c 1000003 -o /tmp/branches ./exact_loop && perf script -i /tmp/branches -F brstack |
	grep -oE "0x[0-9a-f]+/0x[0-9a-f]+" | sort | uniq -c | sed "s/^ */stac""ks: /"
read -r precise </sys/devices/cpu/caps/max_precise
[ "$precise" -lt 2 ] || for event in instructions cycles; do
	perf record -q -e $event:upp -c 99998 -o /tmp/precise ./exact_loop && perf script -i /tmp/precise -F ip | sort |
		uniq -c | sed "s/^ */$event ip""s: /"
done
sleep 1
exit
'

# boot CPU SMP NAME [OPTION …]: boots a guest and writes its output to the file $answer.
boot() {
	answer=$logs/guest-$3.answer
	ask "$answer" "$commands" --icount --cpu "$1" --smp "$2" --name "$3" "${@:4}" || true
}

# shellcheck disable=SC2317 # check calls these
because() {
	sed -n 's/^\(log: Perf\|log: \.\.\.\|trouble\|counts\|four\|tfa\|events\|shares\|level 1\|stacks\|instructions ips\|cycles ips\|rpmu: error\)/# &/p' "$answer"
}
# shellcheck disable=SC2317
says() { grep -qF -- "$1" "$answer"; }
# shellcheck disable=SC2317
lacks() { says 'log: Performance Events' && ! says "$1"; }
# Succeeds if the log has neither messages that fail any test (trouble) nor messages with which the built-in driver rejects a PMU.
# shellcheck disable=SC2317
silent() {
	says 'log: Performance Events' &&
		! grep -qE '^trouble: |Firmware Bug|[Bb]roken (BIOS|PMU)|PMU not available|PEBS disabled' "$answer"
}

# topdown SLOTS: succeeds if the slots and shares of exact_loop, in which every other instruction is a branch, are as README.md
# declares: slots except for fractions that context switches drop, shares to within 1/255, the register's precision.
# shellcheck disable=SC2317
topdown() {
	awk -F '[:,]' -v slots="$1" '
	BEGIN {
		split("retiring 8 bad-spec 2 fe-bound 3 be-bound 3 heavy-ops 1 br-mispredict 1 fetch-lat 2 mem-bound 1", words, " ")
		for (i = 1; i in words; i += 2)
			sixteenths["topdown-" words[i]] = words[i + 1]
	}
	$1 != "shares" { next }
	$6 != "100.00" { wrong = 1 }
	$4 == "slots" { seen++; if ($2 > slots || $2 < slots - 100) wrong = 1; next }
	{ seen++; off = $2 / slots - sixteenths[$4] / 16; if (!($4 in sixteenths) || off * off >= 1 / 255 / 255) wrong = 1 }
	END { exit wrong || !seen }' "$answer"
}
# Succeeds if the four shares that perf stat --topdown prints add up to 100 %, and each is more than 5 %.
# shellcheck disable=SC2317
level_1() {
	awk -F '[:,]' '
	$1 == "level 1" && /tma_retiring/ && /tma_bad_spec/ && /tma_frontend/ && /tma_backend/ { names = 1 }
	$1 == "level 1" && $2 ~ /^ *[0-9.]+$/ { sum = $2 + $3 + $4 + $5; least = $2 > 5 && $3 > 5 && $4 > 5 && $5 > 5 }
	END { exit !names || !least || sum < 99.5 || sum > 100.5 }' "$answer"
}

# stacks RECORDS: succeeds if the four samples of perf record -b have this many records each, all of exact_loop's only branch:
# from JNZ back to DEC, which has two bytes.
# shellcheck disable=SC2317
stacks() {
	local line
	line=$(sed -n 's/^stacks: //p' "$answer")
	[[ $line =~ ^([0-9]+)\ (0x[0-9a-f]+)/(0x[0-9a-f]+)$ ]] &&
		((BASH_REMATCH[1] == 4 * $1 && BASH_REMATCH[2] == BASH_REMATCH[3] + 2))
}

# precise EVENT NUMBER: succeeds if precise samples of an event are on DEC or JNZ of exact_loop, NUMBER on each, give or take one,
# which the instructions around the loop may shift.
# shellcheck disable=SC2317
precise() {
	awk -v event="$1" -v number="$2" '
	$1 == event && $2 == "ips:" { seen++; ip[seen] = $4; if ($3 < number - 1 || $3 > number + 1) wrong = 1 }
	END { exit wrong || seen != 2 }' "$answer" &&
		mapfile -t ips < <(sed -n "s/^$1 ips: [0-9]* *//p" "$answer") && ((0x${ips[1]} == 0x${ips[0]} + 2))
}

echo 'TAP version 13'
for model in "${models[@]}"; do
	IFS=: read -r cpu events one two extra <<<"$model"
	(($# == 0)) || [[ " $* " == *" $cpu "* ]] || continue
	for smp in 2,1 2,2; do
		[[ $smp == *,1 || -n $two ]] || continue
		name=${cpu//[,=]/-}-${smp/,/x}
		counters=$one
		[[ $smp == *,1 ]] || counters=$two
		driver="$events events, " options=()
		# AMD's CPUs have no fixed counter for the watchdog, and some have only four counters, which a test needs.
		[[ -n $two ]] || driver=$events options=(--append nmi_watchdog=0)
		boot "$cpu" "$smp" "models-$name" "${options[@]}"
		check "$name: the built-in driver has ${driver%, }" says "$driver"
		check "$name: $counters general counters" grep -qE "generic counters: +$counters\$" "$answer"
		[[ -z $extra ]] || check "$name: $extra" says "$extra"
		case $cpu-$smp in
		SandyBridge-*,1 | IvyBridge-*,1 | Haswell-*,1) check "$name: workaround" says 'HSD29 workaround disabled, HT off' ;;
		SandyBridge-*,2 | IvyBridge-*,2 | Haswell-*,2) check "$name: workaround" says 'HSD29 worked around, HT is on' ;;
		*) check "$name: no workaround" lacks 'HSD29' ;;
		esac
		check "$name: no warning" silent
		# On Intel's CPUs, the first event is on the fixed counter, so the second is on a general-purpose one.
		check "$name: instructions on two counters" \
			[ "$(grep -c '^counts: 10000000,,instructions:u,.*,100.00,' "$answer")" = 2 ]
		check "$name: branches" grep -q '^counts: 4999999,,branches:u,.*,100.00,' "$answer"
		((counters < 4)) || check "$name: branches on four general counters" \
			[ "$(grep -c '^four: 4999999,,branches:u,.*,100.00,' "$answer")" = 4 ]
		check "$name: no TSX_FORCE_ABORT" lacks 'tfa: yes'
		[[ -z $two ]] || check "$name: no PEBS" lacks 'PEBS fmt'
		case $cpu in
		phenom | Opteron* | EPYC | EPYC-Rome | EPYC-Milan) records='' ;;
		Denverton,model=77) records=8 ;;
		Skylake* | Icelake* | Sapphire* | Granite* | Denverton* | Snowridge* | SierraForest*) records=32 ;;
		*) records=16 ;;
		esac
		if [[ -n $records ]]; then
			check "$name: $records branch records" says " $records-deep LBR, "
			check "$name: perf record -b" stacks "$records"
		else
			check "$name: no branch records" lacks 'deep LBR'
		fi
		[[ $cpu != @(Sapphire|Granite|SierraForest)* ]] || check "$name: architectural LBR" says 'Architectural LBR, '
		case $cpu in
		Icelake-Server) slots=75000000 shares='bad-spec be-bound fe-bound retiring' ;;
		SapphireRapids | GraniteRapids) slots=90000000 shares='bad-spec be-bound br-mispredict fe-bound fetch-lat heavy-ops mem-bound retiring' ;;
		*)
			check "$name: no topdown metrics" lacks 'events: slots'
			continue
			;;
		esac
		# shellcheck disable=SC2086 # words
		check "$name: topdown metrics" grep -qx "events: slots$(printf ' topdown-%s' $shares)" "$answer"
		check "$name: slots and their shares" topdown "$slots"
		check "$name: perf stat --topdown" level_1
	done
done
for model in "${models[@]}"; do
	IFS=: read -r cpu _ _ two _ <<<"$model"
	[[ -n $two ]] || continue
	(($# == 0)) || [[ " $* " == *" $cpu "* ]] || continue
	name=${cpu//[,=]/-}-pebs
	boot "$cpu" 2,1 "models-$name" --pebs
	case $cpu in
	Haswell | Broadwell | Denverton,model=77) format=2+ ;;
	Skylake* | Denverton*) format=3+ ;;
	Icelake* | Sapphire* | Granite* | Snowridge* | SierraForest*) format=4+-baseline ;;
	*) format=1+ ;;
	esac
	check "$name: the built-in driver has PEBS of format $format" says "PEBS fmt$format, "
	check "$name: no warning" silent
	# Each record takes 99,999 events, an odd number, out of 10,000,000 instructions and 15,000,000 cycles.
	check "$name: perf record -e instructions:upp" precise instructions 50
	check "$name: perf record -e cycles:upp" precise cycles 75
done
# Alder Lake: two cores are big, all others small. Eight and six equal events need all general counters of their PMU. The die
# of stepping 5 has big cores only.
# shellcheck disable=SC2016
hybrid_commands='. ./guest-lib.sh
dmesg | sed "s/^\[[^]]*\] //; s/^/lo""g: /"
log_trouble all | sed "s/^/trou""ble: /"
for pmu in cpu_core cpu_atom; do
	echo "pm""u: $pmu type $(cat /sys/devices/$pmu/type) cpus $(cat /sys/devices/$pmu/cpus)"
done
events() { for i in $(seq $2); do echo -n "${3:-}$1/event=0xc4/u"; set -- $1 $2 ,; done; }
for cpu in 0 1 2 3; do
	[ -e /sys/devices/system/cpu/cpu$cpu ] || continue
	taskset -c $cpu perf stat -x, -e instructions:u,branches:u ./exact_loop 2>&1 | sed "s/^/o""n $cpu: /"
	taskset -c $cpu perf stat -x, -e $(events cpu_core 8),$(events cpu_atom 6) ./exact_loop 2>&1 | sed "s/^/al""l $cpu: /"
done
exit
'
# Succeeds if the CPUs count with one of the two PMUs alone, on all of its general counters.
# shellcheck disable=SC2317
counts_with() {
	local pmu=$1 counters=$2 cpu other=cpu_core
	[[ $pmu != cpu_core ]] || other=cpu_atom
	for cpu in "${@:3}"; do
		grep -q "^on $cpu: 10000000,,$pmu/instructions/u,.*,100.00," "$answer" &&
			grep -q "^on $cpu: 4999999,,$pmu/branches/u,.*,100.00," "$answer" &&
			! grep "^on $cpu: [0-9].*,,$other/" "$answer" &&
			(($(grep -c "^all $cpu: 4999999,,$pmu/event=0xc4/u,.*,100.00," "$answer") == counters)) || return
	done
}
for stepping in 2 5; do
	model=SapphireRapids,model=151
	(($# == 0)) || [[ " $* " == *" $model "* ]] || continue
	name=${model//[,=]/-}-stepping-$stepping
	commands=$hybrid_commands boot "$model,stepping=$stepping" 4,1 "models-$name" --pebs
	check "$name: the built-in driver has Alderlake Hybrid events" says 'Alderlake Hybrid events, '
	check "$name: no warning" silent
	if ((stepping == 2)); then
		check "$name: cpu_core is of CPUs 0 and 1" grep -qx 'pmu: cpu_core type 4 cpus 0-1' "$answer"
		check "$name: cpu_atom is of CPUs 2 and 3" grep -qx 'pmu: cpu_atom type [0-9]* cpus 2-3' "$answer"
		check "$name: cpu_core counts on 8 counters" counts_with cpu_core 8 0 1
		check "$name: cpu_atom counts on 6 counters" counts_with cpu_atom 6 2 3
	else
		check "$name: cpu_core is of all CPUs" grep -qx 'pmu: cpu_core type 4 cpus 0-3' "$answer"
		check "$name: cpu_atom is of no CPU" grep -qx 'pmu: cpu_atom type [0-9]* cpus ' "$answer"
	fi
done
if (($# == 0)) || [[ " $* " == *' Skylake-Client '* ]]; then
	name=Skylake-Client-tfa
	boot Skylake-Client 2,2 "models-$name" --defects tfa
	check "$name: the built-in driver detects TSX_FORCE_ABORT" says 'tfa: yes'
	check "$name: no warning" silent
	check "$name: branches on four general counters" \
		[ "$(grep -c '^four: 4999999,,branches:u,.*,100.00,' "$answer")" = 4 ]
fi
echo "1..$nr"
exit "$failed"
