// SPDX-License-Identifier: GPL-2.0
/*
 * Repeats one operation on events, to be measured by `make bench`.
 *
 *	bench-task OPERATION [TIMES]
 *
 * Runs on CPU 0. bench_mark.ko, which is loaded meanwhile, writes the marks in
 * the emulated PMU's report: around a function of the perf core, or at calls of
 * getppid(), which bracket other operations. Operations that measure shares or
 * errors print them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "bench_util.h"

#define MAX_PER_TASK	7

/* Events that use every counter of the CPU. */
static const struct {
	__u32 type;
	__u64 config;
} intel_events[] = {
	/* four general-purpose counters, three fixed ones */
	{ PERF_TYPE_RAW, 0x00c4 }, { PERF_TYPE_RAW, 0x01c4 },
	{ PERF_TYPE_RAW, 0x08c4 }, { PERF_TYPE_RAW, 0x20c4 },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES },
}, amd_events[] = {
	/* six counters */
	{ PERF_TYPE_RAW, 0x00c2 }, { PERF_TYPE_RAW, 0x00c3 },
	{ PERF_TYPE_RAW, 0x00c4 }, { PERF_TYPE_RAW, 0x00c8 },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
};

#define LENGTH(array)	((int)(sizeof(array) / sizeof(*(array))))

/* Opens events for all counters except the last @spare ones. */
static void open_all(int *fd, bool inherit, int spare)
{
	int i, events = is_amd() ? LENGTH(amd_events) : LENGTH(intel_events);

	for (i = 0; i < events - spare; i++) {
		struct perf_event_attr attr;

		if (is_amd())
			attr = counting(amd_events[i].type, amd_events[i].config);
		else
			attr = counting(intel_events[i].type, intel_events[i].config);
		attr.disabled = 0;
		attr.inherit = inherit;
		fd[i] = must_open(&attr, 0);
	}
}

/*
 * Lets two tasks alternate on the CPU by sending a byte to and fro. The second
 * one gets @name, if not NULL, so that its switches are not marked.
 */
static void ping_pong(int times, const char *name)
{
	int to[2], fro[2], i;
	char byte = 0;
	pid_t child;

	if (pipe(to) || pipe(fro))
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child && name)
		prctl(PR_SET_NAME, name);
	for (i = 0; i < times; i++) {
		if (child ? write(to[1], &byte, 1) != 1 || read(fro[0], &byte, 1) != 1 :
			    read(to[0], &byte, 1) != 1 || write(fro[1], &byte, 1) != 1)
			die("a pipe");
	}
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
}

/* Switches between this task, which has events, and another one without events. */
static void op_switch(int times)
{
	int fd[MAX_PER_TASK];

	open_all(fd, false, 0);
	ping_pong(times, "other");
}

/*
 * Switches a task whose two events are equal to events of the CPU. There are
 * counters for all four, but rpmu counts the task's events on the CPU's counters.
 */
static void op_switch_riding(int times)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct perf_event_attr attr;

		if (is_amd())
			attr = counting(amd_events[i].type, amd_events[i].config);
		else
			attr = counting(intel_events[i].type, intel_events[i].config);
		attr.disabled = 0;
		if (perf_open(&attr, -1, 0, -1, 0) < 0)
			die("perf_event_open");
		must_open(&attr, 0);
	}
	ping_pong(times, "other");
}

/* Opens a group of slots and four metrics. */
static void open_metrics(int *fd)
{
	static const __u64 config[] = { 0x0400, 0x8000, 0x8100, 0x8200, 0x8300 };
	int i;

	for (i = 0; i < LENGTH(config); i++) {
		struct perf_event_attr attr = counting(PERF_TYPE_RAW, config[i]);

		attr.disabled = 0;
		attr.read_format = PERF_FORMAT_GROUP;
		fd[i] = perf_open(&attr, 0, -1, i ? fd[0] : -1, 0);
		if (fd[i] < 0)
			die("perf_event_open");
	}
}

static void op_switch_metrics(int times)
{
	int fd[MAX_PER_TASK];

	open_metrics(fd);
	ping_pong(times, "other");
}

static void op_read_metrics(int times)
{
	int i, fd[MAX_PER_TASK];
	__u64 values[MAX_PER_TASK];

	open_metrics(fd);
	for (i = 0; i < times; i++)
		if (read(fd[0], values, sizeof(values)) < 0)
			die("read");
}

#define BRANCH_STACK	(PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER)
#define CALL_STACK	(PERF_SAMPLE_BRANCH_CALL_STACK | PERF_SAMPLE_BRANCH_USER | \
			 PERF_SAMPLE_BRANCH_NO_FLAGS | PERF_SAMPLE_BRANCH_NO_CYCLES)

