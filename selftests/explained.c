// SPDX-License-Identifier: GPL-2.0
/*
 * Tests rpmu's files in debugfs: the reasons of refusals, and the schedule of
 * each CPU. The built-in driver has no such files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

OWN_COUNTERS()

#define DEBUGFS		"/sys/kernel/debug/rpmu"
#define KEPT		64	/* refusals */
#define ANY_NUMBER	16
#define TICK_MS		10	/* longest possible tick: HZ=100 */
/* Long enough for an interrupt to another CPU and its handler. */
#define AT_ONCE_US	50000
#define ALL_LOADS	0x81d0	/* MEM_UOPS_RETIRED.ALL_LOADS: corrupting on Haswell */

/* Reads a file of rpmu's in debugfs; NULL if it cannot be read. */
static char *rpmu_file(const char *name)
{
	static char text[1 << 16];
	char path[128];

	snprintf(path, sizeof(path), DEBUGFS "/%s", name);
	return read_file(path, text, sizeof(text)) ? text : NULL;
}

/* Returns the first line of @text that contains @word; NULL if there is none. */
static char *line_with(char *text, const char *word)
{
	static char line[1024];
	char *end, *start, *found = text ? strstr(text, word) : NULL;

	if (!found)
		return NULL;
	for (start = found; start > text && start[-1] != '\n'; start--)
		;
	end = strchrnul(start, '\n');
	snprintf(line, sizeof(line), "%.*s", (int)(end - start), start);
	return line;
}

static char *newest_refusal(void)
{
	return line_with(rpmu_file("refusals"), "type=");
}

FIXTURE(explained)
{
	int nothing;
};

FIXTURE_SETUP(explained)
{
	if (!on_rpmu())
		SKIP(return, "only rpmu reports the reasons");
}

FIXTURE_TEARDOWN(explained)
{
}

/* Each refusal is listed with the event, the task, the errno and the reason. */
TEST_F(explained, refused_event)
{
	struct perf_event_attr attr = counting(PERF_TYPE_HW_CACHE, 0xffff00);
	char *line, pid[32];

	EXPECT_EQ(-1, perf_open_self(&attr, -1));
	EXPECT_EQ(EINVAL, errno);
	line = newest_refusal();
	ASSERT_NE(NULL, line);
	snprintf(pid, sizeof(pid), " %d explained ", getpid());
	EXPECT_NE(NULL, strstr(line, pid)) TH_LOG("%s", line);
	/*
	 * A kernel without CONFIG_SYMBOLIC_ERRNAME has no name for the errno.
	 */
	EXPECT_TRUE(strstr(line, " EINVAL type=hw-cache config=0xffff00 cpu=any group=0: ") ||
		    strstr(line, " Error(22) type=hw-cache config=0xffff00 cpu=any group=0: "))
		TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, ": no such generic cache event")) TH_LOG("%s", line);
}

/* Refused events of another PMU are not listed. */
TEST_F(explained, other_pmus)
{
	struct perf_event_attr bad = counting(PERF_TYPE_HW_CACHE, 0xfefe00);
	struct perf_event_attr other = counting(PERF_TYPE_SOFTWARE, ~0ULL);
	char *line;

	EXPECT_EQ(-1, perf_open_self(&bad, -1));
	EXPECT_EQ(-1, perf_open_self(&other, -1));
	line = newest_refusal();
	ASSERT_NE(NULL, line);
	EXPECT_NE(NULL, strstr(line, "config=0xfefe00")) TH_LOG("%s", line);
}

/*
 * For a group larger than the PMU, the line has the number of its events, and
 * the counters.
 */
TEST_F(explained, refused_group)
{
	const unsigned int gp = gp_counters();
	int fds[ANY_NUMBER];
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	char *line, expected[64];
	unsigned int i;

	ASSERT_GT(ANY_NUMBER, gp);
	/* Disabled members are not checked. */
	attr.disabled = 0;
	for (i = 0; i < gp; i++) {
		fds[i] = perf_open_self(&attr, i ? fds[0] : -1);
		ASSERT_LE(0, fds[i]);
	}
	EXPECT_EQ(-1, perf_open_self(&attr, fds[0]));
	EXPECT_EQ(EINVAL, errno);
	line = newest_refusal();
	ASSERT_NE(NULL, line);
	snprintf(expected, sizeof(expected), "group=%u: %u events compete for %u counters",
		 gp, gp + 1, gp);
	EXPECT_NE(NULL, strstr(line, expected)) TH_LOG("%s", line);
	for (i = 0; i < gp; i++)
		close(fds[i]);
}

