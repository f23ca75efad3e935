#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Checks that a guest under icount is repeatable to the byte. TAP on stdout.
. "$(dirname "$0")/../../scripts/lib.sh"
usage "usage: selftests/vpmu/repeat.sh [MODEL]

Boots a guest of two cores with two threads each under icount twice, counts with both drivers and compares its output, its
kernel's log and the PMU's report. MODEL is QEMU's (default Haswell)." "$@"

model=${1:-Haswell}
kinds=(out log report)
mkdir -p "$logs"
for run in 1 2; do
	export VPMU_REPORT=$logs/repeat-$run.report
	rm -f "$VPMU_REPORT"
	"$top/scripts/guest" --run test --icount --cpu "$model" --smp 2,2 --name repeat \
		--append "rpmu.tests=exact_count,multiplex,memory_events,skid" </dev/null >"$logs/repeat-$run.out" || true
	cp "$logs/guest-repeat.log" "$logs/repeat-$run.log"
done

# Each file must have such a line, so that empty ones do not pass.
declare -A has=([out]='^ok ' [log]='Performance Events: ' [report]='^cpu 3 instructions kernel [1-9]')
nr=0 failed=0
echo 'TAP version 13'
for kind in "${kinds[@]}"; do
	nr=$((nr + 1))
	first=$logs/repeat-1.$kind second=$logs/repeat-2.$kind
	if grep -qE -- "${has[$kind]}" "$first" && cmp -s "$first" "$second"; then
		echo "ok $nr repeat/$model/$kind"
	else
		echo "not ok $nr repeat/$model/$kind"
		diff "$first" "$second" | head -n 20 | sed 's/^/# /'
		failed=1
	fi
done
nr=$((nr + 1))
if grep -q '^not ok' "$logs/repeat-1.out"; then
	echo "not ok $nr repeat/$model/tests"
	grep '^not ok' "$logs/repeat-1.out" | sed 's/^/# /'
	failed=1
else
	echo "ok $nr repeat/$model/tests"
fi
echo "1..$nr"
exit "$failed"
