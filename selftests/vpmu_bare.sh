#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Runs the checks of vpmu_bare.ko, which reports to the kernel's log. With
# initcall_blacklist=init_hw_perf_events,bts_init nmi_watchdog=0, no driver has used
# the emulated PMU yet.

# shellcheck source-path=SCRIPTDIR/guest
. ./guest-lib.sh

pebs=$(cmdline pebs)
log_mark vpmu_bare
./module load "$RPMU/vpmu_bare.ko" "defects=$(cmdline defects) pebs=${pebs:-0}"
log_since | sed -n 's/^\[[^]]*\] vpmu_bare: //p' |
	grep -vE 'loading out-of-tree module|module verification failed' >/tmp/vpmu_bare
cat /tmp/vpmu_bare
! grep -q '^not ok' /tmp/vpmu_bare
