#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# rpmu's assignment of counters against the kernel's own: a module compares the
# two (selftests/assign) and leaves its KTAP in the kernel's log. With a number
# as argument, on so many sets of events.

# shellcheck source-path=SCRIPTDIR/guest
. ./guest-lib.sh

log_mark assign
if ! said=$(./module load ./assign_test.ko "${1:+sets=$1}" 2>&1); then
	echo "Bail out! $said"
	exit 1
fi
log_since | sed -n 's/.*assign_test: //p' >/tmp/assign.log
./module unload assign_test
cat /tmp/assign.log
! grep -q '^not ok' /tmp/assign.log
