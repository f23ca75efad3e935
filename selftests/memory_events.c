// SPDX-License-Identifier: GPL-2.0
/*
 * Tests that events of loads, stores, branches and page walks follow the
 * workload. Loads, stores and branches are exact, and the types of loads (hits
 * and misses) add up to all loads. The event codes are those of Haswell to
 * Comet Lake. The expected figures are those of the emulated PMU
 * (selftests/vpmu/README.md), except for the walks.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define RAW_LOADS		0x81d0	/* MEM_{UOPS,INST}_RETIRED.ALL_LOADS */
#define RAW_STORES		0x82d0	/* ….ALL_STORES */
#define RAW_L1_HIT		0x01d1	/* MEM_LOAD_{UOPS_,}RETIRED.L1_HIT */
#define RAW_L1_MISS		0x08d1	/* ….L1_MISS */
#define RAW_FB_HIT		0x40d1	/* ….HIT_LFB, FB_HIT */
#define RAW_LOAD_WALKS		0x0108	/* DTLB_LOAD_MISSES.MISS_CAUSES_A_WALK */
#define RAW_STORE_WALKS		0x0149	/* DTLB_STORE_MISSES.MISS_CAUSES_A_WALK */
#define RAW_REPLACEMENT		0x0151	/* L1D.REPLACEMENT */
#define RAW_LLC_MISS		0x412e	/* LONGEST_LAT_CACHE.MISS: 8 in 4096 loads and stores */

#define CMASK(n)		((__u64)(n) << 24)
#define INV			0x800000ULL
#define EDGE			0x040000ULL

#define NOT_EMULATED		"not the emulated PMU, whose figures these are"

#define N			100000UL
/*
 * Tolerance: each of two counts may be off by one at its start and at its end,
 * cycles lose their fraction whenever the driver writes the counter, and a tick
 * may cause a context switch.
 */
#define ROUNDING		8

/* A loop without memory accesses. */
static void register_loop(unsigned long n)
{
	asm volatile("1: dec %[n]\n\tjnz 1b" : [n] "+r" (n) : : "cc");
}

static void touch(char *page, unsigned long pages, bool write)
{
	for (unsigned long i = 0; i < pages; i++) {
		if (write)
			asm volatile("movb $1, %0" : "=m" (page[i * 4096]));
		else
			asm volatile("testb $1, %0" : : "m" (page[i * 4096]) : "cc");
	}
}

static int event(__u64 config)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config);

	return perf_open_self(&attr, -1);
}

/* Returns the count of a loop with a single event. */
static long long of_loop(__u64 config, void (*loop)(unsigned long), unsigned long n)
{
	long long value;
	int fd = event(config);

	if (fd < 0)
		return -1;
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	loop(n);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	value = read_value(fd);
	close(fd);
	return value;
}

/* Returns the same count, less the code around the loop. */
static long long of_n(__u64 config, void (*loop)(unsigned long), unsigned long n)
{
	return of_loop(config, loop, n + 1) - of_loop(config, loop, 1);
}

FIXTURE(memory)
{
};

FIXTURE_SETUP(memory)
{
	if (!is_haswell_or_skylake() && cpu_model() != MODEL_BROADWELL)
		SKIP(return, "the events of this CPU are not known to the test");
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
}

FIXTURE_TEARDOWN(memory)
{
}

TEST_F(memory, loads_are_exact)
{
	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	EXPECT_EQ(LOOP_LOADS * N, of_n(RAW_LOADS, memory_loop, N));
	EXPECT_EQ(LOOP_LOADS * 2 * N, of_n(RAW_LOADS, memory_loop, 2 * N));
	EXPECT_EQ(0, of_n(RAW_LOADS, register_loop, N));
}

TEST_F(memory, stores_are_exact)
{
	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	EXPECT_EQ(LOOP_STORES * N, of_n(RAW_STORES, memory_loop, N));
	EXPECT_EQ(LOOP_STORES * 2 * N, of_n(RAW_STORES, memory_loop, 2 * N));
	EXPECT_EQ(0, of_n(RAW_STORES, register_loop, N));
}

TEST_F(memory, branches_are_exact)
{
	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	EXPECT_EQ(N, of_n(RAW_BRANCHES, register_loop, N));
	EXPECT_EQ(2 * N, of_n(RAW_BRANCHES, register_loop, 2 * N));
}

TEST_F(memory, hits_and_misses_make_all_loads)
{
	long long hits = of_n(RAW_L1_HIT, memory_loop, N);
	long long pending = of_n(RAW_FB_HIT, memory_loop, N);
	long long misses = of_n(RAW_L1_MISS, memory_loop, N);

	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	EXPECT_LT(0, misses);
	EXPECT_LT(misses, hits);
	EXPECT_GE(ROUNDING, llabs(hits + pending + misses - (long long)(LOOP_LOADS * N)));
}

