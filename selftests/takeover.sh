#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests the take-over of the PMU from the built-in driver, and the give-back: the
# cases that rpmu refuses, that no count is lost, and that both can be repeated.
# Starts and ends on the built-in driver.
#
#	rpmu.rounds=N		the number of times that rpmu is loaded and unloaded
#				in a row (default: 6; more detect a use after
#				free more often)

. ./ktap.sh

ROUNDS=$(cmdline rounds)
ROUNDS=${ROUNDS:-6}
BUSY='Device or resource busy'

# hold MODE: opens an event in another process and waits until it counts.
hold() {
	rm -f /tmp/held
	./counted "$1" /tmp/held &
	holder=$!
	tries=0
	while [ ! -e /tmp/held ]; do
		tries=$((tries + 1))
		if [ "$tries" -gt 50 ]; then
			because "could not start a counter"
			kill "$holder"
			return 1
		fi
		usleep 100000
	done
}

release() {
	kill "$holder"
	wait "$holder"
} 2>/dev/null

# hold_children: the same with perf stat and a child of the task that it counts.
hold_children() {
	rm -f /tmp/held
	perf stat -e instructions:u -- sh -c 'sleep 100 & echo $! >/tmp/child; mv /tmp/child /tmp/held; wait' \
		>/dev/null 2>&1 &
	holder=$!
	tries=0
	while [ ! -e /tmp/held ] && [ "$tries" -lt 50 ]; do
		tries=$((tries + 1))
		usleep 100000
	done
	[ -e /tmp/held ] && return
	because "perf stat has not started"
	kill "$holder"
	return 1
}

release_children() {
	kill "$(cat /tmp/held)"
	wait "$holder"
} 2>/dev/null

# users_say PATTERN: succeeds if the file with the users that keep rpmu loaded has such a line, and no other.
users_say() {
	users=$(grep -v '^#' /sys/kernel/debug/rpmu/users)
	[ "$(echo "$users" | wc -l)" = 1 ] && echo "$users" | grep -qE "$1" && return
	because "the users of rpmu do not include \"$1\": ${users:-nothing}"
	return 1
}

built_in_at_start() {
	if loaded; then
		because "rpmu is loaded already"
		return 1
	fi
	counts
}

# The kernel may have disabled the watchdog permanently at boot (in a KVM guest, for
# example); otherwise it must start.
watchdog_on() {
	watchdog 1 && return
	because "the NMI watchdog cannot be switched on"
	dmesg | grep -q 'NMI watchdog: .*permanently disabled' || return 1
	because "the kernel has no NMI watchdog here: permanently disabled"
	return "$KSFT_SKIP"
}

refused_while_watchdog_on() {
	watchdog_on || return
	log_mark "$0"
	refused "$BUSY" && one_line watchdog && counts
	status=$?
	watchdog 0 && return "$status"
	because "the NMI watchdog stays on"
	return 1
}

refused_while_task_counted() {
	hold hold || return
	log_mark "$0"
	refused "$BUSY" && one_line "1 of counted\[$holder\] \(end running perf" && counts
	status=$?
	release
	return "$status"
}

# An inherited event is listed under the task that opened the original event.
refused_while_child_counted() {
	hold_children || return
	log_mark "$0"
	refused "$BUSY" && one_line "events of user space: [23], [23] of perf\[$holder\] \(end running perf" && counts
	status=$?
	release_children
	return "$status"
}

users_name_the_owner_of_inherited_events() {
	load || {
		because "load: $said"
		return 1
	}
	if ! users_say '^$' || ! hold_children; then
		unload
		return 1
	fi
	users_say "^ +[23]  perf\[$holder\] \(end running perf commands\)$"
	status=$?
	release_children
	unload && return "$status"
	because "unload: $said"
	return 1
}

refused_while_cpu_counted() {
	hold hold-cpu || return
	log_mark "$0"
	refused "$BUSY" && one_line "1 of counted\[$holder\] \(end running perf" && counts
	status=$?
	release
	return "$status"
}

# refused_while_taken WHAT PATTERN: succeeds if rpmu refuses to load while another module holds WHAT. If rpmu detects this
# only after the take-over, it also logs the give-back.
refused_while_taken() {
	if ! taken=$(./module load ./taken.ko "what=$1" 2>&1); then
		because "what=$1: $taken"
		return 1
	fi
	log_mark "$0"
	refused "$BUSY" && one_reason "$2"
	status=$?
	if ! taken=$(./module unload taken 2>&1); then
		because "unload taken: $taken"
		return 1
	fi
	counts && return "$status"
	return 1
}

