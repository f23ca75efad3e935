// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the events that count in virtual machines and outside of them, and the
 * side effects of BPF's branch snapshots. vm_entry.ko imitates KVM and BPF. It
 * calls the built-in driver's code, which remains in use beside rpmu; both
 * drivers must give the same results.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "branch_programs.h"
#include "perf_util.h"
#include "vm_entry/vm_entry.h"

#define MODULE		"./vm_entry.ko"
#define DEVICE		"/dev/vm_entry"
/* A virtual machine may have no branch records. */
#define CAPS_BRANCHES	CPU_PMU "/caps/branches"
#define LOOPS		100000UL
/*
 * The instructions that vm_entry.ko's guest executes, including its last write
 * of GLOBAL_CTRL.
 */
#define GUEST(loops)	(2 * (__u64)(loops) + 3)
#define FIRST_FIXED	32
#define VLBR_EVENT	0x1b00	/* INTEL_FIXED_VLBR_EVENT */

/* The places where an event counts. */
enum {
	NOWHERE = 0,
	IN_HOST = 1,
	IN_GUEST = 2,
	EVERYWHERE = 3,
};

static struct perf_event_attr counting_in(unsigned int where, __u64 config)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, config);

	attr.exclude_host = !(where & IN_HOST);
	attr.exclude_guest = !(where & IN_GUEST);
	return attr;
}

FIXTURE(vm_entry)
{
	int fd;
	int group[4];
	struct vm_entry_state state;
};

FIXTURE_SETUP(vm_entry)
{
	self->fd = -1;
	if (access(MODULE, R_OK))
		SKIP(return, "needs " MODULE);
	if (is_amd())
		SKIP(return, "KVM asks only Intel's driver at an entry");
	ASSERT_TRUE(load_module(MODULE, ""));
	self->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
}

FIXTURE_TEARDOWN(vm_entry)
{
	if (self->fd < 0)
		return;
	close(self->fd);
	EXPECT_TRUE(unload_module("vm_entry"));
}

/* Enters a guest that makes this many passes. Returns false if that fails. */
static bool enter(int fd, unsigned long loops, bool defer, bool *switched)
{
	struct vm_entry_run run = { .loops = loops, .defer = defer };

	if (ioctl(fd, VM_ENTRY_RUN, &run))
		return false;
	if (switched)
		*switched = run.switched;
	return true;
}

/*
 * Opens a group of four instruction events, one for each of the places; the first
 * one counts in WHERE.
 */
static bool open_group(int *group, unsigned int where)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		struct perf_event_attr attr = counting_in((where + i) % 4, RAW_INSTRUCTIONS);

		attr.disabled = i == 0;
		group[i] = perf_open_self(&attr, i ? group[0] : -1);
		if (group[i] < 0)
			return false;
	}
	return true;
}

static void close_all(int *fds, unsigned int nr)
{
	while (nr)
		close(fds[--nr]);
}

static bool get_state(int fd, struct vm_entry_state *state, const int *fds, unsigned int nr)
{
	memset(state, 0, sizeof(*state));
	state->nr = nr;
	memcpy(state->fd, fds, nr * sizeof(*fds));
	return ioctl(fd, VM_ENTRY_STATE, state) == 0;
}

/*
 * Returns whether exactly the counters of the right events would count in the
 * host, and in a guest. Event i counts in where[i % 4].
 */
static bool right(const struct vm_entry_state *state, const unsigned int *where)
{
	__u64 host = 0, guest = 0;
	unsigned int i;

	for (i = 0; i < state->nr; i++) {
		if (state->idx[i] < 0 || state->stopped[i])
			continue;
		if (where[i % 4] & IN_HOST)
			host |= 1ULL << state->idx[i];
		if (where[i % 4] & IN_GUEST)
			guest |= 1ULL << state->idx[i];
	}
	if ((state->host & state->selected) == host && (state->guest & state->selected) == guest &&
	    (state->control & state->selected) == host)
		return true;
	fprintf(stderr, "# host %llx, guest %llx, now %llx of %llx; expected %llx, guest %llx\n",
		state->host, state->guest, state->control, state->selected, host, guest);
	return false;
}

