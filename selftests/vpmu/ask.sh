# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # top and logs are from scripts/lib.sh
# One conversation with a guest's shell; sourced after scripts/lib.sh.

# ask FILE COMMANDS OPTION…: boots a guest with these options of scripts/guest, types COMMANDS, the last of which is
# exit, and leaves in FILE what it said. Its status is that of scripts/guest.
ask() {
	local answer=$1 commands=$2 before status=0
	shift 2
	mkdir -p "$logs"
	# A shell has no time limit of its own.
	coproc guest { exec timeout --foreground -k 10 1200 "$top/scripts/guest" "$@" 2>&1; }
	local process=$!
	# Of our own: Bash closes the coprocess's when it ends.
	exec 3<&"${guest[0]}" 4>&"${guest[1]}"
	# Input before the shell is there would be lost.
	IFS= read -r -t 240 -d '#' before <&3 || true
	# Nobody may listen any more: then its status tells.
	trap '' PIPE
	printf '%s' "$commands" >&4 2>/dev/null || true
	trap - PIPE
	{ printf '%s\n' "$before" && cat <&3; } | tr -d '\r' >"$answer"
	exec 3<&- 4>&-
	wait "$process" || status=$?
	return "$status"
}
