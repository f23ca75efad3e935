# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
# TAP for scripts that look at what a guest has said; sourced. Such a script ends with echo "1..$nr" and exit "$failed".

nr=0 failed=0

# check NAME COMMAND…: a result. Where it is a failure, the script's function because, if it has one, says more.
check() {
	local name=$1
	shift
	nr=$((nr + 1))
	if "$@"; then
		echo "ok $nr $name"
		return
	fi
	echo "not ok $nr $name"
	failed=1
	! declare -F because >/dev/null || because
}