/* Each event in turn has the fixed counter. */
TEST_F(vm_entry, counts_where_it_should)
{
	/* More than the kernel's instructions for all entries, even with KASAN. */
	const unsigned long loops = 50 * LOOPS;
	struct vm_entry_state *state = &self->state;
	unsigned int first, i, entries;
	unsigned int where[4];
	__u64 count[4];
	bool switched;

	for (first = 0; first < 4; first++) {
		ASSERT_TRUE(open_group(self->group, first));
		for (i = 0; i < 4; i++)
			where[i] = (first + i) % 4;

		ASSERT_TRUE(get_state(self->fd, state, self->group, 4));
		EXPECT_TRUE(right(state, where));
		ASSERT_EQ(0, ioctl(self->group[0], PERF_EVENT_IOC_ENABLE, 0));
		ASSERT_TRUE(get_state(self->fd, state, self->group, 4));
		EXPECT_TRUE(right(state, where));
		for (i = 0; i < 4; i++)
			EXPECT_LE(0, state->idx[i]);
		for (entries = 0; entries < 3; entries++) {
			ASSERT_TRUE(enter(self->fd, loops, false, &switched));
			EXPECT_TRUE(switched);
		}
		ASSERT_EQ(0, ioctl(self->group[0], PERF_EVENT_IOC_DISABLE, 0));
		ASSERT_TRUE(get_state(self->fd, state, self->group, 4));
		EXPECT_TRUE(right(state, where));

		for (i = 0; i < 4; i++)
			count[where[i]] = read_value(self->group[i]);
		EXPECT_EQ(0, count[NOWHERE]);
		EXPECT_EQ(3 * GUEST(loops), count[IN_GUEST]);
		EXPECT_LT(0, count[IN_HOST]);
		EXPECT_GT(GUEST(loops), count[IN_HOST]);
		EXPECT_EQ(count[IN_HOST] + count[IN_GUEST], count[EVERYWHERE]);

		close_all(self->group, 4);
		ASSERT_TRUE(get_state(self->fd, state, NULL, 0));
		EXPECT_TRUE(right(state, where));
	}
}

/*
 * KVM switches nothing if there is no event, or only one that counts everywhere.
 */
TEST_F(vm_entry, does_not_switch_without_need)
{
	struct perf_event_attr attr = counting_in(EVERYWHERE, RAW_INSTRUCTIONS);
	bool switched;
	int fd;

	ASSERT_TRUE(enter(self->fd, 1, false, &switched));
	EXPECT_FALSE(switched);
	attr.disabled = 0;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(enter(self->fd, 1, false, &switched));
	EXPECT_FALSE(switched);
	close(fd);
	ASSERT_TRUE(enter(self->fd, 1, false, &switched));
	EXPECT_FALSE(switched);
}

/*
 * More events than counters rotate, and an event that has left a counter leaves
 * no trace.
 */
TEST_F(vm_entry, rotating)
{
	static const unsigned int where[4] = { NOWHERE, IN_HOST, IN_GUEST, EVERYWHERE };
	unsigned int i, round, seen = 0, wrong = 0;
	int fds[VM_ENTRY_EVENTS];
	__u64 end;

	ASSERT_TRUE(own_counters());
	for (i = 0; i < VM_ENTRY_EVENTS; i++) {
		struct perf_event_attr attr = counting_in(where[i % 4], RAW_BRANCHES);

		attr.disabled = 0;
		fds[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fds[i]);
	}
	for (round = 0; round < 100; round++) {
		ASSERT_TRUE(get_state(self->fd, &self->state, fds, VM_ENTRY_EVENTS));
		wrong += !right(&self->state, where);
		for (i = 0; i < VM_ENTRY_EVENTS; i++)
			seen |= (self->state.idx[i] >= 0) << i;
		end = now_ns() + 1000000;
		while (now_ns() < end)
			;
	}
	EXPECT_EQ(0, wrong);
	EXPECT_EQ((1U << VM_ENTRY_EVENTS) - 1, seen);
	close_all(fds, VM_ENTRY_EVENTS);
}

/* A throttled event does not count anywhere. */
TEST_F(vm_entry, throttled)
{
	static const unsigned int where[4] = { EVERYWHERE };
	struct perf_event_attr attr = counting_in(EVERYWHERE, RAW_INSTRUCTIONS);
	unsigned int round, stopped = 0, wrong = 0;
	char before[32];
	int fd;

	ASSERT_TRUE(read_line(SAMPLE_RATE, before, sizeof(before)));
	ASSERT_TRUE(write_line(SAMPLE_RATE, "500"));
	attr.sample_period = 5000;
	attr.disabled = 0;
	fd = perf_open_self(&attr, -1);
	EXPECT_LE(0, fd);
	for (round = 0; round < 1000; round++) {
		ASSERT_TRUE(get_state(self->fd, &self->state, &fd, 1));
		wrong += !right(&self->state, where);
		stopped += !!self->state.stopped[0];
	}
	close(fd);
	EXPECT_TRUE(write_line(SAMPLE_RATE, before));
	EXPECT_EQ(0, wrong);
	EXPECT_LT(0, stopped);
}

/*
 * Instructions on a fixed and on general-purpose counters, and branches: a
 * snapshot does not start the counters of stopped events.
 */