/* A group that exceeds the limit on the threads of a core (erratum HSD29). */
TEST_F(explained, refused_for_the_sibling)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, ALL_LOADS);
	char siblings[32];
	char *line;
	int fds[2];

	ASSERT_TRUE(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			      siblings, sizeof(siblings)));
	if (cpu_model() != MODEL_HASWELL || !strpbrk(siblings, "-,"))
		SKIP(return, "no erratum, or one thread per core");
	attr.disabled = 0;
	fds[0] = perf_open_self(&attr, -1);
	attr.config = RAW_BRANCHES;
	fds[1] = perf_open_self(&attr, fds[0]);
	ASSERT_LE(0, fds[1]);
	EXPECT_EQ(-1, perf_open_self(&attr, fds[0]));
	EXPECT_EQ(EINVAL, errno);
	line = newest_refusal();
	ASSERT_NE(NULL, line);
	EXPECT_NE(NULL, strstr(line, ": 3 general-purpose counters are needed, 2 may be used; "))
		TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, "corrupting event, half is left to the core's other thread"))
		TH_LOG("%s", line);
	close(fds[1]);
	close(fds[0]);
}

/* The latest KEPT refusals are listed, newest first. */
TEST_F(explained, latest_are_kept)
{
	struct perf_event_attr attr = counting(PERF_TYPE_HW_CACHE, 0);
	unsigned int i, lines = 0;
	char *text, expected[32];

	for (i = 0; i < KEPT + 6; i++) {
		attr.config = 0xff0000 + i;
		EXPECT_EQ(-1, perf_open_self(&attr, -1));
	}
	text = rpmu_file("refusals");
	ASSERT_NE(NULL, text);
	for (text = strtok(text, "\n"); text; text = strtok(NULL, "\n")) {
		if (*text == '#')
			continue;
		snprintf(expected, sizeof(expected), "config=%#x ",
			 0xff0000 + KEPT + 6 - 1 - lines);
		EXPECT_NE(NULL, strstr(text, expected)) TH_LOG("%s", text);
		lines++;
	}
	EXPECT_EQ(KEPT, lines);
}

/* Returns the event's line in @schedule. */
static char *line_of(char *schedule, int fd)
{
	char id[32];

	snprintf(id, sizeof(id), " id=%llu ", (unsigned long long)event_id(fd));
	return line_with(schedule, id);
}

/* Returns the event's line in the schedule of CPU 0. */
static char *scheduled(int fd)
{
	return line_of(rpmu_file("cpu0/schedule"), fd);
}

/*
 * Returns whether the schedule of CPU 0 lists the event with the current ones, which
 * count, wait or are in the error state, and not with the last failures.
 */
static bool is_here(int fd)
{
	char *all = rpmu_file("cpu0/schedule"), *end = all ? strstr(all, "# the last ") : NULL;
	char id[32];

	snprintf(id, sizeof(id), " id=%llu ", (unsigned long long)event_id(fd));
	if (!end)
		return false;
	*end = '\0';
	return strstr(all, id);
}