# The last counter, PMC3.
refused_while_counter_taken() {
	refused_while_taken counter 'MSR 0x(c4|c0010207|c0010007) is reserved by another module'
}

refused_while_select_taken() {
	refused_while_taken select 'MSR 0x(189|c0010206|c0010003) is reserved by another module'
}

# rpmu logs the number of the state and the file that shows its holder.
refused_while_hotplug_state_taken() {
	refused_while_taken state 'CPU hotplug state [0-9]+ is taken'
}

refused_while_module_counts() {
	refused_while_taken event 'events of the kernel: 1, 1 of taken_overflow \[taken\]'
}

refused_while_guest_counts() {
	refused_while_taken guest 'events of guests: 1, 1 of taken_overflow \[taken\] \(stop guests'
}

# mediated_guest on|off: makes vm_entry.ko run a guest that has the PMU to itself, or ends the guest.
mediated_guest() {
	case $1 in
	on) mediated_said=$(./module load ./vm_entry.ko mediated=1 2>&1) ;;
	off) mediated_said=$(./module unload vm_entry 2>&1) ;;
	esac
}

refused_beside_mediated_guest() {
	if ! mediated_guest on; then
		because "vm_entry.ko: $mediated_said"
		return 1
	fi
	log_mark "$0"
	refused "$BUSY" && one_line 'end them, and load KVM with enable_mediated_pmu=0'
	status=$?
	if ! mediated_guest off; then
		because "unload vm_entry: $mediated_said"
		return 1
	fi
	counts && return "$status"
	return 1
}

# While rpmu is loaded, such a guest cannot start, and rpmu logs this once. Afterwards, the guest can start.
mediated_guest_is_refused() {
	load || {
		because "load: $said"
		return 1
	}
	log_mark "$0"
	status=0
	for try in 1 2; do
		if mediated_guest on; then
			because "try $try: the guest has started"
			mediated_guest off
			status=1
		fi
		case $mediated_said in
		*"$BUSY"*) ;;
		*)
			because "try $try: $mediated_said"
			status=1
			;;
		esac
	done
	one_line 'guests with a mediated PMU are refused' && counts || status=1
	unload || {
		because "unload: $said"
		return 1
	}
	if ! mediated_guest on || ! mediated_guest off; then
		because "after unloading: $mediated_said"
		return 1
	fi
	counts && return "$status"
	return 1
}

# intel: skips a test that needs an Intel CPU.
intel() {
	grep -qE 'AuthenticAMD|HygonGenuine' /proc/cpuinfo || return 0
	because "the CPU is not Intel's"
	return "$KSFT_SKIP"
}

# KVM and BPF again get the built-in driver's data of the counters.
vm_entry_is_given_back() {
	intel || return
	for driver in rpmu built-in; do
		case $driver in
		rpmu) load ;;
		*) unload ;;
		esac || {
			because "$driver: $said"
			return 1
		}
		./vm_entry >/tmp/vm_entry 2>&1 || {
			because "on $driver: $(grep -m 1 '^not ok' /tmp/vm_entry)"
			grep -F Expected /tmp/vm_entry
			unload
			return 1
		}
	done
}

# Takes the PMU over and gives it back, with exact counts on both drivers.
rounds() {
	round=0
	while [ "$round" -lt "$ROUNDS" ]; do
		round=$((round + 1))
		if ! load; then
			because "round $round: load: $said"
			log_since | tail -n 3 | sed 's/^/# /'
			return 1
		fi
		if ! counts; then
			because "round $round: wrong on rpmu"
			return 1
		fi
		if ! unload; then
			because "round $round: unload: $said"
			return 1
		fi
		if ! counts; then
			because "round $round: wrong on the built-in driver"
			return 1
		fi
	done
}

# read_on_rpmu FILE: sets $here to the content of the PMU's file while rpmu is loaded.
read_on_rpmu() {
	load || {
		because "load: $said"
		return 1
	}
	here=$(cat "$CPU_PMU/$1" 2>&1)
	unload && return
	because "unload: $said"
	return 1
}

pmu_is_the_same() {
	read_on_rpmu type || return
	if [ "$here" != 4 ]; then
		because "type of the PMU \"cpu\" on rpmu: $here, expected 4"
		return 1
	fi
	type=$(cat "$CPU_PMU/type" 2>&1)
	if [ "$type" != 4 ]; then
		because "type of the PMU \"cpu\" after give-back: $type, expected 4"
		return 1
	fi
}