TEST_F(vm_entry, snapshot_while_stopped)
{
	struct perf_event_attr attr;
	unsigned int i, round;
	__u64 expected;

	for (i = 0; i < 4; i++) {
		attr = i < 3 ? counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS) :
			       counting_in(IN_HOST, RAW_BRANCHES);
		attr.disabled = i == 0;
		self->group[i] = perf_open_self(&attr, i ? self->group[0] : -1);
		ASSERT_LE(0, self->group[i]);
	}
	for (round = 1; round <= 3; round++) {
		counted_loop(self->group[0], 0, LOOPS);
		/* If the snapshot started the counters, they would count these two loops, too. */
		ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_SNAPSHOT, LOOPS));
		branch_loop(LOOPS);
		expected = round * LOOP_INSTRUCTIONS(LOOPS);
		for (i = 0; i < 3; i++)
			EXPECT_EQ(expected, read_value(self->group[i]));
		/* Some branches in the kernel are counted. */
		EXPECT_LE(round * LOOPS, read_value(self->group[3]));
		EXPECT_GT(round * LOOPS + LOOPS / 2, read_value(self->group[3]));
	}
	close_all(self->group, 4);
}

/* Without a pass, the loop of the test module would not end. */
TEST_F(vm_entry, loops_have_passes)
{
	struct vm_entry_run run = {};

	EXPECT_EQ(-1, ioctl(self->fd, VM_ENTRY_SNAPSHOT, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(self->fd, VM_ENTRY_RUN, &run));
	EXPECT_EQ(EINVAL, errno);
}

/* Closed events leave no state with which a snapshot starts a counter. */
TEST_F(vm_entry, snapshot_after_all)
{
	static const unsigned int where[4];

	ASSERT_TRUE(open_group(self->group, EVERYWHERE));
	ASSERT_EQ(0, ioctl(self->group[0], PERF_EVENT_IOC_ENABLE, 0));
	close_all(self->group, 4);
	ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_SNAPSHOT, 1));
	ASSERT_TRUE(get_state(self->fd, &self->state, NULL, 0));
	EXPECT_TRUE(right(&self->state, where));
}

/* Instructions in the kernel continue to count after a snapshot. */
TEST_F(vm_entry, snapshot_while_counting)
{
	unsigned int i;
	__u64 count[4];

	ASSERT_TRUE(open_group(self->group, EVERYWHERE));
	ASSERT_EQ(0, ioctl(self->group[0], PERF_EVENT_IOC_ENABLE, 0));
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_SNAPSHOT, LOOPS));
	ASSERT_EQ(0, ioctl(self->group[0], PERF_EVENT_IOC_DISABLE, 0));
	for (i = 0; i < 4; i++)
		count[(EVERYWHERE + i) % 4] = read_value(self->group[i]);
	EXPECT_EQ(0, count[NOWHERE]);
	EXPECT_EQ(0, count[IN_GUEST]);
	EXPECT_EQ(count[EVERYWHERE], count[IN_HOST]);
	EXPECT_LE(5 * 2 * LOOPS, count[IN_HOST]);
	close_all(self->group, 4);
}

/*
 * A snapshot at each write of a register, in the driver's critical sections:
 * user-mode instructions are counted exactly. rpmu starts no counter before all
 * are programmed, so all counters also count the same number in the kernel;
 * with the built-in driver, they do not.
 */
TEST_F(vm_entry, snapshot_at_each_register_write)
{
	struct perf_event_attr attr;
	struct one_count count[4];
	unsigned int i, round;
	int user, calls;

	attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	attr.pinned = 1;
	user = perf_open_self(&attr, -1);
	ASSERT_LE(0, user);
	for (i = 0; i < 3; i++) {
		attr = counting_in(i == 1 ? IN_HOST : EVERYWHERE, RAW_INSTRUCTIONS);
		attr.disabled = i == 0;
		self->group[i] = perf_open_self(&attr, i ? self->group[0] : -1);
		ASSERT_LE(0, self->group[i]);
	}
	ASSERT_LE(0, ioctl(self->fd, VM_ENTRY_SNAPSHOTS, 1));
	for (round = 1; round <= 50; round++) {
		/* The leader alone: all members start and stop at once. */
		ASSERT_EQ(0, ioctl(self->group[0], PERF_EVENT_IOC_ENABLE, 0));
		counted_loop(user, 0, LOOPS / 10);
		ASSERT_EQ(0, ioctl(self->group[0], PERF_EVENT_IOC_DISABLE, 0));
	}
	calls = ioctl(self->fd, VM_ENTRY_SNAPSHOTS, 0);
	EXPECT_LT(100, calls);
	EXPECT_EQ(50 * LOOP_INSTRUCTIONS(LOOPS / 10), read_value(user));
	for (i = 0; i < 3; i++)
		ASSERT_TRUE(read_one(self->group[i], &count[i]));
	for (i = 1; i < 3 && on_rpmu(); i++)
		EXPECT_EQ(count[0].value, count[i].value);
	close(user);
	close_all(self->group, 3);
}