/* Switches a task whose event has branch stacks, and a period too long for a sample. */
static void switch_with(__u64 branches, int times)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, 0x00c4);

	attr.disabled = 0;
	attr.sample_period = 1ULL << 40;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = branches;
	must_open(&attr, 0);
	ping_pong(times, "other");
}

static void op_switch_branches(int times)
{
	switch_with(BRANCH_STACK, times);
}

static void op_switch_call_stack(int times)
{
	switch_with(CALL_STACK, times);
}

static void op_clones(int times)
{
	int fd[MAX_PER_TASK];

	open_all(fd, true, 0);
	ping_pong(times, NULL);
}

/*
 * Rotates events that stay on their counters. All counters are in use, one of
 * them by a pinned event of the CPU. Another group of the CPU needs that
 * counter and never gets it, so the perf core rotates: it removes the task's
 * events and schedules them again.
 */
static void op_rotate_same(int times)
{
	struct perf_event_attr attr = counting(PERF_TYPE_HARDWARE,
					       is_amd() ? PERF_COUNT_HW_INSTRUCTIONS :
							  PERF_COUNT_HW_REF_CPU_CYCLES);
	/* AMD's counters are all alike: a group of six needs all of them. */
	int i, leader = -1, fd[MAX_PER_TASK], group = is_amd() ? LENGTH(amd_events) : 1;

	open_all(fd, false, 1);
	attr.disabled = 0;
	attr.pinned = 1;
	if (perf_open(&attr, -1, 0, -1, 0) < 0)
		die("perf_event_open");
	attr.pinned = 0;
	for (i = 0; i < group; i++) {
		fd[i] = perf_open(&attr, -1, 0, leader, 0);
		if (fd[i] < 0)
			die("perf_event_open");
		leader = fd[0];
	}
	spin_ms(times * 4);
}

/* Rotates eight events on the four general-purpose counters, or AMD's six. */
static void op_rotate_other(int times)
{
	static const __u64 config[] = { 0x00c4, 0x01c4, 0x02c4, 0x08c4, 0x10c4,
					0x20c4, 0x40c4, 0x00c5 };
	unsigned int i;

	for (i = 0; i < sizeof(config) / sizeof(*config); i++) {
		struct perf_event_attr attr = counting(PERF_TYPE_RAW, config[i]);

		attr.disabled = 0;
		must_open(&attr, 0);
	}
	spin_ms(times * 4);
}

static void op_ioctl(int times)
{
	int i, fd[MAX_PER_TASK];

	open_all(fd, false, 0);
	for (i = 0; i < times; i++) {
		ioctl(fd[3], PERF_EVENT_IOC_DISABLE, 0);
		ioctl(fd[3], PERF_EVENT_IOC_ENABLE, 0);
	}
}

/* Disables and enables an event while a pinned event is open. */
static void op_ioctl_pinned(int times)
{
	struct perf_event_attr attr = counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);

	attr.pinned = 1;
	if (perf_open(&attr, 0, -1, -1, 0) < 0)
		die("perf_event_open");
	op_ioctl(times);
}

/* A sample is the time between two calls of getppid(). */
#define SAMPLES		8

static void op_pipe(int times)
{
	int to[2], fro[2], i, fd[MAX_PER_TASK];
	char byte = 0;
	pid_t child;

	open_all(fd, true, 0);
	if (pipe(to) || pipe(fro))
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child)
		prctl(PR_SET_NAME, "other");
	for (i = 0; i <= times * SAMPLES; i++) {
		if (child && i % times == 0)
			getppid();
		if (child ? write(to[1], &byte, 1) != 1 || read(fro[0], &byte, 1) != 1 :
			    read(to[0], &byte, 1) != 1 || write(fro[1], &byte, 1) != 1)
			die("a pipe");
	}
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
}

static void op_open(int times)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, 0x00c4);
	int i;

	for (i = 0; i < times; i++)
		close(must_open(&attr, 0));
}

static void op_read(int times)
{
	int i, fd[MAX_PER_TASK];

	open_all(fd, false, 0);
	for (i = 0; i < times; i++)
		read_value(fd[3]);
}

/* Reads the event through its page with RDPMC, without a system call. */
static inline __u64 read_by_page(struct perf_event_mmap_page *page)
{
	__u32 seq, index, lo, hi, width;
	__u64 enabled;
	__s64 count;

	do {
		seq = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		enabled = page->time_enabled;
		index = page->index;
		count = page->offset;
		if (index) {
			width = 64 - page->pmc_width;
			asm volatile("rdpmc"
				     : "=a" (lo), "=d" (hi)
				     : "c" (index - 1));
			count += (__s64)(((__u64)hi << 32 | lo) << width) >> width;
		}
		asm volatile("" ::: "memory");
	} while (__atomic_load_n(&page->lock, __ATOMIC_RELAXED) != seq);
	return count + enabled;
}

