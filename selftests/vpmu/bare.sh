#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Checks each CPU model against the vendors' manuals, without a PMU driver. TAP on stdout.
. "$(dirname "$0")/../../scripts/lib.sh"
usage "usage: selftests/vpmu/bare.sh [MODEL[/THREADS[/DEFECTS]] …]

Boots the stock kernel without its PMU driver on each model, with one and, on Intel's, with two threads per core, and
loads a module (selftests/vpmu/bare) that checks registers, counters, counts and overflows. Then checks the report that
the PMU writes when QEMU exits. If the hardware has a defect, boots with and without it. Boots each of Intel's models once
more with PEBS." "$@"

# MODEL/THREADS/DEFECTS, the last as in scripts/guest --defects, or pebs for a PMU with PEBS
boots=()
for model in Nehalem Westmere SandyBridge IvyBridge Haswell Broadwell Skylake-Client Icelake-Server SapphireRapids \
	GraniteRapids Denverton,model=77 Denverton Denverton,model=122 Snowridge SierraForest,model=190 SierraForest; do
	for threads in 1 2; do
		boots+=("$model/$threads/")
		case $model/$threads in
		SandyBridge/2 | IvyBridge/2 | Haswell/2) boots+=("$model/$threads/none") ;;
		Skylake-Client/*) boots+=("$model/$threads/tfa") ;;
		esac
	done
	boots+=("$model/1/pebs")
done
for model in phenom Opteron_G3,family=21,model=2 Opteron_G3,family=22,model=0 EPYC EPYC-Rome EPYC-Milan EPYC-Genoa \
	EPYC-Genoa,family=26,model=2 EPYC-Genoa,family=26,model=80; do
	boots+=("$model/1/")
done

# report NAME: checks the marks in the report. TAP on stdout.
report() {
	local name=$1 nr=0 cpu
	# check WHAT PATTERN
	check() {
		nr=$((nr + 1))
		if grep -qE "$2" "$VPMU_REPORT"; then
			echo "ok $nr $name/report/$1"
		else
			echo "not ok $nr $name/report/$1"
			sed -n 's/.* mark 0xb/# &/p' "$VPMU_REPORT"
		fi
	}
	echo 'TAP version 13'
	for cpu in 0 1; do
		check "one_operation.cpu_$cpu" "^cpu $cpu mark 0xb1 reads 2 writes 2 rdpmc 1 faults 1 pmi 0 kernel [1-9][0-9]* user 0$"
		check "known_instructions.cpu_$cpu" "^cpu $cpu mark 0xb3 reads 0 writes 0 rdpmc 0 faults 0 pmi 0 kernel 7004 user 0$"
	done
	echo "1..$nr"
}

# boot MODEL THREADS [DEFECTS]: boots a guest of two CPUs and prints its TAP stream and the report's TAP stream.
boot() {
	local lower=${1,,} name defects=() words=rpmu.pebs=0
	# AMD's names differ after the first word.
	[[ $1 =~ ^(EPYC|phenom|Opteron) ]] || lower=${lower%%-*}
	name=bare-${lower//[,=]/-}-$((2 / $2))x$2${3:+-$3}
	case ${3:-} in
	'') ;;
	pebs) defects=(--pebs) words=rpmu.pebs=1 ;;
	*) defects=(--defects "$3") words+=" rpmu.defects=$3" ;;
	esac
	export VPMU_REPORT=$logs/$name.report
	# A guest that dies early does not write a report.
	: >"$VPMU_REPORT"
	"$top/scripts/guest" --run test --icount --cpu "$1" --smp "$((2 / $2)),$2" --name "$name" "${defects[@]}" --append \
		"initcall_blacklist=init_hw_perf_events,bts_init nmi_watchdog=0 rpmu.tests=bare $words" </dev/null || true
	report "$name"
}

# The selected boots; MODEL alone selects all boots of the model.
chosen=()
for entry in "${boots[@]}"; do
	(($# > 0)) || chosen+=("$entry")
	for word in "$@"; do
		[[ $entry/ != "$word"/* ]] || chosen+=("$entry")
	done
done
((${#chosen[@]})) || die "unknown model: $*: see --help"
root=$("$top/scripts/toolroot")
for entry in "${chosen[@]}"; do
	IFS=/ read -r model threads defects <<<"$entry"
	boot "$model" "$threads" "$defects"
done | in_root "$root" selftests/tap-summary --expect $((2 * ${#chosen[@]}))
