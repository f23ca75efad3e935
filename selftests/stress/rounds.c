// SPDX-License-Identifier: GPL-2.0
/*
 * Repeats loading or CPU hotplug in a single program: on the debug kernel, a
 * shell would spend most of the time on starting programs.
 *
 *	rounds loads N FILE	load FILE, which takes the PMU over from the
 *				built-in driver, and unload it, N times, while
 *				tasks with software events run
 *	rounds hotplug N	take a CPU offline and online again, N times,
 *				while events count on all CPUs and a task with
 *				more events than counters moves between them
 *
 * A known loop must count exactly after each step; then the exit status is 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "kselftest.h"
#include "../perf_util.h"

#define LOOPS		20000UL
#define SHOWN_EACH	50
#define MAX_CPUS	16

static struct perf_event_attr enabled(__u32 type, __u64 config)
{
	struct perf_event_attr attr = counting(type, config);

	attr.disabled = 0;
	return attr;
}

static void close_all(const int *fds, unsigned int n)
{
	while (n--)
		if (fds[n] >= 0)
			close(fds[n]);
}

/* Opens and closes software events, because events on rpmu would keep it loaded. */
static void compute(void)
{
	static const __u64 configs[] = {
		PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_PAGE_FAULTS,
	};
	int fds[ARRAY_SIZE(configs)];
	unsigned int i;
	void *page;

	for (;;) {
		for (i = 0; i < ARRAY_SIZE(configs); i++) {
			struct perf_event_attr attr = enabled(PERF_TYPE_SOFTWARE, configs[i]);

			fds[i] = perf_open_self(&attr, -1);
		}
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		branch_loop(20000);
		munmap(page, 4096);
		usleep(30000);
		close_all(fds, ARRAY_SIZE(configs));
	}
}

/*
 * Opens events on every CPU, and leaves counters free for the loop that must
 * count exactly.
 */
static void count_cpus(void)
{
	static const __u64 configs[] = { 0x0c4, 0x1c4 };
	int fds[MAX_CPUS * ARRAY_SIZE(configs)];
	unsigned int cpu, i, n;

	for (;;) {
		for (cpu = n = 0; cpu < MAX_CPUS; cpu++) {
			for (i = 0; i < ARRAY_SIZE(configs); i++) {
				struct perf_event_attr attr = enabled(PERF_TYPE_RAW, configs[i]);

				fds[n++] = perf_open(&attr, -1, cpu, -1, 0);
			}
		}
		usleep(50000);
		close_all(fds, n);
	}
}

/* Opens more events than counters in a task that runs on any CPU. */
static void take_turns(void)
{
	static const __u64 configs[] = { 0x0c4, 0x1c4, 0x2c4, 0x4c4, 0x8c4, 0x20c4 };
	int fds[ARRAY_SIZE(configs)];
	unsigned int i;

	for (;;) {
		for (i = 0; i < ARRAY_SIZE(configs); i++) {
			struct perf_event_attr attr = enabled(PERF_TYPE_RAW, configs[i]);

			fds[i] = perf_open_self(&attr, -1);
		}
		for (i = 0; i < 20; i++) {
			branch_loop(20000);
			usleep(10000);
		}
		close_all(fds, ARRAY_SIZE(configs));
	}
}

static void start(void (*beside)(void))
{
	if (!fork_helper())
		beside();
}

static bool failed(const char *what)
{
	printf("# %s: %s\n", what, strerror(errno));
	return false;
}

static bool counts(const char *after)
{
	__u64 count;

	if (counts_exactly(LOOPS, &count))
		return true;
	if (count == NO_COUNT)
		return failed(after);
	printf("# after %s: %llu instructions, %llu expected\n", after, count,
	       LOOP_INSTRUCTIONS(LOOPS));
	return false;
}

static bool load(const char *path)
{
	return load_module(path, getenv("RPMU_PARAMETERS") ?: "") || failed("loading");
}

static bool unload(void)
{
	unsigned int tries;

	/* An event that has just been closed may still exist. */
	for (tries = 0; tries < 500; tries++) {
		if (unload_module("rpmu"))
			return true;
		usleep(10000);
	}
	return failed("unloading");
}

static bool set_online(unsigned int cpu, bool on)
{
	return set_cpu_online(cpu, on) ||
	       failed(on ? "taking a CPU online" : "taking a CPU offline");
}

int main(int argc, char **argv)
{
	const char *file = argc == 4 && !strcmp(argv[1], "loads") ? argv[3] : NULL;
	unsigned int cpus = sysconf(_SC_NPROCESSORS_CONF), cpu;
	unsigned long rounds, round;

	if (!file && (argc != 3 || strcmp(argv[1], "hotplug"))) {
		fprintf(stderr, "usage: rounds loads N FILE | hotplug N\n");
		return 2;
	}
	rounds = strtoul(argv[2], NULL, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (file) {
		start(compute);
		start(compute);
	} else {
		start(count_cpus);
		start(take_turns);
	}
	for (round = 1; round <= rounds; round++) {
		cpu = round % (cpus - 1 ?: 1) + 1;
		if (file ? !load(file) || !counts("loading") || !unload() || !counts("unloading") :
			   !set_online(cpu, false) || !counts("a CPU went offline") ||
			   !set_online(cpu, true) || !counts("a CPU came online"))
			return 1;
		if (round % SHOWN_EACH == 0)
			printf("# %lu of %lu\n", round, rounds);
	}
	printf("# %lu %s\n", rounds, file ? "loads and unloads" : "times off and on line");
	return 0;
}
