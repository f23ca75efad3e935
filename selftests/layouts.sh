#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2317 # tests are called by their names
#
# Tests kernels that rpmu was not built for or not tested on: rpmu refuses to load
# with one line in the log, or turns a feature off. A module changes the kernel's
# BTF, as if its structures were different. Starts and ends on the built-in driver.

. ./ktap.sh

built_in_at_start() {
	if loaded; then
		because "rpmu is loaded already"
		return 1
	fi
	counts
}

# change_btf PARAMETERS...: changes the kernel's BTF until restore_btf. Skips the test if the kernel has no BTF.
change_btf() {
	if [ -z "$start" ]; then
		because "this kernel has no BTF"
		return "$KSFT_SKIP"
	fi
	output=$(./module load ./layout.ko "start=$start $*" 2>&1) && return
	because "$*: $output"
	return 1
}

restore_btf() {
	output=$(./module unload layout 2>&1) && return
	because "unload: $output"
	return 1
}

# stays_out PATTERN PARAMETERS...: succeeds if rpmu refuses to load with that BTF, gives the reason, and leaves
# the built-in driver working.
stays_out() {
	pattern=$1
	shift
	change_btf "$@" || return
	log_mark "$0"
	refused 'Exec format error' && one_line "$pattern" && counts
	status=$?
	restore_btf && counts && return "$status"
	return 1
}

# struct perf_event has an extra member before one that rpmu uses.
member_inserted() {
	stays_out 'struct perf_event, member hw\.event_base_rdpmc: built for 4 bytes at offset [0-9]+, this kernel has 4 bytes at offset [0-9]+;' \
		structure=perf_event member=hw
}

# These members are used only by inline functions of the kernel's headers.
inline_member_moved() {
	for moved in cpuinfo_x86:topo:topo.amd_node_id cpuinfo_x86:x86_phys_bits:x86_capability \
		mm_struct:flexible_array:flexible_array device:driver_data:driver_data module:name:name \
		task_struct:pid:pid kretprobe_instance:data:data rethook:data:data; do
		structure=${moved%%:*} inserted=${moved#*:}
		stays_out "struct $structure, member ${inserted#*:}: built for [0-9]+ bytes at offset [0-9]+, this kernel has [0-9]+ bytes at" \
			"structure=$structure" "member=${inserted%:*}" || return
	done
}

# Members that rpmu does not use may move.
unused_member_inserted() {
	change_btf structure=perf_event member=orig_type || return
	log_mark "$0"
	status=0
	load && counts || status=1
	! loaded || unload || status=1
	[ "$status" = 0 ] || because "$said"
	restore_btf && counts && return "$status"
	return 1
}

# If struct pmu is larger than rpmu's, the perf core would write beyond the end of rpmu's.
structure_grown() {
	stays_out 'struct pmu: built for [0-9]+ bytes, this kernel has [0-9]+;' structure=pmu member=check_period
}

member_gone() {
	stays_out 'struct x86_pmu, member attr_rdpmc: built for 4 bytes, this kernel has no such member;' \
		structure=x86_pmu member=attr_rdpmc renamed=1
}

per_cpu_member_gone() {
	stays_out 'struct cpu_hw_events, member dirty: built for 8 bytes, this kernel has no such member;' \
		structure=cpu_hw_events member=dirty renamed=1
}

btf_damaged() {
	stays_out 'cannot be checked .*CONFIG_DEBUG_INFO_BTF.*trust_layouts=1' ''
}

no_btf() {
	if [ -e /sys/kernel/btf/vmlinux ]; then
		because "this kernel has BTF"
		return "$KSFT_SKIP"
	fi
	parameters=$RPMU_PARAMETERS
	RPMU_PARAMETERS=
	log_mark "$0"
	refused 'Exec format error' && one_line 'cannot be checked .*CONFIG_DEBUG_INFO_BTF.*trust_layouts=1' && counts
	status=$?
	RPMU_PARAMETERS=$parameters
	return "$status"
}

# loads_with PARAMETERS PATTERN: succeeds if rpmu loads, logs PATTERN, and counts.
loads_with() {
	log_mark "$0"
	if ! load_with "$1"; then
		because "load: $said"
		return 1
	fi
	status=0
	if ! said_by_rpmu | grep -qE "$2"; then
		because "no line with \"$2\": $(said_by_rpmu | head -n 1)"
		status=1
	fi
	# With more events than counters, events rotate.
	counts && rotates || status=1
	unload && return "$status"
	because "unload: $said"
	return 1
}

rotates() {
	perf stat -x, -e r0c4:u,r1c4:u,r2c4:u,r4c4:u,r8c4:u,r20c4:u,r0c0:u,r100c0:u,r200c0:u ./counted branches 3000000 \
		>/tmp/rotated 2>&1 && ! grep -q '<not' /tmp/rotated && return
	because "nine events: $(tail -n 1 /tmp/rotated)"
	return 1
}

# Without BTF, trust_layouts assumes the layouts that rpmu was built for.
trusted() {
	change_btf '' || return
	loads_with trust_layouts=1 'cannot be checked .*trust_layouts=1'
	status=$?
	restore_btf && counts && return "$status"
	return 1
}

# With BTF, trust_layouts changes nothing.
not_trusted() {
	change_btf structure=perf_event member=hw || return
	log_mark "$0"
	status=0
	if load_with trust_layouts=1; then
		because "loading was not refused"
		unload
		status=1
	else
		one_line 'struct perf_event, member hw' || status=1
	fi
	restore_btf && counts && return "$status"
	return 1
}

untried_version() {
	loads_with release=7.4.1-other 'not tried on Linux "7.4.1-other": groups rotate in the perf core'\''s order'
}

# On the tested version, rpmu logs nothing about it.
tried_version() {
	loads_with '' 'general-purpose' || return
	! log_since | grep 'not tried' && return
	because "$(log_since | grep -m 1 'not tried')"
	return 1
}

start=$(grep -m 1 ' __start_BTF$' /proc/kallsyms)
start=${start:+0x${start%% *}}
for name in built_in_at_start member_inserted inline_member_moved unused_member_inserted structure_grown member_gone \
	per_cpu_member_gone btf_damaged no_btf trusted not_trusted untried_version tried_version; do
	run_test $name
done
finish