static int open_as_kvm(int fd, __u64 config, __u64 period, unsigned int flags)
{
	struct vm_entry_open open = {
		.type = PERF_TYPE_RAW,
		.config = config,
		.period = period,
		.flags = flags,
	};

	return ioctl(fd, VM_ENTRY_OPEN, &open);
}

/* A snapshot in the overflow handler, which is an NMI, does not start a counter there. */
TEST_F(vm_entry, snapshot_in_pmi)
{
	struct vm_entry_event event = {};
	int fd, nr;

	nr = open_as_kvm(self->fd, RAW_INSTRUCTIONS, 10000,
			 VM_ENTRY_IN_HOST | VM_ENTRY_SNAPSHOT_IN_PMI);
	ASSERT_LE(0, nr);
	event.nr = nr;
	counts_exactly(LOOPS, &event.value);
	EXPECT_EQ(LOOP_INSTRUCTIONS(LOOPS), event.value);
	ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_PAUSE, &event));
	/* One overflow is certain; after that, the event may be throttled. */
	EXPECT_LT(0, event.overflows);
	if (on_rpmu())
		EXPECT_EQ(0, event.control);
	fd = -1 - nr;
	ASSERT_TRUE(get_state(self->fd, &self->state, &fd, 1));
	EXPECT_NE(0, self->state.stopped[0]);
	ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_CLOSE, 0));
}

/* Use a guest's counter like KVM's pmc_pause_counter() and pmc_resume_counter(). */
TEST_F(vm_entry, guests_counter)
{
	const __u64 configs[] = { RAW_INSTRUCTIONS, RAW_INSTRUCTIONS, RAW_BRANCHES };
	const __u64 expected[] = { GUEST(LOOPS), GUEST(LOOPS), LOOPS };
	struct vm_entry_event event = {};
	static const unsigned int where[4] = { IN_GUEST, IN_GUEST, IN_GUEST, IN_GUEST };
	int nr[3], fds[3];
	unsigned int i, round;

	for (i = 0; i < 3; i++) {
		nr[i] = open_as_kvm(self->fd, configs[i], 1ULL << 40, 0);
		ASSERT_LE(0, nr[i]);
		fds[i] = -1 - nr[i];
	}
	for (round = 0; round < 3; round++) {
		ASSERT_TRUE(get_state(self->fd, &self->state, fds, 3));
		EXPECT_TRUE(right(&self->state, where));
		/*
		 * intel_pmu_cross_mapped_check() uses hw.idx as the bit in
		 * GLOBAL_CTRL.
		 */
		for (i = 0; i < 3; i++) {
			int idx = self->state.idx[i];
			int end = idx < FIRST_FIXED ? gp_counters() :
						      FIRST_FIXED + fixed_counters();

			EXPECT_LE(0, idx);
			EXPECT_GT(end, idx);
			EXPECT_NE(0, self->state.guest >> idx & 1);
			EXPECT_EQ(0, self->state.host >> idx & 1);
		}
		ASSERT_TRUE(enter(self->fd, LOOPS, false, NULL));
		for (i = 0; i < 3; i++) {
			event.nr = nr[i];
			ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_PAUSE, &event));
			EXPECT_EQ(expected[i], event.value);
			EXPECT_EQ(0, event.overflows);
		}
		ASSERT_TRUE(enter(self->fd, LOOPS, false, NULL));
		for (i = 0; i < 3; i++) {
			event.nr = nr[i];
			ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_PAUSE, &event));
			EXPECT_EQ(0, event.value);
			event.value = (1ULL << 40) - expected[i];
			ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_PERIOD, &event));
			ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_ENABLE, &event));
		}
	}
	ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_CLOSE, 0));
}

/*
 * A guest's counter overflows: the PMI arrives after the VM exit, when the
 * counter is not in GLOBAL_CTRL.
 */
TEST_F(vm_entry, guests_overflow)
{
	struct vm_entry_event event = {};
	unsigned int round;
	int nr;

	nr = open_as_kvm(self->fd, RAW_INSTRUCTIONS, LOOPS, 0);
	ASSERT_LE(0, nr);
	event.nr = nr;
	for (round = 1; round <= 3; round++) {
		ASSERT_TRUE(enter(self->fd, LOOPS, true, NULL));
		ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_PAUSE, &event));
		EXPECT_EQ(round, event.overflows);
		EXPECT_EQ(GUEST(LOOPS), event.value);
		ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_PERIOD, &(struct vm_entry_event){
			.nr = nr, .value = LOOPS }));
		ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_ENABLE, &event));
	}
	ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_CLOSE, 0));
}

/*
 * A host's event of the same type, with perf's default exclusions, and a
 * guest's event each count their own part.
 */