# setting_stays FILE: succeeds if take-over and give-back keep the setting.
setting_stays() {
	for value in 1 0 1; do
		echo "$value" >"$CPU_PMU/$1"
		load || {
			because "load: $said"
			return 1
		}
		here=$(cat "$CPU_PMU/$1")
		echo $((1 - value)) >"$CPU_PMU/$1"
		unload || {
			because "unload: $said"
			return 1
		}
		there=$(cat "$CPU_PMU/$1")
		[ "$here $there" = "$value $((1 - value))" ] && continue
		because "$1: $value reads $here on rpmu, its $((1 - value)) reads $there on the built-in driver"
		return 1
	done
}

rdpmc_stays() {
	before=$(cat "$CPU_PMU/rdpmc")
	setting_stays rdpmc || return
	# Also test the value 2, which takes effect without an open event.
	echo 2 >"$CPU_PMU/rdpmc"
	load || {
		because "load: $said"
		return 1
	}
	here=$(cat "$CPU_PMU/rdpmc")
	echo "$before" >"$CPU_PMU/rdpmc"
	unload || {
		because "unload: $said"
		return 1
	}
	[ "$here" = 2 ] && [ "$(cat "$CPU_PMU/rdpmc")" = "$before" ] && return
	because "2 reads $here"
	return 1
}

freeze_on_smi_stays() {
	intel || return
	before=$(cat "$CPU_PMU/freeze_on_smi")
	setting_stays freeze_on_smi
	status=$?
	echo "$before" >"$CPU_PMU/freeze_on_smi"
	return "$status"
}

# Before it uses the branch records, rpmu tries to write them. They may contain kernel addresses, which Haswell without
# TSX records with upper bits that cannot be written back.
branch_records_stay() {
	if ! before=$(cat "$CPU_PMU/caps/branches" 2>/dev/null); then
		because "the CPU has no branch records"
		return "$KSFT_SKIP"
	fi
	said=$(perf record -q -a -b -o /tmp/branches -e cycles ./counted branches 1000000 2>&1) || {
		because "perf record: $said"
		return 1
	}
	rm -f /tmp/branches
	read_on_rpmu caps/branches || return
	[ "$here" = "$before" ] && return
	because "$before records on the built-in driver, on rpmu: $here"
	return 1
}

# unload_refused MODE: succeeds if rpmu cannot be unloaded while that event is open, but can afterwards.
unload_refused() {
	load || {
		because "load: $said"
		return 1
	}
	hold "$1" || return
	status=0
	if unload; then
		because "unloading was not refused"
		status=1
	elif ! loaded || ! counts; then
		because "unloading was refused, but rpmu does not work any more"
		status=1
	else
		# EWOULDBLOCK of delete_module(2), which rmmod calls "in use".
		case $said in
		*'Resource temporarily unavailable'*) ;;
		*)
			because "unload: $said"
			status=1
			;;
		esac
		users_say "^ +1  counted\[$holder\] \(end running perf commands\)$" || status=1
	fi
	release
	if loaded && ! unload; then
		because "the counter is gone, unload: $said"
		status=1
	fi
	return "$status"
}

unload_refused_while_task_counted() {
	unload_refused hold
}

unload_refused_while_cpu_counted() {
	unload_refused hold-cpu
}

# Open files in debugfs keep the module loaded, because closing a file calls the module's code.
unload_refused_while_debugfs_is_open() {
	load || {
		because "load: $said"
		return 1
	}
	log_mark "$0"
	status=0
	exec 5</sys/kernel/debug/rpmu/refusals
	if unload; then
		because "unloading was not refused"
		status=1
	else
		case $said in
		*'Resource temporarily unavailable'*) ;;
		*)
			because "unload: $said"
			status=1
			;;
		esac
		users_say "^ +1  events on rpmu's tracepoints, .*, or files in this directory " || status=1
	fi
	# Also test a file that has been partly read.
	head -c 1 <&5 >/tmp/first
	if [ "$(cat /tmp/first)" != '#' ]; then
		because "the open file cannot be read: $(cat /tmp/first)"
		status=1
	fi
	if loaded && unload; then
		because "unloading was not refused when the file had been read"
		status=1
	fi
	exec 5<&-
	if loaded && ! unload; then
		because "the file is closed, unload: $said"
		status=1
	fi
	no_trouble && return "$status"
	return 1
}