static void op_user_read(int times)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, 0x00c4);
	struct perf_event_mmap_page *page;
	int i, sample, fd;
	__u64 sum = 0;

	attr.disabled = 0;
	fd = must_open(&attr, 0);
	page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		die("mmap");
	if (!page->cap_user_rdpmc) {
		errno = EOPNOTSUPP;
		die("cap_user_rdpmc");
	}
	for (sample = 0; sample <= SAMPLES; sample++) {
		getppid();
		for (i = 0; i < times; i++)
			sum += read_by_page(page);
	}
	if (!sum)
		die("nothing was read");
}

/* Opens two events with a frequency, whose rate the tick checks. */
static void op_tick(int times)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, 0x00c4);
	int i;

	for (i = 0; i < 2; i++) {
		attr.type = i ? PERF_TYPE_HARDWARE : PERF_TYPE_RAW;
		attr.config = i ? PERF_COUNT_HW_INSTRUCTIONS : 0x00c4;
		attr.disabled = 0;
		attr.freq = 1;
		attr.sample_freq = 50;
		attr.sample_type = PERF_SAMPLE_IP;
		must_open(&attr, 0);
	}
	spin_ms(times * 4);
}

/* The default sample contents of perf record. */
#define SAMPLED	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD)

/*
 * Executes 2,000,000 branches for each of @times measurements. If @on, an event
 * overflows every 10,000 branches; its samples have @branches and the precision
 * @precise. A pass of the loop has four branches.
 */
static void sample(int times, bool on, __u64 branches, int precise)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, 0x00c4);
	int i;

	attr.disabled = 0;
	attr.sample_period = 10000;
	attr.sample_type = PERF_SAMPLE_IP;
	if (branches) {
		attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
		attr.branch_sample_type = branches;
	}
	if (precise) {
		attr.precise_ip = precise;
		/* Records are not buffered, because they do not contain the cgroup. */
		attr.sample_type = SAMPLED | PERF_SAMPLE_CGROUP;
	}
	if (on)
		must_open(&attr, 0);
	for (i = 0; i < times; i++) {
		getppid();
		branch_loop(2500UL * 200);
	}
	getppid();
}

static void op_sample_off(int times)
{
	sample(times, false, 0, 0);
}

static void op_sample_on(int times)
{
	sample(times, true, 0, 0);
}

static void op_sample_branches(int times)
{
	sample(times, true, BRANCH_STACK, 0);
}

static void op_sample_precise(int times)
{
	sample(times, true, 0, 2);
}

/*
 * Samples one event beside @riders equal events that only count. rpmu counts all
 * of them on the counter of the one that samples, which alone causes PMIs.
 */
static void sample_with_riders(int times, int riders)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, 0x00c4);

	attr.disabled = 0;
	/* Pinned and opened first, so that it has a counter on either driver. */
	attr.pinned = 1;
	attr.sample_period = 10000;
	attr.sample_type = PERF_SAMPLE_IP;
	must_open(&attr, 0);
	attr = counting_user(PERF_TYPE_RAW, 0x00c4);
	attr.disabled = 0;
	while (riders--)
		must_open(&attr, 0);
	sample(times, false, 0, 0);
}

static void op_sample_1_rider(int times)
{
	sample_with_riders(times, 1);
}

static void op_sample_8_riders(int times)
{
	sample_with_riders(times, 8);
}

static void op_sample_64_riders(int times)
{
	/* One of the counter's 64 events is the one that samples. */
	sample_with_riders(times, 63);
}

/* Disables and enables a precise event with 200 buffered records. */
static void op_records(int times)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, 0x00c4);
	int i, fd;

	attr.disabled = 0;
	attr.sample_period = 10000;
	attr.sample_type = SAMPLED;
	attr.precise_ip = 2;
	fd = must_open(&attr, 0);
	for (i = 0; i < times; i++) {
		branch_loop(2500UL * 200);
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	}
}

/* Opens the group CONFIG[+CONFIG...]; it is pinned if it has a leading p. */
static int open_group(char *config)
{
	bool pinned = *config == 'p';
	int leader = -1;

	config += pinned;
	do {
		struct perf_event_attr attr =
			counting(PERF_TYPE_RAW, strtoull(config, &config, 0));
		int fd;

		attr.disabled = leader < 0;
		attr.pinned = pinned && leader < 0;
		fd = perf_open(&attr, 0, -1, leader, 0);
		if (fd < 0)
			die("perf_event_open");
		if (leader < 0)
			leader = fd;
	} while (*config++ == '+');
	return leader;
}

