// SPDX-License-Identifier: GPL-2.0
/*
 * Tests event sets: groups whose turn also ends when their leader overflows
 * (switch, bit 0 of attr.config4), not only by time. The built-in driver
 * ignores the bit.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "kselftest_harness.h"
#include "perf_util.h"

OWN_COUNTERS()

#define SETS		3
#define PHASES		20
#define PASSES		40000UL
/* Instructions of a turn; a phase has dozens of turns. */
#define TURN		5000
#define SWITCH		1ULL
#define PERCENT		CPU_PMU "/rpmu/switch_max_percent"
#define REFUSALS	"/sys/kernel/debug/rpmu/refusals"

/*
 * A set has an event on each general-purpose counter, so that only one set
 * counts at a time.
 */
struct set {
	int fd[MAX_GROUP];
	unsigned int nr;
};

FIXTURE(event_sets)
{
	struct sample_limits limits;
	char interval[32], percent[32];
};

FIXTURE_SETUP(event_sets)
{
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	ASSERT_TRUE(lift_sample_limits(&self->limits));
	ASSERT_TRUE(read_line(MUX_INTERVAL, self->interval, sizeof(self->interval)));
	/*
	 * Remove the limit on switches, which take most of the time if turns
	 * are this short.
	 */
	if (on_rpmu()) {
		ASSERT_TRUE(read_line(PERCENT, self->percent, sizeof(self->percent)));
		ASSERT_TRUE(write_line(PERCENT, "100"));
	}
	/* No turn ends by time. */
	ASSERT_TRUE(write_line(MUX_INTERVAL, "1000"));
}

FIXTURE_TEARDOWN(event_sets)
{
	EXPECT_TRUE(write_line(MUX_INTERVAL, self->interval));
	if (on_rpmu())
		EXPECT_TRUE(write_line(PERCENT, self->percent));
	/* A running timer keeps its expiry time. */
	usleep(1100000);
	EXPECT_TRUE(put_back_sample_limits(&self->limits));
}

/* Alternates between four branches in six instructions and one in eight. */
static void __attribute__((__noipa__)) phases(void)
{
	int i;

	for (i = 0; i < PHASES; i++) {
		branch_loop(PASSES);
		memory_loop(PASSES);
	}
}

static struct perf_event_attr leader_of_set(__u64 turn, __u64 config4)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);

	attr.read_format = READ_GROUP;
	attr.sample_period = turn;
	attr.sample_type = PERF_SAMPLE_IP;
	attr.config4 = config4;
	return attr;
}

/* Opens a set: instructions, whose overflows end the turn, and branches. */
static void open_set(struct __test_metadata *_metadata, struct set *set, __u64 turn, __u64 config4)
{
	struct perf_event_attr leader = leader_of_set(turn, config4), attr;
	/* Without fixed counters, the leader uses a general-purpose counter. */
	unsigned int branches = gp_counters() - !fixed_counters();

	ASSERT_GE(MAX_GROUP, branches + 1);
	for (set->nr = 0; set->nr < branches + 1; set->nr++) {
		attr = leader;
		if (set->nr) {
			attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
			attr.exclude_kernel = may_count_user_alone(set->nr - 1);
			attr.disabled = 0;
		}
		set->fd[set->nr] = perf_open_self(&attr, set->nr ? set->fd[0] : -1);
		ASSERT_LE(0, set->fd[set->nr]);
	}
}

static void close_set(struct set *set)
{
	while (set->nr)
		close(set->fd[--set->nr]);
}

/* Counts all instructions and branches of the program, phases(). */
static void count_all(struct __test_metadata *_metadata, __u64 *instructions, __u64 *branches)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	int leader = perf_open_self(&attr, -1), fd;

	attr.config = RAW_BRANCHES;
	attr.disabled = 0;
	fd = perf_open_self(&attr, leader);
	ASSERT_LE(0, leader);
	ASSERT_LE(0, fd);
	ioctl(leader, PERF_EVENT_IOC_ENABLE, 0);
	phases();
	ioctl(leader, PERF_EVENT_IOC_DISABLE, 0);
	*instructions = read_value(leader);
	*branches = read_value(fd);
	close(fd);
	close(leader);
}

/* Counts the program with sets whose turns have these lengths, in instructions. */
static void count_in_sets(struct __test_metadata *_metadata, const __u64 turn[SETS], __u64 config4,
			  struct group_count count[SETS])
{
	struct set set[SETS];
	int i;