/* An event is listed as long as it has a counter. */
TEST_F(explained, events_with_counters)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	char *line, task[64], type[32];
	int own, all;

	ASSERT_TRUE(run_on(0));
	own = perf_open(&attr, 0, 0, -1, 0);
	attr.pinned = 1;
	all = perf_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, own);
	ASSERT_LE(0, all);
	EXPECT_EQ(NULL, scheduled(own));

	ASSERT_EQ(0, ioctl(own, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, ioctl(all, PERF_EVENT_IOC_ENABLE, 0));
	line = scheduled(own);
	ASSERT_NE(NULL, line);
	EXPECT_EQ(0, strncmp(line, "PMC", 3)) TH_LOG("%s", line);
	snprintf(type, sizeof(type), "type=4 config=%#x ", RAW_BRANCHES);
	EXPECT_NE(NULL, strstr(line, type)) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, " may=PMC0,PMC1,PMC2,PMC3")) TH_LOG("%s", line);
	EXPECT_EQ(NULL, strstr(line, " pinned")) TH_LOG("%s", line);
	snprintf(task, sizeof(task), " opened_by=explained[%d] task=%d explained", getpid(),
		 getpid());
	EXPECT_NE(NULL, strstr(line, task)) TH_LOG("%s", line);
	line = scheduled(all);
	ASSERT_NE(NULL, line);
	snprintf(task, sizeof(task), " pinned opened_by=explained[%d] task=none", getpid());
	EXPECT_NE(NULL, strstr(line, task)) TH_LOG("%s", line);

	close(own);
	EXPECT_NE(NULL, scheduled(all));
	ASSERT_EQ(0, ioctl(all, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(NULL, scheduled(all));
	close(all);
}

static int open_on_cpu0(__u64 config, bool pinned, int leader)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, config);

	attr.disabled = 0;
	attr.pinned = pinned;
	return perf_open(&attr, -1, 0, leader, 0);
}

/*
 * The opener of an event is named, also while the event waits and when it has
 * failed; a task cannot write other fields with its name.
 */
TEST_F(explained, openers)
{
	const unsigned int gp = gp_counters();
	int fds[ANY_NUMBER + 1];
	char *line, opener[48];
	unsigned int i;

	ASSERT_GT(ANY_NUMBER, gp);
	ASSERT_TRUE(run_on(0));
	for (i = 0; i <= gp; i++) {
		fds[i] = open_on_cpu0(RAW_BRANCHES, i < gp, -1);
		ASSERT_LE(0, fds[i]);
	}
	ASSERT_EQ(0, prctl(PR_SET_NAME, "a task=b pinned"));
	snprintf(opener, sizeof(opener), " opened_by=a?task=b?pinned[%d] task=none", getpid());
	for (i = 0; i <= gp; i++) {
		line = scheduled(fds[i]);
		ASSERT_NE(NULL, line);
		EXPECT_EQ(i < gp, !strncmp(line, "PMC", 3)) TH_LOG("%s", line);
		EXPECT_NE(NULL, strstr(line, opener)) TH_LOG("%s", line);
		EXPECT_NE(NULL, strstr(line, " counted_ms=")) TH_LOG("%s", line);
	}
	ASSERT_EQ(0, prctl(PR_SET_NAME, "explained"));
	for (i = 0; i <= gp; i++)
		close(fds[i]);
}

/*
 * Returns the number after @name in the event's line in the schedule of CPU 0;
 * -1 if it is not listed.
 */
static long number_of(int fd, const char *name)
{
	char *line = scheduled(fd), *number = line ? strstr(line, name) : NULL;

	return number ? atol(number + strlen(name)) : -1;
}

static long age_of(int fd)
{
	return number_of(fd, " for_ms=");
}

/*
 * counted_ms is the time that the event has counted, which its user reads, too.
 * It grows while the event is on its counter, and stays while the event is off.
 */
TEST_F(explained, counted)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	__u64 values[3];
	long before, after, at;
	char *text;
	int fd;

	attr.disabled = 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = perf_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, fd);
	usleep(100000);
	ASSERT_EQ(sizeof(values), read(fd, values, sizeof(values)));
	before = number_of(fd, " counted_ms=");
	EXPECT_LE((long)(values[2] / 1000000), before);
	usleep(100000);
	text = rpmu_file("cpu0/schedule");
	ASSERT_NE(NULL, text);
	/* The clock of the perf core started with the machine. */
	ASSERT_EQ(0, strncmp(text, "# at_ms=", 8)) TH_LOG("%s", text);
	at = atol(text + 8);
	EXPECT_LE(200, at) TH_LOG("%s", text);
	after = number_of(fd, " counted_ms=");
	EXPECT_LE(before + 100 - 1, after);
	ASSERT_EQ(sizeof(values), read(fd, values, sizeof(values)));
	EXPECT_GE((long)(values[2] / 1000000), after);
	close(fd);
}

