#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Compares rpmu's assignment of counters with the kernel's: a module
# (selftests/assign) prints its KTAP to the kernel's log. The argument is the
# number of sets of events.

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