	for (i = 0; i < SETS; i++)
		open_set(_metadata, &set[i], turn[i], config4);
	ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0));
	phases();
	ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0));
	for (i = 0; i < SETS; i++)
		ASSERT_LT(0, read(set[i].fd[0], &count[i], sizeof(count[i])));
	for (i = 0; i < SETS; i++)
		close_set(&set[i]);
}

static double share(const struct group_count *count)
{
	return count->enabled ? (double)count->running / count->enabled : 0;
}

/* The count as perf scales it. */
static double scaled(const struct group_count *count, unsigned int event)
{
	return count->running ? count->event[event].value / share(count) : 0;
}

static void expect_close(struct __test_metadata *_metadata, __u64 exact, double counted)
{
	EXPECT_LT(exact * 0.99, counted) TH_LOG("%llu counted as %.0f", exact, counted);
	EXPECT_GT(exact * 1.01, counted) TH_LOG("%llu counted as %.0f", exact, counted);
}

/*
 * Checks that each set counts its share of the program, that the sets together
 * count all of it, and that at all times one set has the counters.
 */
static void expect_turns(struct __test_metadata *_metadata, const __u64 turn[SETS],
			 const struct group_count count[SETS])
{
	const __u64 all = turn[0] + turn[1] + turn[2];
	__u64 exact[2], sum[2] = {};
	double part, time = 0;
	unsigned int i, j;

	count_all(_metadata, &exact[0], &exact[1]);
	for (i = 0; i < SETS; i++) {
		part = (double)count[i].event[0].value / exact[0];
		TH_LOG("%.2f %% of the instructions, %.2f %% of the time", 100 * part,
		       100 * share(&count[i]));
		EXPECT_LT(0.98 * turn[i] / all, part);
		EXPECT_GT(1.02 * turn[i] / all, part);
		for (j = 0; j < 2; j++)
			sum[j] += count[i].event[j].value;
		time += share(&count[i]);
	}
	for (j = 0; j < 2; j++) {
		/*
		 * A set may be switched on at one place of the program, and off
		 * at another.
		 */
		EXPECT_LT(exact[j] * 0.999, sum[j]) TH_LOG("%llu of %llu", sum[j], exact[j]);
		EXPECT_GT(exact[j] * 1.001, sum[j]) TH_LOG("%llu of %llu", sum[j], exact[j]);
	}
	EXPECT_LT(0.99, time);
	EXPECT_GT(1.01, time);
}

/* Checks the counts as perf scales them. */
static void expect_scaled(struct __test_metadata *_metadata, const struct group_count count[SETS])
{
	__u64 instructions, branches;
	unsigned int i;

	count_all(_metadata, &instructions, &branches);
	for (i = 0; i < SETS; i++) {
		TH_LOG("instructions %.0f of %llu, branches %.0f of %llu", scaled(&count[i], 0),
		       instructions, scaled(&count[i], 1), branches);
		expect_close(_metadata, instructions, scaled(&count[i], 0));
		expect_close(_metadata, branches, scaled(&count[i], 1));
	}
}

/*
 * Turns end by time only, and none ends during this test: one set has the
 * counters all the time.
 */
TEST_F(event_sets, without_switch)
{
	static const __u64 turn[SETS] = { TURN, TURN, TURN };
	struct group_count count[SETS];
	int i, have = 0;

	count_in_sets(_metadata, turn, 0, count);
	for (i = 0; i < SETS; i++)
		have += share(&count[i]) > 0.9;
	EXPECT_EQ(1, have);
}

TEST_F(event_sets, equal_turns)
{
	static const __u64 turn[SETS] = { TURN, TURN, TURN };
	struct group_count count[SETS];

	if (!on_rpmu())
		SKIP(return, "only rpmu has event sets that switch on overflow");
	count_in_sets(_metadata, turn, SWITCH, count);
	expect_turns(_metadata, turn, count);
	expect_scaled(_metadata, count);
}

/*
 * Each turn has a different length. The time of a turn includes the switch, so
 * turns this short distort the scaled counts.
 */
TEST_F(event_sets, unequal_turns)
{
	static const __u64 turn[SETS] = { TURN, 2 * TURN, 4 * TURN };
	struct group_count count[SETS];

	if (!on_rpmu())
		SKIP(return, "only rpmu has event sets that switch on overflow");
	count_in_sets(_metadata, turn, SWITCH, count);
	expect_turns(_metadata, turn, count);
}

