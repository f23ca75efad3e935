#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Runs some of the selftests, as installed by `make install`, with the kernel's
# run_kselftest.sh, on the driver that has the PMU.

. ./ktap.sh

RUN='refused bad_attr sysfs.sh'

# run_kselftest OPTION...: runs the kselftest runner with its output in a file.
run_kselftest() {
	# Use a pipe: the runner opens its output again for each test, and would overwrite
	# a file.
	{
		../run_kselftest.sh "$@" 2>&1
		echo "status $?"
	} | cat >/tmp/kselftest
}

# said PATTERN: succeeds if a line of the runner's output matches.
said() {
	grep -qE "$1" /tmp/kselftest && return
	because "run_kselftest.sh has not printed \"$1\""
	sed 's/^/# /' /tmp/kselftest
	return 1
}

# The runner lists the tests, and each of them exists.
lists_tests() {
	run_kselftest --list
	said '^rpmu:exact_count$' && said '^rpmu:sysfs.sh$' || return
	sed -n 's/^rpmu://p' /tmp/kselftest | while read -r test; do
		[ -x "./$test" ] && continue
		because "there is no $test"
		return 1
	done
}

runs_tests() {
	options=''
	for test in $RUN; do
		options="$options -t rpmu:$test"
	done
	# shellcheck disable=SC2086 # words
	run_kselftest $options
	for test in $RUN; do
		said "^ok [0-9]+ selftests: rpmu: $test\$" || return
	done
	said '^# Totals: pass:3 fail:0 xfail:0 xpass:0 skip:0 error:0$' && said '^status 0$'
}

# The runner has read the file settings.
keeps_timeout() {
	said '^# timeout set to 600$'
}

refuses_unknown() {
	run_kselftest -t rpmu:unknown
	said "^No such test 'rpmu:unknown'\$" && said '^status 1$'
}

for name in lists_tests runs_tests keeps_timeout refuses_unknown; do
	run_test $name
done
finish