TEST_F(vm_entry, beside_a_hosts_event)
{
	struct perf_event_attr attr = counting_in(IN_HOST, RAW_INSTRUCTIONS);
	struct vm_entry_event event = {};
	unsigned int i;
	__u64 count;
	int fd, nr;

	nr = open_as_kvm(self->fd, RAW_INSTRUCTIONS, 1ULL << 40, 0);
	ASSERT_LE(0, nr);
	event.nr = nr;
	attr.exclude_kernel = 1;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	for (i = 0; i < 10; i++)
		ASSERT_TRUE(enter(self->fd, LOOPS, false, NULL));
	counted_loop(fd, 0, LOOPS);
	EXPECT_EQ(LOOP_INSTRUCTIONS(LOOPS), read_value(fd));
	for (i = 0; i < 10; i++)
		ASSERT_TRUE(enter(self->fd, LOOPS, false, NULL));
	ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_PAUSE, &event));
	EXPECT_EQ(20 * GUEST(LOOPS), event.value);
	ASSERT_TRUE(counts_exactly(LOOPS, &count));
	close(fd);
	ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_CLOSE, 0));
}

/* Opens an event that records branches, and samples them every PERIOD branches. */
static int sample_branches(__u64 period)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	attr.disabled = 0;
	return perf_open_self(&attr, -1);
}

/* Opens the same event with a period that is too long for a sample. */
static int record_branches(void)
{
	return sample_branches(1ULL << 30);
}

/*
 * Copies of spin() at addresses of this process only, one for each step of a
 * test: if nothing is recorded, AMD's snapshots contain the entries of the
 * previous one.
 */
#define COPIES		8
#define COPY_SIZE	64UL

FIXTURE(snapshot)
{
	int fd;
	char *copies;
};

FIXTURE_SETUP(snapshot)
{
	char *wanted = (char *)0x100000000UL + getpid() % 0x10000 * 0x10000UL;
	unsigned int i;

	self->fd = -1;
	if (access(MODULE, R_OK))
		SKIP(return, "needs " MODULE);
	if (access(CAPS_BRANCHES, F_OK))
		SKIP(return, "the CPU does not record branches");
	self->copies = mmap(wanted, COPIES * COPY_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(wanted, self->copies);
	for (i = 0; i < COPIES; i++)
		memcpy(self->copies + i * COPY_SIZE, spin, COPY_SIZE);
	ASSERT_TRUE(load_module(MODULE, ""));
	self->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(run_on(0));
}

FIXTURE_TEARDOWN(snapshot)
{
	if (self->fd < 0)
		return;
	close(self->fd);
	EXPECT_TRUE(unload_module("vm_entry"));
}

/* Takes this many branches in COPY. */
static void spin_in(const char *copy, unsigned long branches)
{
	((void (*)(unsigned long))copy)(branches + 1);
}

static bool is_of(const char *copy, __u64 from, __u64 to)
{
	return from == (unsigned long)copy + (spin_from - (char *)spin) &&
	       to == (unsigned long)copy;
}

/* Returns the number of branches of COPY in a snapshot. */
static int taken_in(int fd, const char *copy)
{
	struct vm_entry_branches branches;
	unsigned int i;
	int found = 0;

	if (ioctl(fd, VM_ENTRY_BRANCHES, &branches))
		return -1;
	for (i = 0; i < branches.nr; i++)
		found += is_of(copy, branches.entries[i].from, branches.entries[i].to);
	return found;
}

/*
 * A snapshot contains the branches that the events' records contain, and leaves
 * recording on.
 */
TEST_F(snapshot, has_the_branches)
{
	const char *copy = self->copies;
	int i, fd, found;

	fd = record_branches();
	ASSERT_LE(0, fd);
	for (i = 0; i < 3; i++, copy += COPY_SIZE) {
		int tries = 0;

		/* The records are reset if another task runs in between. */
		do {
			spin_in(copy, 100);
			found = taken_in(self->fd, copy);
			/*
			 * The C library and the program itself take some
			 * branches in between.
			 */
		} while (found < 8 && tries++ < 3);
		EXPECT_LE(8, found);
	}
	EXPECT_LE(300, read_value(fd));
	close(fd);
	/* Branches are not recorded any more, and old ones are gone. */
	spin_in(copy, 100);
	EXPECT_EQ(0, taken_in(self->fd, copy));
	fd = record_branches();
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, taken_in(self->fd, copy));
	close(fd);
}

/* Returns the other thread of CPU 0's core, or -1. */
static int sibling_of_cpu_0(void)
{
	char line[32], *end;

	if (!read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", line,
		       sizeof(line)))
		return -1;
	strtol(line, &end, 10);
	return *end ? atoi(end + 1) : -1;
}

static int record_calls(void)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);

	attr.sample_period = 1ULL << 30;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_USER;
	attr.disabled = 0;
	return perf_open_self(&attr, -1);
}

