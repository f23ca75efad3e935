/* SPDX-License-Identifier: GPL-2.0 */
/* The requests to /dev/vm_entry, for vm_entry.ko and its test. */
#ifndef RPMU_SELFTESTS_VM_ENTRY_H
#define RPMU_SELFTESTS_VM_ENTRY_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define VM_ENTRY_EVENTS		16
#define VM_ENTRY_BRANCHES_MAX	32

/* The state of a CPU's counters at one moment. */
struct vm_entry_state {
	__u32 nr;			/* in: the number of events */
	__s32 fd[VM_ENTRY_EVENTS];	/* in: descriptors; -1 - n: event n of VM_ENTRY_OPEN */
	__s32 idx[VM_ENTRY_EVENTS];	/* out: hw.idx of each */
	__u32 stopped[VM_ENTRY_EVENTS];	/* out: PERF_HES_STOPPED of each */
	__u64 host;			/* out: GLOBAL_CTRL after a VM exit */
	__u64 guest;			/* out: GLOBAL_CTRL after a VM entry */
	__u64 control;			/* out: GLOBAL_CTRL now */
	__u64 selected;			/* out: counters whose event select or control is enabled */
};

/* Events of the calling task, opened like KVM's events for a guest. */
struct vm_entry_open {
	__u32 type;
	__u32 flags;
	__u64 config;
	__u64 period;
	__u64 branch_sample_type;
};

#define VM_ENTRY_SNAPSHOT_IN_PMI	1	/* take a snapshot in the overflow handler */
#define VM_ENTRY_IN_HOST		2	/* not exclude_host */
#define VM_ENTRY_PRECISE		4	/* precise_ip of 1 */

struct vm_entry_run {
	__u64 loops;		/* in: passes of a loop of 2 instructions */
	__u32 defer;		/* in: delay the PMI until the VM exit */
	__u32 switched;		/* out: whether KVM would switch GLOBAL_CTRL */
	__u64 pebs;		/* in: the guest's PEBS_ENABLE */
	__u64 reset;		/* in: the reload value of its counters */
	__u32 threshold;	/* in: the number of records that raise a PMI */
	__u32 records;		/* out: the guest's records */
	__u32 known;		/* out: whether the kernel knows about guests */
	__u32 reserved;
};

struct vm_entry_event {
	__u32 nr;		/* in: what VM_ENTRY_OPEN returned */
	__u32 overflows;	/* out: calls of the overflow handler */
	__u64 value;		/* in: VM_ENTRY_PERIOD; out: VM_ENTRY_PAUSE */
	__u64 control;		/* out: GLOBAL_CTRL after the last VM_ENTRY_SNAPSHOT_IN_PMI */
};

struct vm_entry_branches {
	__u32 nr;		/* out */
	__u32 reserved;
	struct {
		__u64 from, to, flags;
	} entries[VM_ENTRY_BRANCHES_MAX];	/* out: struct perf_branch_entry */
};

/* The branch records, which the event of a guest's branch stack lends to the guest. */
struct vm_entry_records {
	__u32 nr;		/* in: what VM_ENTRY_OPEN returned */
	__u32 write;		/* in: write the registers, otherwise read them */
	__u32 lent;		/* out: whether they are lent; if not, nothing is done */
	__u32 recording;	/* out: whether branches are recorded now, in the host */
	__u64 select;
	__u64 tos;
	__u64 from[VM_ENTRY_BRANCHES_MAX];
	__u64 to[VM_ENTRY_BRANCHES_MAX];
	__u32 depth;		/* in: the number of records */
	__u32 reserved;
};

#define VM_ENTRY_STATE		_IOWR('V', 0, struct vm_entry_state)
/* Enters a guest that executes a loop, and leaves it. */
#define VM_ENTRY_RUN		_IOWR('V', 1, struct vm_entry_run)
/*
 * Calls bpf_get_branch_snapshot()'s function, then executes this many passes of
 * a loop.
 */
#define VM_ENTRY_SNAPSHOT	_IO('V', 2)
/*
 * With an argument other than 0, makes each write of an MSR on this CPU call that
 * function; with 0, ends this. Returns the number of these calls
 * since the previous request.
 */
#define VM_ENTRY_SNAPSHOTS	_IO('V', 3)
#define VM_ENTRY_OPEN		_IOW('V', 4, struct vm_entry_open)
#define VM_ENTRY_CLOSE		_IO('V', 5)
#define VM_ENTRY_PAUSE		_IOWR('V', 6, struct vm_entry_event)
#define VM_ENTRY_PERIOD		_IOWR('V', 7, struct vm_entry_event)
#define VM_ENTRY_ENABLE		_IOWR('V', 8, struct vm_entry_event)
/* Creates a guest with a mediated PMU, and ends one. */
#define VM_ENTRY_MEDIATED	_IO('V', 9)
#define VM_ENTRY_UNMEDIATED	_IO('V', 10)
/* Calls bpf_get_branch_snapshot()'s function, and returns its result. */
#define VM_ENTRY_BRANCHES	_IOR('V', 11, struct vm_entry_branches)
/* Accesses the branch records like a guest to which they are lent. */
#define VM_ENTRY_RECORDS	_IOWR('V', 12, struct vm_entry_records)

#endif
