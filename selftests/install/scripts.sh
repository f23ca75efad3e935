#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Tests the scripts' messages when they are called wrongly, interrupted, or out of space. Prints TAP.
# shellcheck disable=SC2317 # functions are called by their names
. "$(dirname "$0")/../../scripts/lib.sh"
. "$(dirname "$0")/../../scripts/tap.sh"
usage "usage: selftests/install/scripts.sh

Calls each script with --help and with an unknown option, interrupts a script that waits for another, runs scripts/clean, and
checks the error for a build log that reports a full disk." "${1:-}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
said=$work/said
because() { tail -n 5 "$said" | sed 's/^/# /'; }

# each COMMAND…: runs COMMAND with each script as its last argument; succeeds if all do, and there are at least 20
# scripts.
each() {
	local script status=0 scripts
	mapfile -t scripts < <(grep -lsE '^usage "usage: |^# usage: dkms-' "$top"/scripts/* "$top"/selftests/*/*.sh)
	: >"$said"
	for script in "${scripts[@]}"; do
		"$@" "$script" || {
			echo "$script" >>"$said"
			status=1
		}
	done
	return $((status || ${#scripts[@]} < 20))
}

# run STATUS WORDS ARGUMENT SCRIPT: succeeds if SCRIPT ends with that status (! for any but 0) and prints WORDS. Runs
# SCRIPT in an empty directory: DKMS's scripts would change files in the current one if they did not end at ARGUMENT.
run() {
	local status=0 said
	mkdir -p "$work/empty"
	said=$(cd "$work/empty" && timeout 20 "$4" "$3" 2>&1 </dev/null) || status=$?
	[[ $said == *"$2"* && $status != 124 ]] || return
	if [[ $1 == ! ]]; then ((status)); else [[ $1 == "$status" ]]; fi
}

# A script that waits for another script, which waits for a step.
cat >"$work/inner" <<END
#!/usr/bin/env bash
. "$top/scripts/lib.sh"
step scripts-test 'waiting' sleep 60
END
cat >"$work/outer" <<END
#!/usr/bin/env bash
. "$top/scripts/lib.sh"
product=\$("$work/inner")
END
chmod +x "$work/inner" "$work/outer"

# Sends SIGINT to the process group of the scripts, as Ctrl-C does to the foreground's.
says_once_that_it_was_interrupted() {
	local status=0 tries=0
	set -m
	# If this test was started in the background, it ignores SIGINT, and the scripts would inherit that.
	env --default-signal=INT -u RPMU_OUTERMOST "$work/outer" >"$said" 2>&1 &
	set +m
	until grep -q waiting "$said" || ((++tries > 100)); do sleep 0.1; done
	kill -INT -- "-$!"
	wait $! || status=$?
	[[ $status == 130 && $(grep -c 'nothing half-made is kept' "$said") == 1 ]]
}

names_the_full_disk_last() {
	mkdir -p "$work/out"
	cat >"$work/full" <<-END
		. "$top/scripts/lib.sh"
		out=$work/out
		$(sed -n '/^failed() {/,/^}/p' "$top/scripts/module")
		echo "cc1: error: No space left on device" >"\$out/build.log"
		failed 'rpmu.ko could not be built'
	END
	! bash "$work/full" >"$said" 2>&1 && [[ $(tail -n 1 "$said") == 'rpmu: error: rpmu.ko could not be built: a disk is full: '* ]]
}

# Copies the scripts into a new checkout. Fills a new cache with empty directories, one for each product of the new
# checkout, of a copy of it, and of another checkout. Succeeds if the new checkout's scripts/clean removes only its own
# products and its copy's, and scripts/clean --cache the products of all checkouts, but no other directory.
removes_all_products() {
	local names name other mine=$work/checkout status=0
	mkdir -p "$mine"
	cp -r "$top/scripts" "$mine"
	# Names in the form NAME-KEY or, if the product depends on a kernel, NAME-KEY-target.
	mapfile -t names < <(cd "$top" && grep -rhoE '[$]cache/[a-z-]+-[$][(]key "[$]top"[)](-[$])?' scripts selftests |
		sed -E 's/^[$]cache\///; s/[$][(]key "[$]top"[)]/KEY/; s/-[$]$/-target/' | sort -u)
	(
		export RPMU_CACHE=$work/cache
		other=$RPMU_CACHE/others
		for name in "${names[@]}"; do
			# The products of the checkout, of a copy that a test has made of it, and of another checkout.
			mkdir -p "$RPMU_CACHE/${name/KEY/$(key "$mine")}" "$other" \
				"$RPMU_CACHE/${name/KEY/$(key "$RPMU_CACHE/wrong-table-$(key "$mine")")}" "$RPMU_CACHE/${name/KEY/other}"
		done
		"$mine/scripts/clean" && [[ $(find "$RPMU_CACHE" -mindepth 1 -maxdepth 1 | wc -l) == $((${#names[@]} + 1)) ]] &&
			"$mine/scripts/clean" --cache && [[ $(find "$RPMU_CACHE" -mindepth 1) == "$other" ]]
	) >"$said" 2>&1 || status=1
	find "$work/cache" -mindepth 1 >>"$said"
	return $((status || ${#names[@]} < 10))
}

echo 'TAP version 13'
check scripts.help each run 0 usage: --help
check scripts.refuse_unknown_options each run ! --bogus --bogus
check scripts.refuse_unknown_words run ! bogus bogus "$top/scripts/demo"
check scripts.dkms_prepare_needs_a_release run 2 'no kernel release is given' '' "$top/scripts/dkms-prepare"
check scripts.clean_removes_all_products removes_all_products
check scripts.say_once_that_they_were_interrupted says_once_that_it_was_interrupted
check scripts.name_a_full_disk_last names_the_full_disk_last
echo "1..$nr"
exit "$failed"