/* Returns the number of calls of COPY in a snapshot, after many jumps in JUMPS. */
static int calls_kept(int fd, const char *copy, const char *jumps)
{
	struct vm_entry_branches branches;
	int i, found = 0;

	for (i = 0; i < 16; i++)
		spin_in(copy, 0);
	spin_in(jumps, 100);
	if (ioctl(fd, VM_ENTRY_BRANCHES, &branches))
		return -1;
	for (i = 0; i < (int)branches.nr; i++)
		found += branches.entries[i].to == (unsigned long)copy;
	return found;
}

/*
 * A snapshot resumes recording with the filter of this thread's event, even if
 * the threads share LBR_SELECT and the other thread's event has ended.
 */
TEST_F(snapshot, keeps_the_filter)
{
	int fd, sibling = sibling_of_cpu_0(), status;
	const char *copy = self->copies;
	bool *ended;
	pid_t child, gone = 0;

	if (sibling < 0)
		SKIP(return, "one thread per core");
	ended = mmap(NULL, sizeof(*ended), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, ended);
	fd = record_calls();
	ASSERT_LE(0, fd);
	child = fork_helper();
	ASSERT_LE(0, child);
	if (!child) {
		int own = run_on(sibling) ? record_calls() : -1;

		spin_in(copy, 100);
		close(own);
		__atomic_store_n(ended, true, __ATOMIC_RELEASE);
		_exit(own < 0);
	}
	/*
	 * Sleeping until then would remove this event from the CPU and put it
	 * there again.
	 */
	while (!gone && !__atomic_load_n(ended, __ATOMIC_ACQUIRE))
		gone = waitpid(child, &status, WNOHANG);
	/* The first snapshot writes LBR_SELECT, the second shows which filter that has set. */
	ASSERT_LE(0, taken_in(self->fd, copy));
	EXPECT_LE(8, calls_kept(self->fd, copy + COPY_SIZE, copy + 2 * COPY_SIZE));
	if (!gone)
		gone = waitpid(child, &status, 0);
	ASSERT_EQ(child, gone);
	EXPECT_EQ(0, status);
	close(fd);
}

/* After a snapshot, samples still have branches: those since the snapshot. */
TEST_F(snapshot, is_followed_by_samples)
{
	const __u64 period = 1000;
	const struct {
		struct perf_event_header header;
		__u64 nr;
		struct perf_branch_entry entries[];
	} *sample;
	const char *copy = self->copies;
	struct perf_event_mmap_page *page;
	unsigned int i, j;
	int fd;

	fd = sample_branches(period);
	ASSERT_LE(0, fd);
	page = map_buffer(fd, 8);
	ASSERT_NE(MAP_FAILED, page);
	for (i = 0; i < 3; i++, copy += COPY_SIZE) {
		unsigned int samples = 0, right = 0;

		ASSERT_LE(0, taken_in(self->fd, copy));
		spin_in(copy, 4 * period);
		while ((sample = take_sample(page))) {
			unsigned int found = 0;

			for (j = 0; j < sample->nr; j++)
				found += is_of(copy, sample->entries[j].from,
					       sample->entries[j].to);
			samples++;
			right += found >= 8;
		}
		/*
		 * The first one may be from before, and another task may have
		 * run in between.
		 */
		EXPECT_LE(3, samples);
		EXPECT_LE(2, right) {
			TH_LOG("%u of %u samples", right, samples);
		}
	}
	close(fd);
}

/*
 * Precise events of a guest, which has its own buffer. KVM offers PEBS to
 * guests on Ice Lake servers and later.
 */
#define GUEST_PERIOD	1000ULL

/* Returns whether there is one record per period, give or take one at each end. */
static bool has_all_records(const struct vm_entry_run *run)
{
	__u64 periods = 2 * run->loops / GUEST_PERIOD;

	return run->records + 1 >= periods && run->records <= periods + 1;
}

/* Returns whether the PMU samples precisely. */
static bool is_precise(void)
{
	char text[16];

	return read_line(CPU_PMU "/caps/max_precise", text, sizeof(text)) && atoi(text) > 0;
}

/* Enters a guest whose counter IDX, if not -1, samples precisely. */
static bool enter_precise(int fd, int idx, struct vm_entry_run *run)
{
	*run = (struct vm_entry_run) {
		.loops = 10 * GUEST_PERIOD,
		.defer = 1,
		.pebs = idx < 0 ? 0 : 1ULL << idx,
		.reset = -GUEST_PERIOD & 0xffffffffffffULL,
		.threshold = 10,
	};
	return ioctl(fd, VM_ENTRY_RUN, run) == 0;
}

