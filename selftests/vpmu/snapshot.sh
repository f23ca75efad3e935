#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Checks that snapshots and migration are refused with a reason. TAP on stdout.
. "$(dirname "$0")/../../scripts/lib.sh"
usage "usage: selftests/vpmu/snapshot.sh

Requests a snapshot and a migration from the monitor of a stopped QEMU. Neither would contain the state of the emulated
PMU, so both must be refused. Without a PMU the migration starts." "$@"

root=$("$top/scripts/toolroot")
qemu=$("$top/scripts/qemu")
vpmu=$("$top/scripts/vpmu")

# asked CPU: prints the answers of the monitor.
asked() {
	printf '%s\n' 'savevm name' 'migrate exec:cat>/dev/null' quit |
		in_root "$root" "$qemu" -L /usr/share/qemu -L /usr/share/seabios -accel tcg -cpu "$1" -m 64 -S -nic none \
			-vga none -display none -serial null -monitor stdio 2>&1
}

nr=0 failed=0
# check NAME COUNT: passes if $said has this many refusals for this reason.
check() {
	nr=$((nr + 1))
	if grep -q quit <<<"$said" &&
		[[ $(grep -c 'The state of the emulated PMU (pmu=on) can neither be saved nor migrated' <<<"$said") == "$2" ]]; then
		echo "ok $nr $1"
	else
		echo "not ok $nr $1"
		printf '# %s\n' "${said//$'\n'/$'\n'# }"
		failed=1
	fi
}

echo 'TAP version 13'
said=$(asked "Haswell,pmu=on,vpmu=$vpmu" || true)
check 'snapshot/refused with a PMU' 2
said=$(asked Haswell || true)
check 'snapshot/not for that reason without one' 0
echo "1..$nr"
exit "$failed"