/* If no group waits, an overflow only takes a sample. */
TEST_F(event_sets, alone)
{
	struct group_count count;
	__u64 instructions, branches;
	struct set set;

	count_all(_metadata, &instructions, &branches);
	open_set(_metadata, &set, TURN, SWITCH);
	ioctl(set.fd[0], PERF_EVENT_IOC_ENABLE, 0);
	phases();
	ioctl(set.fd[0], PERF_EVENT_IOC_DISABLE, 0);
	ASSERT_LT(0, read(set.fd[0], &count, sizeof(count)));
	EXPECT_EQ(instructions, count.event[0].value);
	EXPECT_EQ(branches, count.event[1].value);
	EXPECT_EQ(count.enabled, count.running);
	close_set(&set);
}

/* Returns the time that the program takes. */
static __u64 time_of_phases(void)
{
	__u64 begin = now_ns();

	phases();
	return now_ns() - begin;
}

#define MANY	400

/*
 * With many groups and short periods, switches and samples together stay within
 * their limits: the program runs at half speed at least.
 */
TEST_F(event_sets, limit)
{
	struct perf_event_attr attr = leader_of_set(1000, SWITCH);
	__u64 alone, beside;
	int fd[MANY], i;

	if (on_rpmu())
		ASSERT_TRUE(write_line(PERCENT, self->percent));
	ASSERT_TRUE(put_back_sample_limits(&self->limits));
	ASSERT_TRUE(write_line(MUX_INTERVAL, self->interval));
	attr.config = RAW_BRANCHES;
	attr.disabled = 0;
	for (i = 0; i < MANY; i++) {
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
		ioctl(fd[i], PERF_EVENT_IOC_DISABLE, 0);
	}
	alone = time_of_phases();
	ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_ENABLE));
	beside = time_of_phases();
	for (i = 0; i < MANY; i++)
		close(fd[i]);
	TH_LOG("%llu us instead of %llu", beside / 1000, alone / 1000);
	EXPECT_LE(beside, 2 * alone);
}

/* Returns the errno of opening an event. */
static int refusal(const struct perf_event_attr *attr, int group_fd)
{
	int fd = perf_open_self(attr, group_fd);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static bool explains(struct __test_metadata *_metadata, const char *reason)
{
	static char text[1 << 16];
	char *line;

	if (!read_file(REFUSALS, text, sizeof(text)))
		return false;
	line = strstr(text, "type=");
	if (line)
		*strchrnul(line, '\n') = '\0';
	if (line && strstr(line, reason))
		return true;
	TH_LOG("%s", line ?: "nothing");
	return false;
}

/* A field of a later driver version is refused, not ignored. */
TEST_F(event_sets, bits_without_a_meaning)
{
	struct perf_event_attr attr = leader_of_set(TURN, 0);
	int bit;

	if (!on_rpmu())
		SKIP(return, "only rpmu has fields in config4");
	for (bit = 1; bit < 64; bit++) {
		attr.config4 = 1ULL << bit;
		EXPECT_EQ(EINVAL, refusal(&attr, -1)) TH_LOG("bit %d", bit);
	}
	EXPECT_TRUE(explains(_metadata, " config4=0x8000000000000000 "));
	EXPECT_TRUE(explains(_metadata, ": config4 has bits that mean nothing to this driver"));
}

TEST_F(event_sets, refusals)
{
	struct perf_event_attr attr = leader_of_set(TURN, SWITCH), counts = attr, pinned = attr,
		member = attr;
	int leader;

	if (!on_rpmu())
		SKIP(return, "only rpmu has event sets that switch on overflow");
	counts.sample_period = 0;
	EXPECT_EQ(EINVAL, refusal(&counts, -1));
	EXPECT_TRUE(explains(_metadata, " config4=0x1 "));
	EXPECT_TRUE(explains(_metadata, ": switch needs a sample period"));
	pinned.pinned = 1;
	EXPECT_EQ(EINVAL, refusal(&pinned, -1));
	EXPECT_TRUE(explains(_metadata, ": switch is for groups that rotate, not for pinned ones"));
	leader = perf_open_self(&attr, -1);
	ASSERT_LE(0, leader);
	EXPECT_EQ(EINVAL, refusal(&member, leader));
	EXPECT_TRUE(explains(_metadata, ": switch is for the leader of a group"));
	member.config4 = 0;
	EXPECT_EQ(0, refusal(&member, leader));
	close(leader);
}

/* The built-in driver accepts anything in the field. */
TEST_F(event_sets, ignored_by_the_built_in)
{
	struct perf_event_attr attr = leader_of_set(0, ~0ULL);

	if (on_rpmu())
		SKIP(return, "the driver is rpmu");
	EXPECT_EQ(0, refusal(&attr, -1));
}

TEST_HARNESS_MAIN
