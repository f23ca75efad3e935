// SPDX-License-Identifier: GPL-2.0
/*
 * Tests inherited events: children are granted the events that their parent was
 * granted, or fork() fails. In the meantime, the rules by which the event was
 * granted may have changed: a sibling thread is online, TSX has counter 3, the
 * task has lost its privileges, or the group has other members. The built-in
 * driver checks each event again, and its fork() may fail; rpmu's fork() must
 * succeed in these cases.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define ALL_LOADS	0x81d0	/* MEM_UOPS_RETIRED.ALL_LOADS: corrupting */
#define L1_HIT		0x01d1	/* MEM_LOAD_UOPS_RETIRED.*: corrupting */
#define L2_HIT		0x02d1
#define ANY_THREAD	0x200000
#define IN_TX_CP	0x200000000ULL
#define LONG_PERIOD	0x7fffffff
#define SHORT_PERIOD	1000003
#define SLOTS		0x0400
#define RETIRING	0x8000
#define AUXILIARY	0x8203
#define LOAD_LATENCY	0x01cd

#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define ALLOW_ABORT	CPU_PMU "/allow_tsx_force_abort"
#define NOBODY		65534
#define LOOPS		100000UL

/* Opens an enabled event of this task that its children inherit. */
static int open_inherited(__u64 config, int leader)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config);

	attr.inherit = 1;
	attr.disabled = 0;
	return perf_open_self(&attr, leader);
}

/* Returns 0 if a child could be forked, and ended, else an errno. */
static int fork_error(void)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0) {
		branch_loop(LOOPS);
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : ECHILD;
}

/* Returns the error that fork() may return: none, or with the built-in driver @error. */
static int expected(int got, int error)
{
	return got && !on_rpmu() ? error : 0;
}

FIXTURE(inherit)
{
	int sibling;
	bool forced;
};

FIXTURE_SETUP(inherit)
{
	ASSERT_TRUE(run_on(0));
}

FIXTURE_TEARDOWN(inherit)
{
	if (self->sibling)
		EXPECT_TRUE(set_cpu_online(self->sibling, true));
	if (self->forced)
		EXPECT_TRUE(write_line(ALLOW_ABORT, "1"));
}

/* The group exceeds the limit of a thread, which exists only while the sibling is online. */
TEST_F(inherit, sibling_comes_on_line)
{
	char line[32], *end;
	int leader;

	ASSERT_TRUE(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			      line, sizeof(line)));
	strtol(line, &end, 10);
	if (cpu_model() < MODEL_SANDY_BRIDGE || cpu_model() > MODEL_HASWELL || !*end)
		SKIP(return, "the threads of this CPU do not corrupt counts");
	self->sibling = atoi(end + 1);
	ASSERT_TRUE(set_cpu_online(self->sibling, false));
	leader = open_inherited(ALL_LOADS, -1);
	ASSERT_LE(0, leader);
	ASSERT_LE(0, open_inherited(L1_HIT, leader));
	ASSERT_LE(0, open_inherited(L2_HIT, leader));
	EXPECT_EQ(0, fork_error());
	ASSERT_TRUE(set_cpu_online(self->sibling, true));
	EXPECT_EQ(0, fork_error());
}

/* TSX gets counter 3 after a group that needs it has been granted. */
TEST_F(inherit, counter_goes_to_tsx)
{
	int fd, i, error;

	if (access(ALLOW_ABORT, F_OK) || gp_counters() != 4)
		SKIP(return, "counter 3 has no other use, or is not the last");
	for (i = 0, fd = -1; i < 4; i++) {
		int next = open_inherited(RAW_BRANCHES, fd);

		ASSERT_LE(0, next);
		fd = i ? fd : next;
	}
	self->forced = true;
	ASSERT_TRUE(write_line(ALLOW_ABORT, "0"));
	error = fork_error();
	EXPECT_EQ(expected(error, EINVAL), error);
}