/* for_ms is the time since the event got its counter. */
TEST_F(explained, age)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	const __u64 begin = now_ns();
	long before, after, at_least, at_most;
	int fd;

	attr.disabled = 0;
	fd = perf_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, fd);
	before = age_of(fd);
	ASSERT_LE(0, before);
	at_least = now_ns() / 1000000;
	usleep(100000);
	at_least = now_ns() / 1000000 - at_least;
	after = age_of(fd);
	at_most = (now_ns() - begin) / 1000000;
	/* Allow for the length of a tick at each end. */
	EXPECT_LE(before + at_least - 2 * TICK_MS, after);
	EXPECT_GE(at_most + 2 * TICK_MS, after);
	close(fd);
}

static bool holder_named(const char *line, int fd)
{
	char holder[48];

	snprintf(holder, sizeof(holder), ": id=%llu", (unsigned long long)event_id(fd));
	return strstr(line, holder);
}

/*
 * During rotation, the reason of a waiting event names running events, and each
 * event is listed as waiting or on a counter.
 */
TEST_F(explained, waits_for_its_turn)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	const unsigned int gp = gp_counters();
	int fds[ANY_NUMBER + 3], pair[2];
	unsigned int i, j, placed = 0, waiting = 0;
	char *schedule, *line, mine[48];
	bool named;

	ASSERT_GT(ANY_NUMBER, gp);
	ASSERT_TRUE(run_on(0));
	snprintf(mine, sizeof(mine), " task=%d explained", getpid());
	attr.disabled = 0;
	for (i = 0; i < gp + 3; i++) {
		fds[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fds[i]);
	}
	/* Wait for some rotations. */
	branch_loop(10000000);
	/* Use one snapshot for all: events may rotate between two. */
	schedule = rpmu_file("cpu0/schedule");
	for (i = 0; i < gp + 3; i++) {
		line = line_of(schedule, fds[i]);
		ASSERT_NE(NULL, line) TH_LOG("%u: %s", i, schedule);
		EXPECT_NE(NULL, strstr(line, mine)) TH_LOG("%s", line);
		if (!strncmp(line, "PMC", 3)) {
			placed++;
			continue;
		}
		waiting++;
		EXPECT_EQ(0, strncmp(line, "waits ", 6)) TH_LOG("%s", line);
		EXPECT_NE(NULL, strstr(line, " members=1 counted_ms=")) TH_LOG("%s", line);
		EXPECT_NE(NULL, strstr(line, ": waits for its turn behind PMC")) TH_LOG("%s", line);
		named = false;
		for (j = 0; j < gp + 3; j++)
			named |= j != i && holder_named(line, fds[j]);
		EXPECT_TRUE(named) TH_LOG("%s", line);
	}
	/* The test needs events of either kind. */
	EXPECT_LE(1, placed) TH_LOG("%s", schedule);
	EXPECT_LE(1, waiting) TH_LOG("%s", schedule);
	for (i = 0; i < gp + 3; i++)
		close(fds[i]);

	/* A group with more events than free counters waits as a whole. */
	for (i = 0; i < 2; i++) {
		attr.pinned = !i;
		fds[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fds[i]);
	}
	attr.pinned = 0;
	for (i = 2; i < gp - 1; i++) {
		fds[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fds[i]);
	}
	attr.disabled = 1;
	pair[0] = perf_open_self(&attr, -1);
	attr.disabled = 0;
	pair[1] = perf_open_self(&attr, pair[0]);
	ASSERT_LE(0, pair[1]);
	ASSERT_EQ(0, ioctl(pair[0], PERF_EVENT_IOC_ENABLE, 0));
	named = false;
	for (i = 0; i < 100 && !named; i++) {
		branch_loop(1000000);
		line = scheduled(pair[0]);
		ASSERT_NE(NULL, line);
		named = strstr(line, "members=2 counted_ms=") &&
			strstr(line, ": waits for its turn behind PMC");
	}
	EXPECT_TRUE(named) TH_LOG("%s", rpmu_file("cpu0/schedule"));
	close(pair[1]);
	close(pair[0]);
	for (i = 0; i < gp - 1; i++)
		close(fds[i]);
}

