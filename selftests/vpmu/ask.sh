# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # top and logs are from scripts/lib.sh
# Runs commands in a guest's shell; sourced after scripts/lib.sh.

# ask FILE COMMANDS OPTION…: boots a guest with these options of scripts/guest, types COMMANDS, the last of which is
# exit, and writes the guest's output to FILE. Returns the status of scripts/guest.
ask() {
	local answer=$1 commands=$2 before tries status=0
	shift 2
	mkdir -p "$logs"
	# The shell itself has no time limit.
	coproc guest { exec timeout --foreground -k 10 1200 "$top/scripts/guest" "$@" 2>&1; }
	local process=$!
	# Duplicate the descriptors: Bash closes the coprocess's own when the coprocess ends.
	exec 3<&"${guest[0]}" 4>&"${guest[1]}"
	# Input that arrives before the shell runs would be lost.
	IFS= read -r -t 240 -d '#' before <&3 || true
	# The guest may have ended already; its status shows why.
	trap '' PIPE
	# Even after the prompt, the shell drops input until it reads: wait for the prompt that follows an empty line.
	for ((tries = 0; tries < 12; tries++)); do
		printf '\n' >&4 2>/dev/null || break
		! IFS= read -r -t 5 -d '#' _ <&3 || break
	done
	printf '%s' "$commands" >&4 2>/dev/null || true
	trap - PIPE
	{ printf '%s\n' "$before" && cat <&3; } | tr -d '\r' >"$answer"
	exec 3<&- 4>&-
	wait "$process" || status=$?
	return "$status"
}
