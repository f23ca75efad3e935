// SPDX-License-Identifier: GPL-2.0
/* Tests the tracepoints rpmu:*: when each fires, and with which fields. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define TRACEFS		"/sys/kernel/tracing"
/* Use a separate trace instance, which does not disturb other traces. */
#define INSTANCE	TRACEFS "/instances/rpmu_traced"
#define ANY_NUMBER	16
#define FIRST_FIXED	32

FIXTURE(traced)
{
	bool is_there;
};

static bool instance_write(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), INSTANCE "/%s", name);
	return write_line(path, text);
}

/* Enables one tracepoint and clears the trace. */
static bool trace(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "events/rpmu/%s/enable", name);
	return instance_write("trace", "") && instance_write(path, "1");
}

/* Reads the trace; NULL if it cannot be read. */
static char *traced(void)
{
	static char text[1 << 18];

	return read_file(INSTANCE "/trace", text, sizeof(text)) ? text : NULL;
}

/* Returns the first line with both words. */
static char *traced_line(const char *one, const char *other)
{
	static char line[1024];
	char *text = traced();
	char *next;

	for (; text && *text; text = next) {
		next = strchrnul(text, '\n');
		snprintf(line, sizeof(line), "%.*s", (int)(next - text), text);
		if (strstr(line, one) && strstr(line, other))
			return line;
		next += *next == '\n';
	}
	return NULL;
}

static unsigned int lines_with(const char *word)
{
	unsigned int n = 0;
	char *text = traced();

	while (text && (text = strstr(text, word))) {
		n++;
		text += strlen(word);
	}
	return n;
}

/* Returns the number that follows @name in @line. */
static long value(const char *line, const char *name)
{
	char *found = line ? strstr(line, name) : NULL;

	return found ? strtol(found + strlen(name), NULL, 0) : -1000000;
}

FIXTURE_SETUP(traced)
{
	if (!on_rpmu())
		SKIP(return, "only rpmu has these tracepoints");
	ASSERT_EQ(0, mkdir(INSTANCE, 0700)) TH_LOG("%s: %m", INSTANCE);
	self->is_there = true;
}

FIXTURE_TEARDOWN(traced)
{
	if (!self->is_there)
		return;
	instance_write("events/rpmu/enable", "0");
	EXPECT_EQ(0, rmdir(INSTANCE)) TH_LOG("%m");
}

/*
 * The format files, from which perf, bpftrace and others learn the fields. A
 * gap between two fields would reveal bytes of other records.
 */
TEST_F(traced, formats)
{
	static const char * const expected[][9] = {
		{ "schedule", "u64 id;", "u32 type;", "u64 config;", "long tid;", "bool pinned;",
		  "u32 counter;" },
		{ "place_failed", "u64 id;", "u32 type;", "u64 config;", "long tid;",
		  "bool pinned;", "u32 members;", "u64 counters;", "char reason[256];" },
		{ "refused", "u32 type;", "u64 config;", "u64 config1;", "long cpu;", "u32 group;",
		  "long error;", "char reason[256];" },
		{ "rotate", "u32 counting;", "u32 wait;" },
	};
	char path[128], text[4096];
	unsigned int i, j, fields;
	long end;
	char *at;

	for (i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		snprintf(path, sizeof(path), TRACEFS "/events/rpmu/%s/format", expected[i][0]);
		ASSERT_TRUE(read_file(path, text, sizeof(text))) TH_LOG("%s", path);
		/* All tracepoints have four common fields. */
		fields = 0;
		end = 0;
		for (at = text; (at = strstr(at, "field:")); at++) {
			EXPECT_EQ(end, value(at, "offset:")) TH_LOG("%s", text);
			end += value(at, "size:");
			fields++;
		}
		for (j = 1; j < 9 && expected[i][j]; j++) {
			EXPECT_NE(NULL, strstr(text, expected[i][j]))
				TH_LOG("%s lacks %s", expected[i][0], expected[i][j]);
			fields--;
		}
		EXPECT_EQ(4, fields) TH_LOG("%s", text);
		EXPECT_NE(NULL, strstr(text, "print fmt: ")) TH_LOG("%s", text);
	}
}

