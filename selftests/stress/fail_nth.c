// SPDX-License-Identifier: GPL-2.0
/*
 * Fails the first allocation of an operation, then the second one, and so on,
 * until a run has no more allocations to fail. See "fail-nth" in the kernel's
 * Documentation/fault-injection/.
 *
 *	fail_nth load FILE	load rpmu on top of the built-in driver, while
 *				another process opens an event as soon as it can
 *	fail_nth open		open events and groups of several types, including
 *				precise ones and ones with call stacks
 *
 * With two more numbers, FIRST and STEP, it starts with the allocation FIRST and
 * advances by STEP allocations: STEP machines share the work.
 *
 * Events must count exactly after each run. The exit status is 4 if the kernel
 * has no fault injection.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#include "../perf_util.h"

#define FAIL_NTH	"/proc/self/fail-nth"
#define LOOPS		1000UL
/* Longer than any load takes. */
#define HANG_S		10

/* The allocations that fail: the first one, and the distance between two of them. */
static unsigned int first = 1, step = 1;

static bool fail_nth(unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return write_line(FAIL_NTH, text);
}

/* Returns whether the failure was injected, and disarms the injection. */
static bool injected(void)
{
	char text[16] = "";
	bool yes = read_line(FAIL_NTH, text, sizeof(text)) && !atoi(text);

	fail_nth(0);
	return yes;
}

static bool counts(unsigned int n)
{
	__u64 count;

	if (counts_exactly(LOOPS, &count))
		return true;
	if (count == NO_COUNT)
		printf("# failure %u: then perf_event_open: %s\n", n, strerror(errno));
	else
		printf("# failure %u: then %llu instructions, %llu expected\n", n, count,
		       LOOP_INSTRUCTIONS(LOOPS));
	return false;
}

/* Returns whether loading may fail with the error when an allocation fails. */
static bool of_memory(int err)
{
	return err == ENOMEM || err == EFAULT || err == EBADMSG || err == ENOEXEC;
}

/*
 * The opener is a process that opens an event while rpmu loads, and keeps it
 * open until told to close it. A load that fails after that waits for the event
 * to be closed; the opener closes it after HANG_S, so that the test can report
 * this.
 */
enum { IDLE, TRIES, HAS_EVENT, HAS_GIVEN_UP };

static struct opener {
	int wanted;	/* an event is wanted; written by the test */
	int state;	/* written by the opener */
} *opener;