/* shares MS GROUP...: prints each group's share of the time. */
static void op_shares(int ms, char **group)
{
	struct one_count count;
	int i, nr = 0, fd[32];

	for (; *group && nr < 32; group++, nr++)
		fd[nr] = open_group(*group);
	for (i = 0; i < nr; i++)
		ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0);
	spin_ms(ms);
	for (i = 0; i < nr; i++)
		ioctl(fd[i], PERF_EVENT_IOC_DISABLE, 0);
	for (i = 0; i < nr; i++) {
		if (!read_one(fd[i], &count))
			die("read");
		printf("%s%.4f", i ? " " : "", percent_running(&count) / 100.0);
	}
	printf("\n");
}

/*
 * phases: prints the relative errors of the scaled counts of ten events on four
 * counters. The work changes its type every few milliseconds. The true counts
 * are measured with the same work and no more events than counters.
 */
#define EVENTS	10

static void phases(void)
{
	int i;

	for (i = 0; i < 40; i++) {
		branch_loop(40000 + 7000 * (i % 5));
		memory_loop(50000 + 9000 * (i % 7));
	}
}

/* Counts the work with @nr events at a time, and scales the counts like perf. */
static void count_phases(const __u64 *config, int nr, double *counted)
{
	struct one_count count;
	int i, fd[EVENTS];

	for (i = 0; i < nr; i++) {
		struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config[i]);

		fd[i] = must_open(&attr, 0);
	}
	for (i = 0; i < nr; i++)
		ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0);
	phases();
	for (i = 0; i < nr; i++)
		ioctl(fd[i], PERF_EVENT_IOC_DISABLE, 0);
	for (i = 0; i < nr; i++) {
		if (!read_one(fd[i], &count))
			die("read");
		counted[i] = count.running ?
			(double)count.value * count.enabled / count.running : 0;
		close(fd[i]);
	}
}

static void op_phases(void)
{
	static const __u64 config[EVENTS] = {
		0x00c4, 0x01c4, 0x02c4, 0x08c4, 0x10c4, 0x20c4, 0x00c5,
		0x01c2, 0x02c2, 0x010e,
	};
	double truth[EVENTS], seen[EVENTS];
	int i;

	for (i = 0; i < EVENTS; i += 4)
		count_phases(config + i, i + 4 < EVENTS ? 4 : EVENTS - i, truth + i);
	count_phases(config, EVENTS, seen);
	for (i = 0; i < EVENTS; i++)
		printf("%s%.5f", i ? " " : "", seen[i] / truth[i] - 1.0);
	printf("\n");
}

int main(int argc, char **argv)
{
	int times = argc > 2 ? atoi(argv[2]) : 20;
	static const struct {
		const char *name;
		void (*run)(int times);
	} op[] = {
		{ "switch", op_switch },	{ "clones", op_clones },
		{ "switch-riding", op_switch_riding },
		{ "switch-metrics", op_switch_metrics },
		{ "read-metrics", op_read_metrics },
		{ "switch-branches", op_switch_branches },
		{ "switch-call-stack", op_switch_call_stack },
		{ "sample-branches", op_sample_branches },
		{ "sample-precise", op_sample_precise },
		{ "records", op_records },
		{ "rotate-same", op_rotate_same },
		{ "rotate-other", op_rotate_other },
		{ "ioctl", op_ioctl },		{ "ioctl-pinned", op_ioctl_pinned },
		{ "open", op_open },
		{ "read", op_read },		{ "user-read", op_user_read },
		{ "tick", op_tick },		{ "pipe", op_pipe },
		{ "sample-off", op_sample_off }, { "sample-on", op_sample_on },
		{ "sample-1-rider", op_sample_1_rider },
		{ "sample-8-riders", op_sample_8_riders },
		{ "sample-64-riders", op_sample_64_riders },
	};
	unsigned int i;

	if (argc < 2 || !run_on(0))
		return 2;
	if (!strcmp(argv[1], "shares")) {
		op_shares(times, argv + 3);
		return 0;
	}
	if (!strcmp(argv[1], "phases")) {
		op_phases();
		return 0;
	}
	for (i = 0; i < sizeof(op) / sizeof(*op); i++) {
		if (!strcmp(argv[1], op[i].name)) {
			op[i].run(times);
			return 0;
		}
	}
	return 2;
}
