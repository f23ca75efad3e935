// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the events behind the ids of PERF_TYPE_HW_CACHE. The run on the
 * built-in driver, which is first, saves its result for each id and the event's
 * count of a known loop; rpmu must give the same results and counts. The loop
 * has more stores than loads, so that events which could be confused have
 * different counts on the emulated PMU.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "perf_util.h"

#define KEPT	"/tmp/built-in-cache-events"
#define LOOPS	200000UL

/* One more than there are of each: 8 caches, 4 operations, 3 results. */
#define CACHES		(PERF_COUNT_HW_CACHE_MAX + 1)
#define OPERATIONS	(PERF_COUNT_HW_CACHE_OP_MAX + 1)
#define RESULTS		(PERF_COUNT_HW_CACHE_RESULT_MAX + 1)
#define IDS		(CACHES * OPERATIONS * RESULTS)

struct answer {
	int error;	/* errno of perf_event_open() */
	__u64 count;
};

static __u64 id_config(unsigned int id)
{
	return id % CACHES | id / CACHES % OPERATIONS << 8 |
	       id / CACHES / OPERATIONS << 16;
}

static struct answer ask(__u64 config)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_HW_CACHE, config);
	struct answer answer = {};
	struct one_count count;
	int fd;

	/* The driver sets this field itself, whatever the user writes. */
	attr.config1 = ~0ULL;
	fd = perf_open_self(&attr, -1);
	if (fd < 0) {
		answer.error = errno;
		return answer;
	}
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	memory_loop(LOOPS);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read_one(fd, &count) && count.running == count.enabled)
		answer.count = count.value;
	else
		answer.count = NO_COUNT;
	close(fd);
	return answer;
}

/*
 * Returns whether two counts are the same, with a tolerance: a context switch
 * may lose a fraction of an event and a few TLB entries, and the number of page
 * walks depends on the memory that a driver has touched.
 */
static bool same_count(__u64 a, __u64 b)
{
	return (a < b ? b - a : a - b) <= 16 + a / 1000;
}

/*
 * On family 15h, NODE is an event of the northbridge, which has a separate PMU:
 * amd_get_event_constraints_f15h() gives it no counter. In a kernel without
 * CONFIG_PERF_EVENTS_AMD_BRS, amd_brs_init() returns 0 on any CPU
 * (arch/x86/events/perf_event.h), so another function replaces
 * amd_get_event_constraints_f15h() and accepts the event.
 */
static bool only_built_in_takes(__u64 config)
{
	return is_amd() && cpu_family() == 0x15 &&
	       (config & 0xff) == PERF_COUNT_HW_CACHE_NODE;
}

TEST(every_id)
{
	struct answer answer[IDS], built_in[IDS];
	unsigned int id, events = 0;
	FILE *file;

	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	for (id = 0; id < IDS; id++) {
		answer[id] = ask(id_config(id));
		events += !answer[id].error;
		EXPECT_NE(NO_COUNT, answer[id].count) {
			TH_LOG("id %#llx does not run", id_config(id));
		}
	}
	TH_LOG("%u of %u ids are events", events, IDS);
	ASSERT_LT(10, events);

	if (!on_rpmu()) {
		file = fopen(KEPT, "w");
		ASSERT_NE(NULL, file);
		EXPECT_EQ(IDS, fwrite(answer, sizeof(*answer), IDS, file));
		EXPECT_EQ(0, fclose(file));
		return;
	}
	file = fopen(KEPT, "r");
	if (!file)
		SKIP(return, "there was no built-in driver to compare with");
	EXPECT_EQ(IDS, fread(built_in, sizeof(*built_in), IDS, file));
	fclose(file);
	for (id = 0; id < IDS; id++) {
		if (only_built_in_takes(id_config(id))) {
			EXPECT_NE(0, answer[id].error);
			continue;
		}
		EXPECT_EQ(built_in[id].error, answer[id].error) {
			TH_LOG("id %#llx", id_config(id));
		}
		EXPECT_TRUE(same_count(built_in[id].count, answer[id].count)) {
			TH_LOG("id %#llx: built-in %llu, rpmu %llu",
			       id_config(id), built_in[id].count,
			       answer[id].count);
		}
	}
}

/* Bits above the three bytes of an id are ignored. */
TEST(upper_bits)
{
	EXPECT_EQ(0, ask(0x00000005).error);
	EXPECT_EQ(0, ask(0xff000005).error);
	EXPECT_EQ(EINVAL, ask(0x000000ff).error);
	EXPECT_EQ(EINVAL, ask(0x0000ff00).error);
	EXPECT_EQ(EINVAL, ask(0x00ff0000).error);
}

TEST_HARNESS_MAIN