static int get(const int *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void set(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

static __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

/*
 * Waits until the built-in driver's PMU has been removed, because an event on
 * it would prevent rpmu from loading; then retries until there is a PMU again.
 */
static int open_in_between(void)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	int fd = -1;

	while (get(&opener->wanted) && !access(CPU_PMU, F_OK))
		usleep(100);
	/* The pause leaves the time to the load: the guest's CPUs run in turn. */
	while (get(&opener->wanted) && (fd = perf_open_self(&attr, -1)) < 0)
		usleep(100);
	return fd;
}

static void keep_opening(void)
{
	__u64 start;
	int fd;

	for (;;) {
		while (!get(&opener->wanted))
			usleep(100);
		set(&opener->state, TRIES);
		fd = open_in_between();
		if (fd >= 0) {
			set(&opener->state, HAS_EVENT);
			start = now_ms();
			while (get(&opener->wanted) && now_ms() - start < HANG_S * 1000)
				usleep(100);
			if (get(&opener->wanted)) {
				set(&opener->state, HAS_GIVEN_UP);
				_exit(1);
			}
			close(fd);
		}
		set(&opener->state, IDLE);
	}
}

static bool start_opener(void)
{
	opener = mmap(NULL, sizeof(*opener), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (opener == MAP_FAILED)
		return false;
	switch (fork_helper()) {
	case -1:
		return false;
	case 0:
		keep_opening();
	}
	return true;
}

/* Waits up to HANG_S for the opener to be in the state; returns whether it is. */
static bool opener_is(int state)
{
	__u64 start = now_ms();

	while (get(&opener->state) != state && now_ms() - start < HANG_S * 1000)
		usleep(100);
	return get(&opener->state) == state;
}

/* Unloads rpmu; an event that has just been closed may still keep it for a while. */
static bool unload(void)
{
	unsigned int tries;

	for (tries = 0; tries < 500; tries++) {
		if (!syscall(SYS_delete_module, "rpmu", O_NONBLOCK))
			return true;
		usleep(10000);
	}
	return false;
}

static int load(const char *path)
{
	const char *parameters = getenv("RPMU_PARAMETERS") ?: "";
	unsigned int n, total = 0, failed = 0, beside = 0;
	int file = open(path, O_RDONLY | O_CLOEXEC), err;
	bool hit = true;

	if (!start_opener()) {
		printf("# opener: %s\n", strerror(errno));
		return 1;
	}
	for (n = first; hit; n += step) {
		if (!fail_nth(n))
			return 4;
		set(&opener->wanted, true);
		err = syscall(SYS_finit_module, file, parameters, 0) ? errno : 0;
		beside += get(&opener->state) == HAS_EVENT;
		hit = injected();
		total += hit;
		if (get(&opener->state) == HAS_GIVEN_UP) {
			printf("# failure %u: %s, once an open event was closed\n", n,
			       err ? strerror(err) : "loaded");
			return 1;
		}
		if (!err && !opener_is(HAS_EVENT)) {
			printf("# failure %u: rpmu is loaded, but no event can be opened\n", n);
			return 1;
		}
		set(&opener->wanted, false);
		if (!opener_is(IDLE)) {
			printf("# failure %u: the opener does not close its event\n", n);
			return 1;
		}
		if (err) {
			failed++;
			if (on_rpmu()) {
				printf("# failure %u: %s, but rpmu is loaded\n", n, strerror(err));
				return 1;
			}
		}
		if (err && (!hit || !of_memory(err))) {
			printf("# failure %u%s: %s\n", n, hit ? "" : " not hit", strerror(err));
			return 1;
		}
		if (!counts(n))
			return 1;
		if (!err && !unload()) {
			printf("# failure %u: unload: %s\n", n, strerror(errno));
			return 1;
		}
		if (!(total % 50)) {
			printf("# %u\n", n);
			fflush(stdout);
		}
	}
	printf("# %u allocations, %u times loading was refused, %u times an event was open\n",
	       total, failed, beside);
	return !failed;
}

static int open_group(const struct perf_event_attr *attr, unsigned int size)
{
	int fds[MAX_GROUP], err = 0;
	unsigned int i;

	for (i = 0; i < size && !err; i++) {
		fds[i] = perf_open_self(attr, i ? fds[0] : -1);
		if (fds[i] < 0)
			err = errno;
	}
	/* If there was an error, the last event has not been opened. */
	for (i -= !!err; i; i--)
		close(fds[i - 1]);
	return err;
}

static int open_all(void)
{
	struct perf_event_attr attrs[] = {
		counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS),
		counting(PERF_TYPE_RAW, RAW_BRANCHES),
		counting(PERF_TYPE_RAW, 0x1b7),
		counting(PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1D),
		counting(PERF_TYPE_RAW, RAW_BRANCHES),
		counting(PERF_TYPE_RAW, RAW_BRANCHES),
	};
	unsigned int size, n, total = 0, failed = 0;
	size_t kind;
	bool hit;
	int err;

	attrs[1].inherit = 1;
	attrs[2].config1 = 0x10001;
	/*
	 * A precise event, and an event with call stacks, for which each task
	 * has memory.
	 */
	attrs[4].sample_period = 100003;
	attrs[4].sample_type = PERF_SAMPLE_IP;
	attrs[4].precise_ip = 2;
	attrs[5].sample_period = 100003;
	attrs[5].sample_type = PERF_SAMPLE_BRANCH_STACK;
	attrs[5].branch_sample_type = PERF_SAMPLE_BRANCH_CALL_STACK | PERF_SAMPLE_BRANCH_USER;
	for (kind = 0; kind < sizeof(attrs) / sizeof(*attrs); kind++) {
		for (size = 1; size <= 4; size += 3) {
			int usual = open_group(&attrs[kind], size);

			if (usual)
				printf("# kind %zu, %u events: %s\n", kind, size, strerror(usual));
			for (n = first, hit = true; hit; n += step) {
				if (!fail_nth(n))
					return 4;
				err = open_group(&attrs[kind], size);
				hit = injected();
				total += hit;
				failed += err == ENOMEM;
				if (err != usual && !(hit && err == ENOMEM)) {
					printf("# kind %zu, %u events, failure %u: %s\n", kind,
					       size, n, strerror(err));
					return 1;
				}
				if (!counts(n))
					return 1;
			}
		}
	}
	printf("# %u allocations, %u times opening was refused\n", total, failed);
	return !failed;
}

int main(int argc, char **argv)
{
	bool loads = argc > 2 && !strcmp(argv[1], "load");
	bool opens = argc > 1 && !strcmp(argv[1], "open");
	char **numbers = argv + 2 + loads;

	if (argc == 4 + loads) {
		first = atoi(numbers[0]);
		step = atoi(numbers[1]);
	} else if (argc != 2 + loads) {
		step = 0;
	}
	if (!first || !step || !(loads || opens)) {
		fprintf(stderr, "usage: fail_nth load FILE [FIRST STEP] | open [FIRST STEP]\n");
		return 2;
	}
	return loads ? load(argv[2]) : open_all();
}