TEST_F(traced, refused)
{
	struct perf_event_attr attr = counting(PERF_TYPE_HW_CACHE, 0xffff00);
	char *line;

	ASSERT_TRUE(trace("refused"));
	attr.config1 = 0x77;
	EXPECT_EQ(-1, perf_open(&attr, 0, 1, -1, 0));
	line = traced_line("refused: ", "config=0xffff00 ");
	ASSERT_NE(NULL, line);
	EXPECT_NE(NULL, strstr(line, "refused: type=3 config=0xffff00 config1=0x77 cpu=1 group=0 "))
		TH_LOG("%s", line);
	EXPECT_EQ(-EINVAL, value(line, " error=")) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, " reason=no such generic cache event")) TH_LOG("%s", line);
	EXPECT_EQ(1, lines_with(" refused: "));

	/* Neither events of other PMUs nor successful opens are traced. */
	attr = counting(PERF_TYPE_SOFTWARE, ~0ULL);
	EXPECT_EQ(-1, perf_open_self(&attr, -1));
	attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	close(perf_open_self(&attr, -1));
	EXPECT_EQ(1, lines_with(" refused: "));
}

/* A sample with PERF_SAMPLE_RAW. */
struct raw_record {
	struct perf_event_header header;
	__u32 size;
	char data[];
};

/*
 * The perf core reuses its buffer for records: the rest of a longer reason must
 * not follow a shorter one.
 */
TEST_F(traced, nothing_of_other_records)
{
	const long page_size = sysconf(_SC_PAGESIZE);
	struct perf_event_attr attr;
	struct perf_event_mmap_page *page;
	const struct raw_record *record;
	char text[4096], *reason;
	unsigned int i, records = 0;
	size_t len, end, lengths[2] = { 0 };
	long offset;
	int fd;

	ASSERT_TRUE(read_file(TRACEFS "/events/rpmu/refused/format", text, sizeof(text)));
	reason = strstr(text, "char reason[256];");
	ASSERT_NE(NULL, reason);
	offset = value(reason, "offset:");
	ASSERT_LT(0, offset);

	ASSERT_TRUE(read_line(TRACEFS "/events/rpmu/refused/id", text, sizeof(text)));
	attr = counting(PERF_TYPE_TRACEPOINT, atoi(text));
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_RAW;
	attr.exclude_kernel = 0;
	attr.disabled = 0;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd) TH_LOG("%m");
	page = map_buffer(fd, 2);
	ASSERT_NE(MAP_FAILED, page) TH_LOG("%m");
	/* Alternates between a longer reason and a shorter one. */
	for (i = 0; i < 4; i++) {
		attr = i & 1 ? counting(PERF_TYPE_HW_CACHE, 0xffff00) :
			       counting(PERF_TYPE_HARDWARE, 100);
		EXPECT_EQ(-1, perf_open_self(&attr, -1));
	}
	while ((record = take_sample(page))) {
		ASSERT_LE(offset + 256, record->size);
		len = strnlen(record->data + offset, 256);
		ASSERT_GT(256, len);
		lengths[records++ & 1] = len;
		for (end = len; end < 256 && !record->data[offset + end]; end++)
			;
		EXPECT_EQ(256, end)
			TH_LOG("behind \"%s\": \"%.20s\"", record->data + offset,
			       record->data + offset + end);
	}
	EXPECT_EQ(4, records);
	EXPECT_GT(lengths[0], lengths[1]);
	munmap(page, 3 * page_size);
	close(fd);
}

