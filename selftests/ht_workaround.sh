#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests the hyper-threading erratum with and without the work-around, and the other
# parameters of the module. Starts and ends on the built-in driver.

. ./ktap.sh

# counts_with PARAMETERS: runs the test of exact counts beside a corrupting event.
counts_with() {
	load_with "$1" || {
		because "load: $said"
		return 2
	}
	./ht_exclusion -t counts_are_right >/tmp/ht 2>&1
	status=$?
	unload || {
		because "unload: $said"
		return 2
	}
	! grep -q SKIP /tmp/ht || return "$KSFT_SKIP"
	return "$status"
}

right_with_the_workaround() {
	counts_with ht_workaround=1
	case $? in
	4)
		because "these CPUs do not have the erratum, or one thread per core"
		return "$KSFT_SKIP"
		;;
	0) ;;
	*)
		because "the counts are wrong"
		sed 's/^/# /' /tmp/ht
		return 1
		;;
	esac
}

wrong_without() {
	counts_with ht_workaround=0
	case $? in
	0)
		because "the counts are right: does the PMU have the defect?"
		return 1
		;;
	1)
		# The erratum can only increase counts of branches.
		grep -q 'Expected expected + ROUNDS' /tmp/ht &&
			! grep 'Expected' /tmp/ht | grep -qv 'Expected expected + ROUNDS' && return
		because "it failed for another reason"
		sed 's/^/# /' /tmp/ht
		return 1
		;;
	2) return 1 ;;
	4)
		because "these CPUs do not have the erratum, or one thread per core"
		return "$KSFT_SKIP"
		;;
	*)
		because "status $status"
		sed 's/^/# /' /tmp/ht
		return 1
		;;
	esac
}

policies() {
	for policy in mainline rpmu; do
		load_with "policy=$policy" || {
			because "$policy: $said"
			return 1
		}
		./counted check >/tmp/ht || {
			because "$policy: $(cat /tmp/ht)"
			return 1
		}
		unload || {
			because "unload: $said"
			return 1
		}
	done
}

# Both threads also get their shares in the perf core's order.
shares_by_mainline_policy() {
	load_with policy=mainline || {
		because "load: $said"
		return 1
	}
	./ht_exclusion -t share_beside_rotation -t share_on_both_threads >/tmp/ht 2>&1
	status=$?
	unload || {
		because "unload: $said"
		return 1
	}
	! grep -q SKIP /tmp/ht || {
		because "these CPUs do not have the erratum, or one thread per core"
		return "$KSFT_SKIP"
	}
	[ "$status" = 0 ] || {
		because "status $status"
		sed 's/^/# /' /tmp/ht
		return 1
	}
}

unknown_policy() {
	log_mark unknown_policy
	if load_with policy=best; then
		because "policy=best was accepted"
		unload
		return 1
	fi
	case $said in
	*'Invalid argument'*) ;;
	*)
		because "load: $said"
		return 1
		;;
	esac
	log_since | grep -q 'policy="best" is unknown' || {
		because "the log has no reason"
		return 1
	}
}

for name in right_with_the_workaround wrong_without policies shares_by_mainline_policy unknown_policy; do
	run_test $name
done
finish
