# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
# TAP for scripts that judge a guest's output; sourced. Such a script ends with echo "1..$nr" and exit "$failed".

nr=0 failed=0

# check NAME COMMAND…: reports a result. On failure, calls the script's function `because`, if there is one.
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