/*
 * A group without room beside pinned events does not wait for a turn: it never
 * gets one.
 */
TEST_F(explained, gets_no_turn)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	const unsigned int gp = gp_counters();
	int pinned[ANY_NUMBER], pair[2], one[3];
	unsigned int i, rounds;
	char *line;

	ASSERT_GT(ANY_NUMBER, gp);
	ASSERT_TRUE(run_on(0));
	/* One general-purpose counter is left. */
	for (i = 0; i < gp - 1; i++) {
		pinned[i] = open_on_cpu0(RAW_BRANCHES, true, -1);
		ASSERT_LE(0, pinned[i]);
	}
	attr.disabled = 1;
	pair[0] = perf_open(&attr, 0, 0, -1, 0);
	attr.disabled = 0;
	pair[1] = perf_open(&attr, 0, 0, pair[0], 0);
	ASSERT_LE(0, pair[1]);
	ASSERT_EQ(0, ioctl(pair[0], PERF_EVENT_IOC_ENABLE, 0));
	for (i = 0; i < 3; i++) {
		one[i] = perf_open(&attr, 0, 0, -1, 0);
		ASSERT_LE(0, one[i]);
	}
	/* Wait for rotations, after which the last event waits for its turn. */
	for (rounds = 0; rounds < 100; rounds++) {
		branch_loop(1000000);
		line = scheduled(one[2]);
		ASSERT_NE(NULL, line);
		if (strstr(line, ": waits for its turn behind PMC"))
			break;
	}
	EXPECT_GT(100, rounds) TH_LOG("%s", rpmu_file("cpu0/schedule"));
	/* Only pinned events are named, because the other events rotate. */
	line = scheduled(pair[0]);
	ASSERT_NE(NULL, line);
	EXPECT_EQ(NULL, strstr(line, "waits for its turn")) TH_LOG("%s", line);
	if (!strstr(line, "failed=")) {
		EXPECT_NE(NULL, strstr(line, ": gets no turn while pinned events count; PMC"))
			TH_LOG("%s", line);
		for (i = 0; i < gp - 1; i++)
			EXPECT_TRUE(holder_named(line, pinned[i])) TH_LOG("%s", line);
		for (i = 0; i < 3; i++)
			EXPECT_FALSE(holder_named(line, one[i])) TH_LOG("%s", line);
	}
	for (i = 0; i < 3; i++)
		close(one[i]);
	close(pair[1]);
	close(pair[0]);
	for (i = 0; i < gp - 1; i++)
		close(pinned[i]);
}

/*
 * The failure of a task that has ended does not name events that have received
 * the counters since.
 */
TEST_F(explained, an_ended_tasks_failure)
{
	const unsigned int gp = gp_counters();
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	unsigned long long id = 0;
	char *line, number[32];
	int pipes[2], status, fds[ANY_NUMBER];
	unsigned int i;
	pid_t child;

	ASSERT_GT(ANY_NUMBER, gp);
	ASSERT_TRUE(run_on(0));
	ASSERT_EQ(0, pipe(pipes));
	attr.disabled = 0;
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		/* One pinned event more than fits. */
		attr.pinned = 1;
		for (i = 0; i < gp + 1; i++)
			fds[i] = perf_open_self(&attr, -1);
		id = event_id(fds[gp]);
		branch_loop(1000);
		_exit(write(pipes[1], &id, sizeof(id)) != sizeof(id));
	}
	ASSERT_EQ(sizeof(id), read(pipes[0], &id, sizeof(id)));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	for (i = 0; i < gp; i++) {
		fds[i] = open_on_cpu0(RAW_BRANCHES, false, -1);
		ASSERT_LE(0, fds[i]);
	}
	snprintf(number, sizeof(number), " id=%llu ", id);
	line = line_with(rpmu_file("cpu0/schedule"), number);
	ASSERT_NE(NULL, line);
	EXPECT_EQ(0, strncmp(line, "error ", 6)) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, " events compete for ")) TH_LOG("%s", line);
	EXPECT_EQ(NULL, strstr(line, "; PMC")) TH_LOG("%s", line);
	for (i = 0; i < gp; i++) {
		EXPECT_FALSE(holder_named(line, fds[i])) TH_LOG("%s", line);
		close(fds[i]);
	}
	close(pipes[0]);
	close(pipes[1]);
}