/* Fires when an event is scheduled on a counter. */
TEST_F(traced, schedule)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	char id[48], *line;
	const char *counter;
	int own, all, fixed;

	ASSERT_TRUE(run_on(0));
	own = perf_open_self(&attr, -1);
	attr.pinned = 1;
	all = perf_open(&attr, -1, 0, -1, 0);
	attr.pinned = 0;
	attr.config = RAW_INSTRUCTIONS;
	fixed = perf_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, own);
	ASSERT_LE(0, all);
	ASSERT_LE(0, fixed);
	ASSERT_TRUE(trace("schedule"));
	snprintf(id, sizeof(id), " id=%llu ", (unsigned long long)event_id(own));
	EXPECT_EQ(NULL, traced_line("schedule: ", id));

	ASSERT_EQ(0, ioctl(own, PERF_EVENT_IOC_ENABLE, 0));
	line = traced_line("schedule: ", id);
	ASSERT_NE(NULL, line);
	snprintf(id, sizeof(id), " type=4 config=%#x ", RAW_BRANCHES);
	EXPECT_NE(NULL, strstr(line, id)) TH_LOG("%s", line);
	EXPECT_EQ(getpid(), value(line, " tid=")) TH_LOG("%s", line);
	EXPECT_EQ(0, value(line, " pinned=")) TH_LOG("%s", line);
	EXPECT_GT(gp_counters(), value(line, " counter=PMC")) TH_LOG("%s", line);

	ASSERT_EQ(0, ioctl(all, PERF_EVENT_IOC_ENABLE, 0));
	snprintf(id, sizeof(id), " id=%llu ", (unsigned long long)event_id(all));
	line = traced_line("schedule: ", id);
	ASSERT_NE(NULL, line);
	EXPECT_EQ(-1, value(line, " tid=")) TH_LOG("%s", line);
	EXPECT_EQ(1, value(line, " pinned=")) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, "[000]")) TH_LOG("%s", line);

	ASSERT_EQ(0, ioctl(fixed, PERF_EVENT_IOC_ENABLE, 0));
	snprintf(id, sizeof(id), " id=%llu ", (unsigned long long)event_id(fixed));
	line = traced_line("schedule: ", id);
	ASSERT_NE(NULL, line);
	counter = fixed_counters() ? " counter=FIXED0" : " counter=PMC";
	EXPECT_NE(NULL, strstr(line, counter)) TH_LOG("%s", line);
	close(fixed);
	close(all);
	close(own);
}

/* Fires with the reason when an event gets no counter. */
TEST_F(traced, place_failed)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	const unsigned int gp = gp_counters();
	int fds[ANY_NUMBER], leader, member;
	char id[64], interval[32], *line;
	unsigned int i;

	ASSERT_GT(ANY_NUMBER, gp);
	ASSERT_TRUE(own_counters());
	ASSERT_TRUE(read_line(MUX_INTERVAL, interval, sizeof(interval)));
	ASSERT_TRUE(forbid_rotation());
	attr.disabled = 0;
	for (i = 0; i < gp - 1; i++) {
		fds[i] = perf_open(&attr, -1, 0, -1, 0);
		ASSERT_LE(0, fds[i]);
	}
	attr.disabled = 1;
	leader = perf_open(&attr, -1, 0, -1, 0);
	attr.disabled = 0;
	member = perf_open(&attr, -1, 0, leader, 0);
	ASSERT_LE(0, member);
	ASSERT_TRUE(trace("place_failed"));
	EXPECT_EQ(0, lines_with(" place_failed: "));
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	snprintf(id, sizeof(id), " id=%llu ", (unsigned long long)event_id(leader));
	line = traced_line("place_failed: ", id);
	EXPECT_NE(NULL, line) TH_LOG("%s", traced());
	if (line) {
		snprintf(id, sizeof(id), " type=4 config=%#x tid=-1 pinned=0 members=2 ",
			 RAW_BRANCHES);
		EXPECT_NE(NULL, strstr(line, id)) TH_LOG("%s", line);
		EXPECT_EQ((1 << gp) - 1, value(line, " counters=")) TH_LOG("%s", line);
		snprintf(id, sizeof(id), " reason=%u events compete for %u counters", gp + 1, gp);
		EXPECT_NE(NULL, strstr(line, id)) TH_LOG("%s", line);
	}
	close(member);
	close(leader);
	for (i = 0; i < gp - 1; i++)
		close(fds[i]);
	EXPECT_TRUE(allow_rotation(interval));
}