TEST_F(vm_entry, guests_precise_events)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	struct vm_entry_open open = {
		.type = PERF_TYPE_RAW,
		.config = RAW_INSTRUCTIONS,
		.period = GUEST_PERIOD,
		.flags = VM_ENTRY_PRECISE,
	};
	struct vm_entry_event event = {};
	struct vm_entry_run run;
	int nr = -1, fd;

	if (cpu_model() < MODEL_ICE_LAKE || !is_precise())
		SKIP(return, "guests have no PEBS on this CPU");
	ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_OPEN, &open));
	ASSERT_TRUE(get_state(self->fd, &self->state, &nr, 1));
	ASSERT_LE(0, self->state.idx[0]);
	/* A guest that has not enabled the events has no records. */
	ASSERT_TRUE(enter_precise(self->fd, -1, &run));
	EXPECT_EQ(0, run.records);

	ASSERT_TRUE(enter_precise(self->fd, self->state.idx[0], &run));
	EXPECT_TRUE(has_all_records(&run)) {
		TH_LOG("%u records", run.records);
	}
	ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_PAUSE, &event));
	/* One sample stands for the overflow of the buffer. */
	EXPECT_EQ(run.known, event.overflows);
	ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_ENABLE, &event));

	/* While the host samples precisely, the guest does not. */
	attr.precise_ip = 1;
	attr.sample_period = 1 << 20;
	attr.disabled = 0;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(enter_precise(self->fd, self->state.idx[0], &run));
	EXPECT_EQ(0, run.records);
	close(fd);
	ASSERT_TRUE(enter_precise(self->fd, self->state.idx[0], &run));
	EXPECT_TRUE(has_all_records(&run)) {
		TH_LOG("%u records", run.records);
	}
}

/*
 * A user's event that counts only in guests, with more registers than an
 * interrupt has. The sample that stands for the overflow of the guest's buffer
 * has none of these registers.
 */
TEST_F(vm_entry, registers_of_guests_events)
{
	struct perf_event_attr attr = counting_in(IN_GUEST, RAW_INSTRUCTIONS);
	const struct {
		struct perf_event_header header;
		__u64 abi, xmm[32];
	} *sample;
	struct perf_event_mmap_page *page;
	struct vm_entry_run run;
	unsigned int wrong = 0;
	__u64 head;
	int fd;

	if (cpu_model() < MODEL_ICE_LAKE || !is_precise())
		SKIP(return, "guests have no PEBS on this CPU");
	if (!on_rpmu())
		SKIP(return, "the built-in driver takes data behind the registers for an address");
	attr.precise_ip = 1;
	attr.sample_period = GUEST_PERIOD;
	attr.sample_type = PERF_SAMPLE_REGS_INTR;
	attr.sample_regs_intr = 0xffffffff00000000ULL;
	attr.disabled = 0;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	page = map_buffer(fd, 1);
	ASSERT_NE(MAP_FAILED, page);
	ASSERT_TRUE(get_state(self->fd, &self->state, &fd, 1));
	ASSERT_TRUE(enter_precise(self->fd, self->state.idx[0], &run));
	EXPECT_TRUE(has_all_records(&run));
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	EXPECT_EQ(run.known ? sizeof(*sample) : 0, head);
	if (head == sizeof(*sample)) {
		sample = (void *)((char *)page + sysconf(_SC_PAGESIZE));
		for (int i = 0; i < 32; i++)
			wrong += sample->xmm[i] != 0;
		EXPECT_EQ(PERF_RECORD_SAMPLE, sample->header.type);
		EXPECT_EQ(0, wrong);
	}
	munmap(page, 2 * sysconf(_SC_PAGESIZE));
	close(fd);
}

/* Guests' branch stacks: KVM has the records as long as its event counts. */
FIXTURE(guest_branches)
{
	int fd;
	struct vm_entry_records records;
};

FIXTURE_SETUP(guest_branches)
{
	self->fd = -1;
	if (access(MODULE, R_OK))
		SKIP(return, "needs " MODULE);
	if (!has_call_stacks() || cpu_model() >= MODEL_GOLDEN_COVE || access(CAPS_BRANCHES, F_OK))
		SKIP(return, "KVM gives guests no branch stack on this CPU");
	ASSERT_TRUE(load_module(MODULE, ""));
	self->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	self->records.depth = branch_records();
}

FIXTURE_TEARDOWN(guest_branches)
{
	if (self->fd < 0)
		return;
	close(self->fd);
	EXPECT_TRUE(unload_module("vm_entry"));
}

/* Opens the event for which the records are lent to a guest. Returns its number, or -1. */
static int borrow(int fd)
{
	struct vm_entry_open open = {
		.type = PERF_TYPE_RAW,
		.config = VLBR_EVENT,
		.branch_sample_type = PERF_SAMPLE_BRANCH_CALL_STACK | PERF_SAMPLE_BRANCH_USER,
	};

	return ioctl(fd, VM_ENTRY_OPEN, &open);
}