/*
 * Tests events that fail to get a counter. All are events of a CPU, and
 * rotation is off, so that only the driver decides.
 */
FIXTURE(waiting)
{
	char interval[32];
	unsigned int gp;
	int fds[ANY_NUMBER];	/* on all general-purpose counters of CPU 0 except one */
};

FIXTURE_SETUP(waiting)
{
	unsigned int i;

	ASSERT_TRUE(read_line(MUX_INTERVAL, self->interval, sizeof(self->interval)));
	if (!on_rpmu())
		SKIP(return, "only rpmu reports the reasons");
	self->gp = gp_counters();
	ASSERT_GT(ANY_NUMBER, self->gp);
	ASSERT_TRUE(forbid_rotation());
	for (i = 0; i < self->gp - 1; i++) {
		self->fds[i] = open_on_cpu0(RAW_BRANCHES, false, -1);
		ASSERT_LE(0, self->fds[i]);
		ASSERT_NE(NULL, scheduled(self->fds[i]));
	}
}

FIXTURE_TEARDOWN(waiting)
{
	unsigned int i;

	if (!self->gp)
		return;
	for (i = 0; i < self->gp - 1; i++)
		close(self->fds[i]);
	EXPECT_TRUE(allow_rotation(self->interval));
}

/*
 * One event more than fits: its line names every holder of a counter. When the
 * event gets a counter, its line has the counter instead.
 */
TEST_F(waiting, for_any_counter)
{
	int last = open_on_cpu0(RAW_BRANCHES, false, -1);
	char *line = scheduled(last), expected[64];
	unsigned int i;
	int waits;

	ASSERT_NE(NULL, line);
	EXPECT_EQ(0, strncmp(line, "PMC", 3)) TH_LOG("%s", line);
	if (fixed_counters()) {
		/* Instructions have a fixed counter. */
		waits = open_on_cpu0(RAW_INSTRUCTIONS, false, -1);
		ASSERT_LE(0, waits);
		line = scheduled(waits);
		ASSERT_NE(NULL, line);
		EXPECT_EQ(0, strncmp(line, "FIXED0", 6)) TH_LOG("%s", line);
		close(waits);
	}

	waits = open_on_cpu0(RAW_BRANCHES, false, -1);
	line = scheduled(waits);
	ASSERT_NE(NULL, line);
	EXPECT_EQ(0, strncmp(line, "waits ", 6)) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, " members=1 ")) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, " task=none")) TH_LOG("%s", line);
	snprintf(expected, sizeof(expected), ": %u events compete for %u counters",
		 self->gp + 1, self->gp);
	EXPECT_NE(NULL, strstr(line, expected)) TH_LOG("%s", line);
	for (i = 0; i < self->gp - 1; i++)
		EXPECT_TRUE(holder_named(line, self->fds[i])) TH_LOG("%s", line);
	EXPECT_TRUE(holder_named(line, last)) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, "; would share PMC")) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, ", but with share=0 ")) TH_LOG("%s", line);

	close(last);
	ASSERT_EQ(0, ioctl(waits, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, ioctl(waits, PERF_EVENT_IOC_ENABLE, 0));
	line = scheduled(waits);
	ASSERT_NE(NULL, line);
	EXPECT_EQ(0, strncmp(line, "PMC", 3)) TH_LOG("%s", line);
	close(waits);
}