# unload_beside MODE: unloads rpmu while a task of that mode exists, which has no event of rpmu's. Unloading returns
# soon. If it was refused, it succeeds after the task has ended.
unload_beside() {
	load || {
		because "load: $said"
		return 1
	}
	hold "$1" || return
	usleep 300000
	rm -f /tmp/unloaded
	{
		unload
		echo "$? $said" >/tmp/new
		mv /tmp/new /tmp/unloaded
	} &
	unloader=$!
	tries=0
	while [ ! -e /tmp/unloaded ] && [ "$tries" -lt 50 ]; do
		tries=$((tries + 1))
		usleep 100000
	done
	status=0
	if [ ! -e /tmp/unloaded ]; then
		because "unloading does not end"
		counts || because "nor is there a PMU"
		status=1
	fi
	kill -9 "$holder"
	wait "$holder"
	wait "$unloader"
	usleep 300000
	case $(cat /tmp/unloaded) in
	0*) ;;
	*'Resource temporarily unavailable'*)
		unload || {
			because "the task is gone, unload: $said"
			status=1
		}
		;;
	*)
		because "unload: $(cat /tmp/unloaded)"
		status=1
		;;
	esac
	counts || status=1
	return "$status"
} 2>/dev/null

unload_beside_stuck_ioctl() {
	unload_beside stuck
}

TRACE=/sys/kernel/tracing

# tracing ROUND: enables rpmu's tracepoints and checks that they fire.
tracing() {
	if ! echo 1 >"$TRACE"/events/rpmu/enable; then
		because "round $1: tracing does not start"
		return 1
	fi
	echo >"$TRACE"/trace
	counts || return
	grep -q ' schedule: id=' "$TRACE"/trace && return
	because "round $1: nothing was traced"
	return 1
}

# Every step that can fail precedes the step after which users can open events, because undoing a step would have to
# wait for these events. The files in debugfs are created last and cannot fail: when a load fails, the kernel frees the
# module even if one of them is open.
files_come_last() {
	{
		echo "p:rpmu_test/dir debugfs_create_dir name=+0(\$arg1):string"
		echo 'p:rpmu_test/pmu perf_pmu_register'
	} >"$TRACE"/kprobe_events
	echo 1 >"$TRACE"/events/rpmu_test/enable || {
		because "the kernel has no kprobes"
		return 1
	}
	echo >"$TRACE"/trace
	load || because "load: $said"
	echo 0 >"$TRACE"/events/rpmu_test/enable
	# Other parts of the kernel also have directories, such as the allocator on a debug kernel.
	order=$(sed -nE 's/^ *module-.*: pmu: \(.*/pmu/p; s/^ *module-.*: dir: \(.* name="(rpmu)"$/\1/p' \
		"$TRACE"/trace | uniq | tr '\n' ' ')
	echo >"$TRACE"/kprobe_events
	unload || {
		because "unload: $said"
		return 1
	}
	case $order in
	'pmu rpmu ') return ;;
	esac
	because "in this order: $order"
	return 1
}

# Enabled tracepoints do not keep the module loaded. Unloading removes them, both while tracing is on and after it was
# turned off.
unload_while_traced() {
	log_mark "$0"
	round=0
	while [ "$round" -lt "$ROUNDS" ]; do
		round=$((round + 1))
		load || {
			because "round $round: load: $said"
			return 1
		}
		tracing "$round" || return
		[ $((round % 2)) = 0 ] || echo 0 >"$TRACE"/events/rpmu/enable
		unload || {
			because "round $round: unload: $said"
			return 1
		}
		if [ -e "$TRACE"/events/rpmu ]; then
			because "round $round: the tracepoints are still there"
			return 1
		fi
		counts || return
	done
	no_trouble
}

# Events of perf on the tracepoints keep the module loaded.
unload_refused_while_perf_traces() {
	load || {
		because "load: $said"
		return 1
	}
	perf stat -a -e rpmu:schedule,rpmu:rotate -- sleep 100 >/dev/null 2>&1 &
	holder=$!
	tries=0
	while [ "$(cat /sys/module/rpmu/refcnt)" = 0 ] && [ "$tries" -lt 50 ]; do
		tries=$((tries + 1))
		usleep 100000
	done
	status=0
	if unload; then
		because "rpmu was unloaded while its tracepoints were in use"
		status=1
	fi
	users_say "^ +[1-9][0-9]*  events on rpmu's tracepoints, " || status=1
	release
	if loaded && ! unload; then
		because "nothing is traced any more, unload: $said"
		status=1
	fi
	return "$status"
}