TEST_F(memory, replacements_follow_accesses)
{
	long long one = of_n(RAW_REPLACEMENT, memory_loop, N);
	long long two = of_n(RAW_REPLACEMENT, memory_loop, 2 * N);

	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	EXPECT_LT(0, one);
	EXPECT_GE(ROUNDING, llabs(two - 2 * one));
	EXPECT_GE(ROUNDING, of_n(RAW_REPLACEMENT, register_loop, N));
}

#define ROUNDS			2000
#define LOOPS			100

/*
 * The driver writes counter and event select at each context switch. After every
 * event or two, the task is switched out and in: that must not change the count.
 */
TEST_F(memory, a_rare_event_survives_context_switches)
{
	const long long truth = ROUNDS * LOOPS * (LOOP_LOADS + LOOP_STORES) * 8 / 4096;
	int to[2], from[2], fd, status;
	long long count;
	pid_t child;
	char byte = 0;

	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	ASSERT_EQ(0, pipe(to));
	ASSERT_EQ(0, pipe(from));
	child = fork();
	ASSERT_LE(0, child);
	if (child == 0) {
		close(to[1]);
		while (read(to[0], &byte, 1) == 1 && write(from[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	fd = event(RAW_LLC_MISS);
	ASSERT_LE(0, fd);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < ROUNDS; i++) {
		memory_loop(LOOPS);
		/* The child is on the same CPU, and runs while this task waits. */
		ASSERT_EQ(1, write(to[1], &byte, 1));
		ASSERT_EQ(1, read(from[0], &byte, 1));
	}
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	count = read_value(fd);
	close(fd);
	close(to[1]);
	waitpid(child, &status, 0);
	TH_LOG("%lld in %d rounds, %lld expected", count, ROUNDS, truth);
	/* The code around the loop also loads and stores. */
	EXPECT_LE(truth * 95, count * 100);
	EXPECT_GE(truth * 125, count * 100);
}

/* Returns the page walks for a new mapping, each page of which is accessed once. */
static long long walks(struct __test_metadata *_metadata, __u64 config, unsigned long pages,
		       bool write)
{
	int fd = event(config);
	long long value;
	char *map;

	ASSERT_LE(0, fd);
	map = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	/* Small pages */
	madvise(map, pages * 4096, MADV_NOHUGEPAGE);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	touch(map, pages, write);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	value = read_value(fd);
	munmap(map, pages * 4096);
	close(fd);
	return value;
}

TEST_F(memory, walks_follow_pages)
{
	long long loads[2], stores[2];

	for (int i = 0; i < 2; i++) {
		unsigned long pages = 1000UL << i;

		loads[i] = walks(_metadata, RAW_LOAD_WALKS, pages, false);
		stores[i] = walks(_metadata, RAW_STORE_WALKS, pages, true);
		/* One walk that faults, and one of the retry. */
		EXPECT_LE(pages, loads[i]);
		EXPECT_LE(pages, stores[i]);
	}
	EXPECT_LT(loads[0] + 900, loads[1]);
	EXPECT_LT(stores[0] + 900, stores[1]);
}

/* Cycles with at least CMASK events, and the other cycles. */
TEST_F(memory, counter_mask_and_inversion)
{
	long long cycles = of_n(0x3c, memory_loop, N);
	long long loads = of_n(RAW_LOADS | CMASK(1), memory_loop, N);
	long long without = of_n(RAW_LOADS | CMASK(1) | INV, memory_loop, N);

	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	EXPECT_EQ(LOOP_LOADS * N, loads);
	EXPECT_EQ(0, of_n(RAW_LOADS | CMASK(9), memory_loop, N));
	EXPECT_GE(ROUNDING, llabs(loads + without - cycles));
	EXPECT_GE(ROUNDING, llabs(of_n(RAW_LOADS | CMASK(9) | INV, memory_loop, N) - cycles));
	EXPECT_GE(ROUNDING, llabs(of_n(0x3c | CMASK(1), memory_loop, N) - cycles));
	EXPECT_EQ(0, of_n(0x3c | CMASK(2), memory_loop, N));
	/* The condition begins at most as often as it holds. */
	EXPECT_GE(loads, of_n(RAW_LOADS | CMASK(1) | EDGE, memory_loop, N));
}

/* All CPUs at the same time, each with a separate event. */
TEST_F(memory, all_cpus_at_once)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int status;

	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	for (int cpu = 0; cpu < cpus; cpu++) {
		pid_t child = fork();

		ASSERT_LE(0, child);
		if (child == 0) {
			bool right = run_on(cpu);

			for (int i = 0; i < 20; i++) {
				right &= of_n(RAW_LOADS, memory_loop, N) == LOOP_LOADS * N;
				right &= of_n(RAW_INSTRUCTIONS, memory_loop, N) == 8 * N;
			}
			_exit(!right);
		}
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		ASSERT_LT(0, wait(&status));
		EXPECT_EQ(0, status);
	}
}

TEST_HARNESS_MAIN