/* A group waits as a whole. */
TEST_F(waiting, as_a_group)
{
	/* The leader stays disabled until the group is complete. */
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	int leader = perf_open(&attr, -1, 0, -1, 0);
	int member = open_on_cpu0(RAW_BRANCHES, false, leader);
	char *line, group[32];

	ASSERT_LE(0, member);
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	line = scheduled(leader);
	ASSERT_NE(NULL, line);
	EXPECT_EQ(0, strncmp(line, "waits ", 6)) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, " members=2 ")) TH_LOG("%s", line);
	EXPECT_EQ(NULL, strstr(line, " group=")) TH_LOG("%s", line);
	line = scheduled(member);
	ASSERT_NE(NULL, line);
	EXPECT_EQ(0, strncmp(line, "member ", 7)) TH_LOG("%s", line);
	snprintf(group, sizeof(group), " group=%llu", (unsigned long long)event_id(leader));
	EXPECT_NE(NULL, strstr(line, group)) TH_LOG("%s", line);
	close(member);
	close(leader);
}

/* A pinned event does not wait: it is in the error state, with its reason listed. */
TEST_F(waiting, pinned)
{
	int first = open_on_cpu0(RAW_BRANCHES, true, -1);
	int fds[ANY_NUMBER], last, waits;
	unsigned int i;
	char *line;

	ASSERT_LE(0, first);
	for (i = 0; i < self->gp - 1; i++)
		fds[i] = open_on_cpu0(RAW_BRANCHES, true, -1);
	last = open_on_cpu0(RAW_BRANCHES, true, -1);
	waits = open_on_cpu0(RAW_BRANCHES, false, -1);
	EXPECT_TRUE(is_here(waits)) TH_LOG("%s", rpmu_file("cpu0/schedule"));
	line = scheduled(last);
	ASSERT_NE(NULL, line);
	EXPECT_EQ(0, strncmp(line, "error ", 6)) TH_LOG("%s", line);
	EXPECT_TRUE(holder_named(line, first)) TH_LOG("%s", line);
	/*
	 * The event is listed with the CPU's current events until it is
	 * disabled.
	 */
	EXPECT_TRUE(is_here(last)) TH_LOG("%s", rpmu_file("cpu0/schedule"));
	EXPECT_EQ(0, ioctl(last, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(0, ioctl(waits, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_FALSE(is_here(waits)) TH_LOG("%s", rpmu_file("cpu0/schedule"));
	close(waits);
	close(last);
	for (i = 0; i < self->gp - 1; i++)
		close(fds[i]);
	close(first);
}

/* The reason names the core's other thread, not an event of this thread. */
TEST_F(waiting, for_the_sibling)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, ALL_LOADS);
	char siblings[32], *end, *line;
	int corrupting, waits, sibling;

	ASSERT_TRUE(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			      siblings, sizeof(siblings)));
	sibling = strtol(siblings, &end, 10);
	sibling = *end ? atoi(end + 1) : sibling;
	if (cpu_model() != MODEL_HASWELL || !sibling)
		SKIP(return, "no erratum, or one thread per core");
	attr.disabled = 0;
	corrupting = perf_open(&attr, -1, sibling, -1, 0);
	ASSERT_LE(0, corrupting);
	usleep(AT_ONCE_US);
	/*
	 * This thread now has two counters: the third event has lost its
	 * counter.
	 */
	waits = open_on_cpu0(RAW_BRANCHES, false, -1);
	ASSERT_LE(0, waits);
	line = scheduled(self->fds[2]);
	ASSERT_NE(NULL, line) TH_LOG("%s", rpmu_file("cpu0/schedule"));
	EXPECT_EQ(0, strncmp(line, "waits ", 6)) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, ": 3 general-purpose counters are needed, 2 may be used"))
		TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, "PMC3: taken by a corrupting event of the core's other"))
		TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, "corrupting events of the core's other thread have the rest"))
		TH_LOG("%s", line);
	EXPECT_TRUE(holder_named(line, self->fds[0])) TH_LOG("%s", line);
	close(waits);
	close(corrupting);
}

/* Only root may read the files, because they show other users' tasks. */
TEST_F(explained, root_alone)
{
	static const char * const files[] = { "refusals", "cpu0/schedule" };
	struct stat status;
	char path[128];
	unsigned int i;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), DEBUGFS "/%s", files[i]);
		ASSERT_EQ(0, stat(path, &status));
		EXPECT_EQ(0400, status.st_mode & 07777);
		EXPECT_EQ(0, status.st_uid);
	}
}

TEST_HARNESS_MAIN