# The perf core rotates events on a timer of each CPU, and frees the timers with the PMU even if they are running. A
# timer runs for one interval after the interval was written, and after the last waiting event was closed. A use after
# free often has no effect: this test detects most in a guest with slub_debug=FZPU on its command line.

# rotate MS: writes the interval, which starts the timers.
rotate() {
	echo "$1" >"$CPU_PMU/perf_event_mux_interval_ms" && return
	because "cannot write perf_event_mux_interval_ms"
	return 1
}

# more_events_than_counters: counts more events than there are counters, which starts the
# timers.
more_events_than_counters() {
	perf stat -e r0c4:u,r1c4:u,r2c4:u,r4c4:u,r8c4:u,r10c4:u,r20c4:u,r40c4:u,r80c4:u \
		./counted branches 1000000 >/dev/null 2>&1 && return
	because "perf stat failed"
	return 1
}

# no_trouble: succeeds if the log is clean after every timer has expired.
no_trouble() {
	sleep 1
	trouble=$(log_trouble since)
	[ -z "$trouble" ] && return
	because "$(echo "$trouble" | head -n 1)"
	return 1
}

# rotating START: takes the PMU over and gives it back, each time while the timers run.
rotating() {
	log_mark "$0"
	round=0
	interval=$(cat "$CPU_PMU/perf_event_mux_interval_ms")
	while [ "$round" -lt "$ROUNDS" ]; do
		round=$((round + 1))
		$1 $((400 + round)) || return
		load || {
			because "round $round: load: $said"
			return 1
		}
		$1 $((500 + round)) || return
		unload || {
			because "round $round: unload: $said"
			return 1
		}
	done
	no_trouble && rotate "$interval" && counts
}

interval_written_before() {
	rotating rotate
}

multiplexed_before() {
	rotating more_events_than_counters
}

watchdog_after_give_back() {
	watchdog_on || return
	counts
	status=$?
	watchdog 0
	return "$status"
}

# The NMI watchdog has an event on each CPU, which keeps rpmu loaded.
watchdog_on_rpmu() {
	load || {
		because "load: $said"
		return 1
	}
	watchdog 1
	events=$(cat /sys/module/rpmu/refcnt)
	counts
	status=$?
	if unload; then
		because "rpmu was unloaded while the watchdog used it"
		return 1
	fi
	users_say "^ +$(nproc)  the NMI watchdog \(sysctl kernel.nmi_watchdog=0\)$" || status=1
	watchdog 0
	if [ "$events" != "$(nproc)" ]; then
		because "$events events of the watchdog"
		status=1
	fi
	unload || {
		because "unload: $said"
		return 1
	}
	return "$status"
}

parameters_are_in_sysfs() {
	load_with "max_period=5000 share=0" || {
		because "load: $said"
		return 1
	}
	found=''
	for name in dry_run ht_workaround max_period policy share trial trust_layouts; do
		found="$found $name=$(cat "/sys/module/rpmu/parameters/$name" 2>/dev/null)"
	done
	version=$(cat /sys/module/rpmu/version 2>/dev/null)
	unload || {
		because "unload: $said"
		return 1
	}
	case "$version $found" in
	[0-9]*.*\ \ dry_run=N\ ht_workaround=Y\ max_period=5000\ policy=rpmu\ share=N\ trial=0\ trust_layouts=[NY]) return ;;
	esac
	because "version '$version', parameters$found"
	return 1
}

built_in_at_end() {
	if loaded; then
		because "rpmu is still loaded"
		return 1
	fi
	counts
}

for name in built_in_at_start refused_while_watchdog_on \
	refused_while_task_counted refused_while_child_counted refused_while_cpu_counted \
	refused_while_counter_taken users_name_the_owner_of_inherited_events \
	refused_while_select_taken refused_while_hotplug_state_taken refused_while_module_counts \
	refused_while_guest_counts refused_beside_mediated_guest mediated_guest_is_refused \
	vm_entry_is_given_back rounds \
	pmu_is_the_same unload_refused_while_task_counted \
	unload_refused_while_cpu_counted unload_refused_while_debugfs_is_open unload_beside_stuck_ioctl watchdog_on_rpmu \
	watchdog_after_give_back rdpmc_stays freeze_on_smi_stays branch_records_stay \
	interval_written_before multiplexed_before \
	files_come_last unload_while_traced unload_refused_while_perf_traces \
	parameters_are_in_sysfs \
	built_in_at_end; do
	run_test $name
done
finish
