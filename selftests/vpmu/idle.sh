#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Checks that an idle PMU costs nothing. TAP on stdout.
. "$(dirname "$0")/../../scripts/lib.sh"
. "$(dirname "$0")/ask.sh"
usage "usage: selftests/vpmu/idle.sh [MODEL]

Boots the stock kernel with an idle built-in driver and checks how often QEMU reported to the model what retired: hardly
ever in the boot and a dd of 1 GB, and never in a loop of some million instructions. An idle PMU can cost
only these calls. speed.sh measures the time itself, which depends on the load of the machine. MODEL is QEMU's (default
Haswell)." "$@"

model=${1:-Haswell}
# The quotes keep the echoed commands from looking like output.
commands='dd if=/dev/zero of=/dev/null bs=1M count=1024 2>&1 | sed "s/^/d""d: /"
./module load ./vpmu_bare.ko idle=1
dmesg | sed -n "s/^\[[^]]*\] vpmu_bare: /ba""re: /p"
exit
'
answer=$logs/guest-idle.answer
# A report would start the accounting of instructions.
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
