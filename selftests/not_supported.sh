#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests a CPU that rpmu does not support: rpmu refuses to load and names the CPU in
# one line.

. ./ktap.sh

not_intel_here() {
	grep -q '^vendor_id.*AuthenticAMD' /proc/cpuinfo && return
	because "this is not the guest for this test"
	return 1
}

refused_with_its_vendor() {
	log_mark "$0"
	refused 'No such device' && one_line 'CPU family 6 model 0x3c is not supported'
}

for name in not_intel_here refused_with_its_vendor; do
	run_test $name
done
finish
