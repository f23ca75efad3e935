#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests that the driver leaves NMIs of other devices to others: while an event
# counts, and if the status of the counters has reserved bits.

. ./ktap.sh

# Bit 27: selftests/vpmu/README.md.
RESERVED_STATUS=$((1 << 27))

# unclaimed: succeeds if an NMI of another device, while an event counts on each CPU, stays unclaimed. A PMU driver
# may claim NMIs for some time after an overflow, but no event of this test overflows.
unclaimed() {
	sleep 1
	for cpu in $(seq 0 $(($(nproc) - 1))); do
		said=$(taskset -c "$cpu" perf stat -e r0c0:u -- ./module load ./other_nmi.ko '' 2>&1)
		case $said in
		*'Operation canceled'*) ;;
		*)
			because "CPU $cpu: $(echo "$said" | head -n 1)"
			return 1
			;;
		esac
	done
}

while_an_event_counts() {
	unclaimed
}

beside_reserved_bits() {
	grep -q AuthenticAMD /proc/cpuinfo || {
		because "AMD's PMUs have such bits"
		return "$KSFT_SKIP"
	}
	if ! said=$(./module load ./wrong.ko "what=$RESERVED_STATUS" 2>&1); then
		because "wrong.ko: $said"
		return 1
	fi
	unclaimed
	status=$?
	./module unload wrong >/dev/null || return
	return "$status"
}

for name in while_an_event_counts beside_reserved_bits; do
	run_test $name
done
finish
