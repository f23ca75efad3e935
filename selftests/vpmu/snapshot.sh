#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Are snapshots and migration refused, with a word that says why? TAP on stdout.
. "$(dirname "$0")/../../scripts/lib.sh"
usage "usage: selftests/vpmu/snapshot.sh

Asks the monitor of a QEMU that has not begun to run for a snapshot and for a migration. The emulated PMU's state would
be in neither, so both must be refused; without a PMU the migration begins." "$@"

root=$("$top/scripts/toolroot")
qemu=$("$top/scripts/qemu")
vpmu=$("$top/scripts/vpmu")

# asked CPU: what the monitor says to both.
asked() {
	printf '%s\n' 'savevm name' 'migrate exec:cat>/dev/null' quit |
		in_root "$root" "$qemu" -L /usr/share/qemu -L /usr/share/seabios -accel tcg -cpu "$1" -m 64 -S -nic none \
			-vga none -display none -serial null -monitor stdio 2>&1
}

nr=0 failed=0
# check NAME COUNT: so many refusals in $said, for this reason.
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