/* Fires once in each interval while events rotate. */
TEST_F(traced, rotate)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	const unsigned int gp = gp_counters();
	int fds[ANY_NUMBER + 2];
	char *line, expected[64];
	unsigned int i, turns;

	ASSERT_GT(ANY_NUMBER, gp);
	ASSERT_TRUE(own_counters());
	ASSERT_TRUE(run_on(0));
	attr.disabled = 0;
	ASSERT_TRUE(trace("rotate"));
	for (i = 0; i < gp; i++) {
		fds[i] = perf_open(&attr, 0, 0, -1, 0);
		ASSERT_LE(0, fds[i]);
	}
	branch_loop(3000000);
	/* All of them fit. */
	EXPECT_EQ(0, lines_with(" rotate: ")) TH_LOG("%s", traced());
	for (; i < gp + 2; i++) {
		fds[i] = perf_open(&attr, 0, 0, -1, 0);
		ASSERT_LE(0, fds[i]);
	}
	for (i = 0; i < 100 && lines_with(" rotate: ") < 5; i++)
		branch_loop(3000000);
	turns = lines_with(" rotate: ");
	EXPECT_LE(5, turns);
	/*
	 * The first rotations are in list order, until the first events have
	 * failed to fit.
	 */
	snprintf(expected, sizeof(expected), "counting=%u wait=2", gp);
	line = traced_line(" rotate: ", expected);
	EXPECT_NE(NULL, line) TH_LOG("%s", traced());
	for (i = 0; i < gp + 2; i++)
		close(fds[i]);
}

/*
 * A group led by the tracepoint, as perf opens it: the leader fires while a
 * member is being scheduled, and then reads and stops that member.
 */
TEST_F(traced, leads_a_group)
{
	struct perf_event_attr attr, member = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	char id[32];
	struct group_count group;
	struct one_count count;
	int leader, sibling, other;
	unsigned int i;

	ASSERT_TRUE(run_on(0));
	ASSERT_TRUE(read_line(TRACEFS "/events/rpmu/schedule/id", id, sizeof(id)));
	attr = counting(PERF_TYPE_TRACEPOINT, atoi(id));
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_RAW | PERF_SAMPLE_TIME;
	attr.read_format = READ_GROUP;
	attr.exclude_kernel = 0;
	leader = perf_open_self(&attr, -1);
	ASSERT_LE(0, leader) TH_LOG("%m");
	member.disabled = 0;
	sibling = perf_open_self(&member, leader);
	ASSERT_LE(0, sibling) TH_LOG("%m");
	member.disabled = 1;
	other = perf_open_self(&member, -1);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	/* The leader stops the group after 50 samples. */
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_REFRESH, 50));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, ioctl(other, PERF_EVENT_IOC_ENABLE, 0));
		ASSERT_EQ(0, ioctl(other, PERF_EVENT_IOC_DISABLE, 0));
	}
	ASSERT_LT(0, read(leader, &group, sizeof(group)));
	EXPECT_EQ(2, group.nr);
	/* The tracepoint may have fired before the limit was set. */
	EXPECT_LE(50, group.event[0].value);
	EXPECT_GE(60, group.event[0].value);
	counted_loop(other, 0, 1000000);
	ASSERT_TRUE(read_one(other, &count));
	EXPECT_LE(LOOP_BRANCHES(1000000), count.value);
	EXPECT_GE(LOOP_BRANCHES(1000000) + 10000, count.value);
	close(other);
	close(sibling);
	close(leader);
}

TEST_HARNESS_MAIN
