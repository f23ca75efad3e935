#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Does a PMU that counts nothing cost nothing? TAP on stdout.
. "$(dirname "$0")/../../scripts/lib.sh"
. "$(dirname "$0")/ask.sh"
usage "usage: selftests/vpmu/idle.sh [MODEL]

Boots the stock kernel with the built-in driver, which counts nothing, and looks at how often QEMU has told the model
what retired: after the boot and a dd of 1 GB hardly ever, and in a loop of some million instructions not once. For
that is what an idle PMU could cost; the time itself, which speed.sh measures, depends on what else the machine does.
MODEL is QEMU's (default Haswell)." "$@"

model=${1:-Haswell}
# The quotes keep what the terminal echoes from looking like an answer.
commands='dd if=/dev/zero of=/dev/null bs=1M count=1024 2>&1 | sed "s/^/d""d: /"
./module load ./vpmu_bare.ko idle=1
dmesg | sed -n "s/^\[[^]]*\] vpmu_bare: /ba""re: /p"
exit
'
answer=$logs/guest-idle.answer
# Its report would have the accounting watch.
unset VPMU_REPORT
ask "$answer" "$commands" --icount --cpu "$model" --smp 1,2 --name idle --append nmi_watchdog=0 || true
echo 'TAP version 13'
said=$(sed -n 's/^bare: //p' "$answer")
if grep -q '^dd: 1024+0 records out' "$answer" && grep -q '^1\.\.1$' <<<"$said" && ! grep -q '^not ok' <<<"$said"; then
	echo "ok 1 idle/$model"
	status=0
else
	echo "not ok 1 idle/$model"
	status=1
fi
grep '^#' <<<"$said" || true
echo '1..1'
exit "$status"
