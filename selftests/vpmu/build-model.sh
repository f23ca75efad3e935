#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Builds the hardware model. Runs inside the tool root.
#
# usage: KERNEL_SOURCE=DIR build-model.sh TARGET
#   KERNEL_SOURCE  an unpacked kernel source, for Intel's event lists in tools/perf/pmu-events
#   TARGET         cargo's target directory; the model is TARGET/release/libvpmu.so
set -eu

[ $# -eq 1 ] || {
	echo "usage: KERNEL_SOURCE=DIR build-model.sh TARGET" >&2
	exit 1
}
cd "$(dirname "$0")"
CARGO_TARGET_DIR=$1 cargo build --release --offline