static bool access_records(int fd, struct vm_entry_records *records, bool write)
{
	records->write = write;
	return ioctl(fd, VM_ENTRY_RECORDS, records) == 0;
}

/* A guest's possible values of the records; SEED makes them differ. */
static struct vm_entry_records of_guest(const struct vm_entry_records *like, unsigned int seed)
{
	struct vm_entry_records records = *like;
	unsigned int i;

	records.select = 0x1c4 + seed;
	records.tos = seed % records.depth;
	for (i = 0; i < records.depth; i++) {
		records.from[i] = 0x400000 + 0x1000 * seed + 16 * i;
		records.to[i] = 0x500000 + 0x1000 * seed + 16 * i;
	}
	return records;
}

static bool same_records(const struct vm_entry_records *a, const struct vm_entry_records *b)
{
	return a->select == b->select && a->tos == b->tos &&
	       !memcmp(a->from, b->from, sizeof(a->from)) && !memcmp(a->to, b->to, sizeof(a->to));
}

/* Runs a child on this CPU, which also records branches if requested. */
static bool run_another_task(bool records)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		int fd = records ? record_branches() : 0;

		spin(10000);
		_exit(fd < 0 || (records && !read_value(fd)));
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

/*
 * The records belong to a task: other tasks do not change them, even if these
 * record branches themselves, and while the task runs, the host records nothing.
 */
TEST_F(guest_branches, are_kept)
{
	struct vm_entry_records guest, *now = &self->records;
	unsigned int i;

	ASSERT_EQ(0, borrow(self->fd));
	for (i = 0; i < 4; i++) {
		guest = of_guest(now, i);
		ASSERT_TRUE(access_records(self->fd, &guest, true));
		EXPECT_EQ(1, guest.lent);
		ASSERT_TRUE(run_another_task(i & 1));
		spin(1000);
		ASSERT_TRUE(access_records(self->fd, now, false));
		EXPECT_EQ(1, now->lent);
		EXPECT_EQ(0, now->recording);
		EXPECT_TRUE(same_records(&guest, now)) {
			TH_LOG("%u: select %#llx, %#llx expected", i, now->select, guest.select);
			TH_LOG("tos %llu, %llu expected", now->tos, guest.tos);
			TH_LOG("from %#llx, %#llx expected", now->from[0], guest.from[0]);
		}
	}
	ASSERT_EQ(0, ioctl(self->fd, VM_ENTRY_CLOSE, 0));
	/* The next guest does not get the records of the previous one. */
	ASSERT_EQ(0, borrow(self->fd));
	ASSERT_TRUE(access_records(self->fd, now, false));
	for (i = 0; i < now->depth; i++)
		EXPECT_EQ(0, now->from[i]);
}

/* A CPU's own pinned event has priority. KVM then denies the guest the records. */
TEST_F(guest_branches, give_way)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct vm_entry_records guest, *now = &self->records;
	int fd;

	if (!on_rpmu())
		SKIP(return, "the built-in driver counts both, the host's without branches");
	ASSERT_EQ(0, borrow(self->fd));
	guest = of_guest(now, 1);
	ASSERT_TRUE(access_records(self->fd, &guest, true));
	EXPECT_EQ(1, guest.lent);

	attr.sample_period = 1ULL << 30;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	attr.disabled = 0;
	/* An event that is not pinned waits. */
	fd = perf_open(&attr, -1, sysconf(_SC_NPROCESSORS_ONLN) - 1, -1, 0);
	ASSERT_LE(0, fd);
	spin(1000);
	EXPECT_EQ(0, read_value(fd));
	close(fd);

	attr.pinned = 1;
	fd = perf_open(&attr, -1, sysconf(_SC_NPROCESSORS_ONLN) - 1, -1, 0);
	ASSERT_LE(0, fd);
	spin(1000);
	EXPECT_LE(1000, read_value(fd));
	ASSERT_TRUE(access_records(self->fd, now, false));
	EXPECT_EQ(0, now->lent);
	EXPECT_NE(0, now->recording);
	close(fd);
}

/* With a mediated PMU, a guest has the PMU to itself while it runs. On rpmu, this is refused. */
TEST_F(vm_entry, mediated)
{
	int ret = ioctl(self->fd, VM_ENTRY_MEDIATED, 0);

	if (ret && errno == ENOENT)
		SKIP(return, "the kernel has no mediated PMUs");
	if (on_rpmu()) {
		EXPECT_EQ(-1, ret);
		EXPECT_EQ(EBUSY, errno);
	} else {
		EXPECT_EQ(0, ret);
	}
	if (!ret)
		EXPECT_EQ(0, ioctl(self->fd, VM_ENTRY_UNMEDIATED, 0));
}

TEST_HARNESS_MAIN