/*
 * A new event is checked together with the enabled events of its group only. A
 * group may therefore have too many events that are enabled later; then it
 * never counts.
 */
TEST_F(inherit, group_that_never_counts)
{
	unsigned int i, counters = gp_counters() + fixed_counters();
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct one_count count;
	int leader, fd = -1, error;

	ASSERT_TRUE(own_counters());
	leader = open_inherited(RAW_BRANCHES, -1);
	ASSERT_LE(0, leader);
	attr.inherit = 1;
	for (i = 0; i < counters; i++) {
		fd = perf_open_self(&attr, leader);
		ASSERT_LE(0, fd);
	}
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	error = fork_error();
	EXPECT_EQ(expected(error, EINVAL), error);
	ASSERT_TRUE(read_one(fd, &count));
	EXPECT_EQ(0, count.value);
}

/* A task that may observe others loses this privilege. */
TEST_F(inherit, any_thread)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES | ANY_THREAD);
	char before[16];
	int fd, error;

	if (is_amd())
		SKIP(return, "the counters belong to one thread only");
	attr.inherit = 1;
	/* Disabled, because some CPUs fault on the bit. */
	fd = perf_open_self(&attr, -1);
	if (fd < 0 && errno == EINVAL)
		SKIP(return, "the counters belong to one thread only");
	ASSERT_LE(0, fd);
	ASSERT_TRUE(read_line(PARANOID, before, sizeof(before)));
	ASSERT_TRUE(write_line(PARANOID, "2"));
	ASSERT_EQ(0, setresuid(NOBODY, NOBODY, 0));
	error = fork_error();
	ASSERT_EQ(0, setresuid(0, 0, 0));
	ASSERT_TRUE(write_line(PARANOID, before));
	EXPECT_EQ(expected(error, EACCES), error);
}

/* The period of an event that discards aborted transactions becomes short. */
TEST_F(inherit, checkpointed)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES | IN_TX_CP);
	__u64 period = SHORT_PERIOD;
	int fd, error;

	attr.inherit = 1;
	attr.sample_period = LONG_PERIOD;
	fd = perf_open_self(&attr, -1);
	if (fd < 0)
		SKIP(return, "no TSX transactions");
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	error = fork_error();
	EXPECT_EQ(expected(error, EOPNOTSUPP), error);
}

/* The slots event is closed; without it, a metric can neither be opened nor count. */
TEST_F(inherit, metric_without_slots)
{
	struct one_count count;
	int slots, metric, error;

	if (cpu_model() < MODEL_ICE_LAKE || fixed_counters() < 4)
		SKIP(return, "this CPU has no PERF_METRICS");
	slots = open_inherited(SLOTS, -1);
	ASSERT_LE(0, slots);
	metric = open_inherited(RETIRING, slots);
	ASSERT_LE(0, metric);
	close(slots);
	/* read() of an event in the error state returns 0 bytes. */
	EXPECT_EQ(0, read(metric, &count, sizeof(count)));
	error = fork_error();
	EXPECT_EQ(expected(error, EINVAL), error);
}

/* The auxiliary event is closed; without it, load latency events cannot be opened. */
TEST_F(inherit, load_latency_alone)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, LOAD_LATENCY);
	int auxiliary = open_inherited(AUXILIARY, -1), fd, error;

	attr.inherit = 1;
	attr.precise_ip = 2;
	attr.sample_period = SHORT_PERIOD;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_DATA_SRC;
	attr.config1 = 3;
	fd = perf_open_self(&attr, -1);
	if (fd >= 0 || errno != ENODATA)
		SKIP(return, "load latencies need no other event here");
	ASSERT_LE(0, auxiliary);
	fd = perf_open_self(&attr, auxiliary);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, fork_error());
	close(auxiliary);
	error = fork_error();
	EXPECT_EQ(expected(error, ENODATA), error);
}

TEST_HARNESS_MAIN
