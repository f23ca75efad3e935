// SPDX-License-Identifier: GPL-2.0
/*
 * Tests sampling: the number of samples and their addresses, without loss or
 * double counts; periods, frequencies, limits and signals. Tests with exact
 * figures use instructions, whose number is known. On hardware a sample may be
 * after the loop; the tests allow for one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define PAGE		4096UL
#define LOOPS		500000UL

#define ALONE		__attribute__((__noipa__))

/* Executes 2 instructions in each iteration, one of them a branch, between known addresses. */
static ALONE void hot_loop(unsigned long n)
{
	asm volatile(".globl hot_start, hot_end\n"
		     "hot_start:\n\t"
		     "dec %[n]\n\t"
		     "jnz hot_start\n"
		     "hot_end:"
		     : [n] "+r" (n) : : "cc");
}

extern const char hot_start[], hot_end[];

static bool is_hot(__u64 ip)
{
	return ip >= (unsigned long)hot_start && ip < (unsigned long)hot_end;
}

/* The sample format of these tests, unless they say otherwise. */
#define SAMPLE_TYPE	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD | \
			 PERF_SAMPLE_READ)

struct sample {
	struct perf_event_header header;
	__u64 ip;
	__u32 pid, tid;
	__u64 period;
	__u64 value;
};

/* The records in a buffer. */
struct seen {
	unsigned int samples;
	unsigned int hot;	/* in hot_loop() */
	unsigned int user;	/* at user level, according to the record */
	unsigned int throttled, unthrottled, lost, others;
	__u64 periods;		/* sum of the samples' periods */
	__u64 last;		/* period of the last sample */
	__u64 value;		/* count in the last sample */
};

struct ring {
	int fd;
	unsigned long size;
	struct perf_event_mmap_page *page;
};

static bool map_ring(struct ring *ring, int fd, unsigned long pages)
{
	ring->fd = fd;
	ring->size = pages * PAGE;
	ring->page = map_buffer(fd, pages);
	return ring->page != MAP_FAILED;
}

static void unmap_ring(struct ring *ring)
{
	munmap(ring->page, ring->size + PAGE);
	close(ring->fd);
}

/* Consumes all records in the buffer, none of which crosses its end. */
static struct seen look(struct ring *ring)
{
	struct seen seen = {};
	__u64 head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	const struct sample *sample;
	__u64 tail = ring->page->data_tail;

	for (; tail < head; tail += sample->header.size) {
		sample = (void *)((char *)ring->page + PAGE + tail % ring->size);
		switch (sample->header.type) {
		case PERF_RECORD_SAMPLE:
			seen.samples++;
			seen.hot += is_hot(sample->ip);
			seen.user += (sample->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
				     PERF_RECORD_MISC_USER;
			/* The last record may end where the buffer does. */
			if (sample->header.size < offsetof(struct sample, value))
				break;
			seen.periods += sample->period;
			seen.last = sample->period;
			if (sample->header.size >= sizeof(*sample))
				seen.value = sample->value;
			break;
		case PERF_RECORD_THROTTLE:
			seen.throttled++;
			break;
		case PERF_RECORD_UNTHROTTLE:
			seen.unthrottled++;
			break;
		case PERF_RECORD_LOST:
		case PERF_RECORD_LOST_SAMPLES:
			seen.lost++;
			break;
		default:
			seen.others++;
		}
	}
	ring->page->data_tail = tail;
	return seen;
}

static struct perf_event_attr sampling_user(__u64 config, __u64 period)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config);

	attr.sample_period = period;
	attr.sample_type = SAMPLE_TYPE;
	attr.read_format = 0;
	return attr;
}

static __u64 value_of(int fd)
{
	__u64 value[4];

	return read(fd, value, sizeof(value)) > 0 ? value[0] : NO_COUNT;
}

static void enable(int fd)
{
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void disable(int fd)
{
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
}

static int last_cpu(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) - 1;
}

/* Lifts the limits on samples; the teardown restores them. */
FIXTURE(sampling)
{
	struct sample_limits limits;
	struct ring ring;
};

FIXTURE_SETUP(sampling)
{
	ASSERT_TRUE(lift_sample_limits(&self->limits));
	ASSERT_TRUE(run_on(last_cpu()));
}

FIXTURE_TEARDOWN(sampling)
{
	EXPECT_TRUE(put_back_sample_limits(&self->limits));
}

#define OPEN(attr, pages) \
	ASSERT_TRUE(map_ring(&self->ring, perf_open_self(attr, -1), pages))

/* On this CPU only: otherwise inherited events cannot have a buffer. */
#define OPEN_HERE(attr, pages) \
	ASSERT_TRUE(map_ring(&self->ring, perf_open(attr, 0, last_cpu(), -1, 0), pages))

/* One sample per period, all of them in the loop. */
static void fixed_period(struct __test_metadata *_metadata,
			 struct _test_data_sampling *self, __u64 config,
			 __u64 period)
{
	struct perf_event_attr attr = sampling_user(config, period);
	struct seen seen;
	__u64 count;

	OPEN(&attr, 64);
	enable(self->ring.fd);
	hot_loop(LOOPS);
	disable(self->ring.fd);
	count = value_of(self->ring.fd);
	seen = look(&self->ring);
	TH_LOG("%llu counted, %u samples, %u of them hot", count, seen.samples, seen.hot);
	EXPECT_LE(LOOPS, count);
	EXPECT_GE(1, count / period - seen.samples + 1);
	EXPECT_GE(1, seen.samples - seen.hot);
	EXPECT_EQ(seen.samples, seen.user);
	EXPECT_EQ(seen.samples * period, seen.periods);
	EXPECT_EQ(0, seen.lost + seen.throttled + seen.others);
	unmap_ring(&self->ring);
}

TEST_F(sampling, fixed_period_on_a_fixed_counter)
{
	fixed_period(_metadata, self, RAW_INSTRUCTIONS, 10007);
}

TEST_F(sampling, fixed_period_on_a_general_counter)
{
	fixed_period(_metadata, self, RAW_BRANCHES, 5003);
}

/* An event that is stopped and restarted continues in the middle of its period. */
TEST_F(sampling, fixed_period_across_system_calls)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 1009);
	struct seen seen;

	OPEN(&attr, 64);
	counted_syscalls(self->ring.fd, 0, 20000, SYS_sched_yield, NULL);
	seen = look(&self->ring);
	EXPECT_EQ(SYSCALLS_INSTRUCTIONS(20000), value_of(self->ring.fd));
	EXPECT_GE(2, SYSCALLS_INSTRUCTIONS(20000) / 1009 - seen.samples + 1);
	EXPECT_EQ(0, seen.lost);
	unmap_ring(&self->ring);
}

/*
 * 100,000 overflows: the periods and the remainder add up to the exact count.
 * run-tests checks that the kernel has logged no unknown NMI.
 */
TEST_F(sampling, hundred_thousand_overflows)
{
	const unsigned long loops = 50000000;
	const __u64 period = 1000;
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, period);
	unsigned long before = pmis();
	struct seen seen;
	__u64 count;

	OPEN(&attr, 2048);
	counted_loop(self->ring.fd, 0, loops);
	count = value_of(self->ring.fd);
	seen = look(&self->ring);
	TH_LOG("%u samples, %lu PMIs", seen.samples, pmis() - before);
	EXPECT_EQ(LOOP_INSTRUCTIONS(loops), count);
	EXPECT_LE(100000, seen.samples);
	EXPECT_LE(seen.samples, pmis() - before);
	EXPECT_EQ(seen.samples * period, seen.periods);
	EXPECT_GT(period, count - seen.periods);
	EXPECT_EQ(0, seen.lost + seen.throttled);
	unmap_ring(&self->ring);
}

/* All counters that can count user mode without the kernel overflow at the same time. */
TEST_F(sampling, all_counters_at_once)
{
	unsigned int i, n = 1;
	struct perf_event_attr attr;
	struct ring ring[33];
	struct seen seen;

	ASSERT_GE(32, gp_counters());
	while (n <= gp_counters() && may_count_user_alone(n - 1))
		n++;
	if (!fixed_counters())
		n--;
	for (i = 0; i < n; i++) {
		/* The last event uses the fixed counter, if there is one. */
		attr = sampling_user(i < n - 1 ? RAW_BRANCHES : RAW_INSTRUCTIONS,
				     i < n - 1 ? 500 : 1000);
		attr.disabled = i == 0;
		ASSERT_TRUE(map_ring(&ring[i], perf_open_self(&attr, i ? ring[0].fd : -1),
				     64));
	}
	counted_loop(ring[0].fd, PERF_IOC_FLAG_GROUP, LOOPS);
	for (i = 0; i < n; i++) {
		seen = look(&ring[i]);
		EXPECT_GE(1, LOOPS / 500 - seen.samples + 1) {
			TH_LOG("event %u: %u samples", i, seen.samples);
		}
		EXPECT_EQ(0, seen.lost + seen.throttled);
	}
	EXPECT_EQ(LOOP_INSTRUCTIONS(LOOPS), value_of(ring[n - 1].fd));
	for (i = n; i--;)
		unmap_ring(&ring[i]);
}

/*
 * Kernel mode only. A sample may be right after the return from a system call
 * if the overflow was right before it, but no sample is in the loop.
 */
TEST_F(sampling, kernel_only)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 20011);
	struct seen seen;

	/*
	 * The period must not be shorter, because the instructions of the NMI
	 * handler also count.
	 */
	attr.exclude_user = 1;
	attr.exclude_kernel = 0;
	OPEN(&attr, 256);
	enable(self->ring.fd);
	hot_loop(LOOPS);
	counted_syscalls(self->ring.fd, 0, 20000, SYS_getppid, NULL);
	seen = look(&self->ring);
	TH_LOG("%u samples, %u at user level, %u hot", seen.samples, seen.user, seen.hot);
	EXPECT_LT(20, seen.samples);
	EXPECT_GT(seen.samples / 2, seen.user);
	EXPECT_GE(seen.samples / 20, seen.hot);
	unmap_ring(&self->ring);
}

/* The frequency is reached within half a second, and maintained. */
TEST_F(sampling, frequency)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 0);
	__u64 start;
	struct seen seen;
	double s;
	int half;

	attr.freq = 1;
	attr.sample_freq = 1000;
	OPEN(&attr, 256);
	enable(self->ring.fd);
	for (half = 0; half < 2; half++) {
		start = now_ns();
		do {
			hot_loop(10000);
			s = (now_ns() - start) / 1e9;
		} while (s < 0.5);
		seen = look(&self->ring);
	}
	disable(self->ring.fd);
	TH_LOG("%u samples in %.2f s, period %llu", seen.samples, s, seen.last);
	EXPECT_LT(800 * s, seen.samples);
	EXPECT_GT(1200 * s, seen.samples);
	EXPECT_EQ(0, seen.lost);
	unmap_ring(&self->ring);
}

/* One of 100002 instructions is a branch. */
static ALONE void straight_loop(unsigned long n)
{
	asm volatile("1:\n\t"
		     ".fill 100000, 1, 0x90\n\t"
		     "dec %[n]\n\t"
		     "jnz 1b"
		     : [n] "+r" (n) : : "cc");
}

/*
 * A frequent event becomes rare. With its old period there would be no more
 * samples, so the tick lowers the period and the rest of the current one.
 */
TEST_F(sampling, frequency_of_an_event_that_becomes_rare)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_HARDWARE,
						    PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
	__u64 start;
	struct seen frequent, rare;
	unsigned long n;

	attr.sample_type = SAMPLE_TYPE;
	attr.read_format = 0;
	attr.freq = 1;
	attr.sample_freq = 1000;
	OPEN(&attr, 256);
	enable(self->ring.fd);
	hot_loop(50 * LOOPS);
	frequent = look(&self->ring);
	start = now_ns();
	n = 0;
	do {
		straight_loop(20);
		n += 20;
	} while (now_ns() - start < 400000000ULL);
	disable(self->ring.fd);
	rare = look(&self->ring);
	TH_LOG("period %llu, then %lu branches, %u samples and period %llu", frequent.last, n,
	       rare.samples, rare.last);
	/* The old period gives no sample with this number of branches. */
	ASSERT_LT(n, frequent.last);
	EXPECT_LT(20, rare.samples);
	EXPECT_GT(frequent.last / 50, rare.last);
	EXPECT_LE(50 * LOOPS + n, value_of(self->ring.fd));
	EXPECT_GE(n, value_of(self->ring.fd) - 50 * LOOPS - n);
	unmap_ring(&self->ring);
}

/* A new period takes effect at once. */
TEST_F(sampling, period_changed)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 1ULL << 40);
	__u64 period[] = { 50021, 10007, 100003 };
	struct seen seen;
	unsigned int i;

	OPEN(&attr, 64);
	enable(self->ring.fd);
	hot_loop(LOOPS);
	EXPECT_EQ(0, look(&self->ring).samples);
	for (i = 0; i < ARRAY_SIZE(period); i++) {
		ASSERT_EQ(0, ioctl(self->ring.fd, PERF_EVENT_IOC_PERIOD, &period[i]));
		hot_loop(LOOPS);
		seen = look(&self->ring);
		EXPECT_GE(1, 2 * LOOPS / period[i] - seen.samples + 1) {
			TH_LOG("period %llu: %u samples", period[i], seen.samples);
		}
		EXPECT_EQ(period[i], seen.last);
	}
	unmap_ring(&self->ring);
}

TEST_F(sampling, invalid_periods)
{
	static const struct {
		__u64 config, period;
		bool from_haswell;	/* Haswell's limits; Nehalem has only that of 32 */
	} wrong[] = {
		{ RAW_INSTRUCTIONS, 0, false },
		{ RAW_INSTRUCTIONS, 1ULL << 63, false },
		{ INTEL_RAW_BRANCHES, 1, false },	/* BTS on Intel's CPUs */
		{ INTEL_RAW_BRANCHES, 31, true },
		{ 0x01c0, 127, true },
	};
	struct perf_event_attr attr;
	unsigned int i;
	__u64 period;
	int fd;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (wrong[i].period == 1 && is_amd())
			continue;
		attr = sampling_user(wrong[i].config, 100000);
		fd = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd);
		period = wrong[i].period;
		if (!wrong[i].from_haswell || cpu_model() == MODEL_HASWELL) {
			EXPECT_EQ(-1, ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
			EXPECT_EQ(EINVAL, errno);
		}
		period = 128;
		EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
		close(fd);
	}
}

static unsigned int signals, hang_ups;

static void on_io(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&hang_ups, info->si_code == POLL_HUP, __ATOMIC_RELAXED);
}

static bool send_signals(int fd)
{
	struct sigaction action = { .sa_sigaction = on_io, .sa_flags = SA_SIGINFO };

	signals = 0;
	hang_ups = 0;
	return !sigaction(SIGIO, &action, NULL) && !fcntl(fd, F_SETSIG, SIGIO) &&
	       !fcntl(fd, F_SETOWN, getpid()) && !fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
}

/* A limited number of samples, with a signal for each; then the event is disabled. */
TEST_F(sampling, refresh)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 100003);
	struct seen seen;
	__u64 first;
	int round;

	attr.wakeup_events = 1;
	OPEN(&attr, 64);
	ASSERT_TRUE(send_signals(self->ring.fd));
	for (round = 1; round <= 3; round++) {
		ASSERT_EQ(0, ioctl(self->ring.fd, PERF_EVENT_IOC_REFRESH, 3));
		hot_loop(LOOPS);
		first = value_of(self->ring.fd);
		seen = look(&self->ring);
		EXPECT_EQ(3, seen.samples);
		EXPECT_EQ(3 * round, __atomic_load_n(&signals, __ATOMIC_RELAXED));
		EXPECT_EQ(round, __atomic_load_n(&hang_ups, __ATOMIC_RELAXED));
		/* The event has stopped at the end of the last period. */
		EXPECT_LE(round * 3 * attr.sample_period, first);
		EXPECT_GE(1000 * round, first - round * 3 * attr.sample_period);
		hot_loop(LOOPS);
		EXPECT_EQ(first, value_of(self->ring.fd));
		EXPECT_EQ(0, look(&self->ring).samples);
	}
	unmap_ring(&self->ring);
}

static unsigned int traps;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	__atomic_fetch_add(&traps, 1, __ATOMIC_RELAXED);
}

TEST_F(sampling, sigtrap)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 20011);

	ASSERT_EQ(0, sigaction(SIGTRAP, &action, NULL));
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	traps = 0;
	OPEN(&attr, 64);
	enable(self->ring.fd);
	hot_loop(LOOPS);
	disable(self->ring.fd);
	EXPECT_GE(1, value_of(self->ring.fd) / 20011 -
		     __atomic_load_n(&traps, __ATOMIC_RELAXED) + 1);
	EXPECT_LT(40, __atomic_load_n(&traps, __ATOMIC_RELAXED));
	unmap_ring(&self->ring);
}

/* poll() returns at the first sample. */
TEST_F(sampling, wake_up)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 100003);
	struct pollfd waits = { .events = POLLIN };
	int status;
	pid_t pid;

	attr.wakeup_events = 1;
	attr.inherit = 1;
	attr.sample_type &= ~PERF_SAMPLE_READ;
	attr.disabled = 0;
	OPEN_HERE(&attr, 64);
	waits.fd = self->ring.fd;
	pid = fork_helper();
	ASSERT_LE(0, pid);
	if (pid == 0) {
		for (;;)
			hot_loop(LOOPS);
	}
	EXPECT_EQ(1, poll(&waits, 1, 60000));
	EXPECT_EQ(POLLIN, waits.revents);
	EXPECT_LT(0, look(&self->ring).samples);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	unmap_ring(&self->ring);
}

/* A child's samples are in the parent's buffer, with the child's id. */
TEST_F(sampling, inherited)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 10007);
	const struct sample *sample;
	unsigned int children = 0;
	int status, i;
	pid_t pid;

	attr.inherit = 1;
	attr.disabled = 0;
	/* No PERF_SAMPLE_READ, which older kernels refuse for inherited events. */
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD;
	OPEN_HERE(&attr, 64);
	for (i = 0; i < 3; i++) {
		pid = fork_helper();
		ASSERT_LE(0, pid);
		if (pid == 0) {
			hot_loop(LOOPS);
			_exit(0);
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
	}
	disable(self->ring.fd);
	while ((sample = take_sample(self->ring.page))) {
		if (is_hot(sample->ip)) {
			EXPECT_NE(getpid(), (pid_t)sample->pid);
			children++;
		}
	}
	EXPECT_GE(6, 3 * 2 * LOOPS / 10007 - children + 3);
	unmap_ring(&self->ring);
}

/* A leader's sample has the group's counts at the same moment. */
TEST_F(sampling, group_leader)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 10007);
	struct perf_event_attr sibling = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct perf_event_attr page_faults =
		counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	const struct {
		struct perf_event_header header;
		__u64 nr, leader, branches, faults;
	} *sample;
	__u64 previous[2] = { 0 };
	unsigned int samples = 0;

	attr.sample_type = PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_GROUP;
	sibling.disabled = 0;
	sibling.read_format = PERF_FORMAT_GROUP;
	page_faults.disabled = 0;
	page_faults.read_format = PERF_FORMAT_GROUP;
	OPEN(&attr, 64);
	ASSERT_LE(0, perf_open_self(&sibling, self->ring.fd));
	ASSERT_LE(0, perf_open_self(&page_faults, self->ring.fd));
	counted_loop(self->ring.fd, PERF_IOC_FLAG_GROUP, LOOPS);
	while ((sample = take_sample(self->ring.page))) {
		samples++;
		ASSERT_EQ(3, sample->nr);
		/* Two instructions, one of them a branch; the first may be half done. */
		EXPECT_GE(2, 2 * (sample->branches - previous[1]) -
			     (sample->leader - previous[0]) + 1);
		previous[0] = sample->leader;
		previous[1] = sample->branches;
	}
	EXPECT_GE(1, LOOP_INSTRUCTIONS(LOOPS) / 10007 - samples + 1);
	unmap_ring(&self->ring);
}

/* Compiled with frame pointers, without inlining and tail calls. */
#define FRAME	__attribute__((__noipa__, \
			       __optimize__("no-omit-frame-pointer")))

static FRAME void callee(void)
{
	hot_loop(LOOPS);
	asm volatile("");
}

static FRAME void caller(void)
{
	callee();
	asm volatile("");
}

/* Callchains and registers. */
TEST_F(sampling, callchain_and_registers)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 10007);
	const struct {
		struct perf_event_header header;
		__u64 ip, nr, chain[];
	} *sample;
	unsigned int samples = 0, good = 0;
	const __u64 *regs;

	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER;
	attr.exclude_callchain_kernel = 1;
	attr.sample_regs_user = 1 << 8;		/* PERF_REG_X86_IP */
	OPEN(&attr, 64);
	enable(self->ring.fd);
	caller();
	disable(self->ring.fd);
	while ((sample = take_sample(self->ring.page))) {
		if (!is_hot(sample->ip))
			continue;
		samples++;
		regs = &sample->chain[sample->nr];
		/*
		 * hot_loop() has no frame, so the next entry is the caller of
		 * its caller.
		 */
		good += sample->nr >= 3 && sample->chain[0] == PERF_CONTEXT_USER &&
			sample->chain[1] == sample->ip &&
			sample->chain[2] > (unsigned long)caller &&
			sample->chain[2] < (unsigned long)caller + 64 &&
			regs[0] == PERF_SAMPLE_REGS_ABI_64 && regs[1] == sample->ip;
	}
	EXPECT_LT(90, samples);
	EXPECT_EQ(samples, good);
	unmap_ring(&self->ring);
}

/*
 * Throttling: the event and its group stop until the next tick, and another event
 * continues to count. On rpmu, both events of the group stop at the same time.
 */
TEST_F(sampling, throttled)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 1009);
	struct perf_event_attr sibling = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct perf_event_attr other = sibling;
	struct seen seen;
	int fd, alone;
	__u64 branches;

	ASSERT_TRUE(write_line(CPU_PERCENT, "25"));
	ASSERT_TRUE(write_line(SAMPLE_RATE, "2500"));	/* 10 a tick at 250 Hz */
	sibling.disabled = 0;
	OPEN(&attr, 512);
	fd = perf_open_self(&sibling, self->ring.fd);
	alone = perf_open_self(&other, -1);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, alone);
	enable(alone);
	ioctl(self->ring.fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	hot_loop(50 * LOOPS);
	ioctl(self->ring.fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	disable(alone);
	seen = look(&self->ring);
	branches = value_of(fd);
	TH_LOG("%u samples, throttled %u times and unthrottled %u times", seen.samples,
	       seen.throttled, seen.unthrottled);
	EXPECT_LT(0, seen.throttled);
	EXPECT_GE(1, seen.throttled - seen.unthrottled);
	EXPECT_LE(5 * seen.throttled, seen.samples);
	EXPECT_GT(50 * LOOPS / 1009, seen.samples);
	EXPECT_EQ(0, seen.lost);
	/* The group was stopped; the other event was not. */
	EXPECT_GT(50 * LOOPS, branches);
	EXPECT_LE(50 * LOOPS, value_of(alone));
	if (on_rpmu()) {
		/* One instruction more or less for each start and stop. */
		EXPECT_GE(4 * seen.throttled + 100,
			  2 * branches - value_of(self->ring.fd) + 2 * seen.throttled + 50);
	}
	close(alone);
	close(fd);
	unmap_ring(&self->ring);
}

/*
 * The driver reports the duration of its interrupts, and the kernel lowers the
 * sample rate.
 */
TEST_F(sampling, interrupts_that_take_long)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 10007);
	char rate[32];

	/* At this rate and percentage, an interrupt may take 100 ns. */
	ASSERT_TRUE(write_line(CPU_PERCENT, "1"));
	ASSERT_TRUE(write_line(SAMPLE_RATE, "100000"));
	OPEN(&attr, 64);
	enable(self->ring.fd);
	hot_loop(5 * LOOPS);
	disable(self->ring.fd);
	ASSERT_TRUE(read_line(SAMPLE_RATE, rate, sizeof(rate)));
	EXPECT_GT(100000, atoi(rate));
	EXPECT_LT(0, look(&self->ring).samples);
	unmap_ring(&self->ring);
}

/* Twice as many samples as fit into the buffer: lost samples are counted. */
TEST_F(sampling, full_buffer)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 1009);
	__u64 value[2];
	struct seen seen;

	attr.read_format = PERF_FORMAT_LOST;
	attr.sample_type = PERF_SAMPLE_IP;
	OPEN(&attr, 1);
	enable(self->ring.fd);
	hot_loop(LOOPS);
	disable(self->ring.fd);
	ASSERT_EQ(sizeof(value), read(self->ring.fd, value, sizeof(value)));
	seen = look(&self->ring);
	EXPECT_GE(1, value[0] / 1009 - (seen.samples + value[1]) + 1);
	EXPECT_LT(100, seen.samples);
	EXPECT_LT(100, value[1]);
	unmap_ring(&self->ring);
}

/* Kernel and user mode on a CPU: samples of every task there, without loss. */
TEST_F(sampling, whole_cpu)
{
	struct perf_event_attr attr = sampling_user(RAW_INSTRUCTIONS, 100003);
	struct seen seen;
	__u64 count;
	int i;

	attr.exclude_kernel = 0;
	ASSERT_TRUE(map_ring(&self->ring, perf_open(&attr, -1, last_cpu(), -1, 0), 256));
	enable(self->ring.fd);
	for (i = 0; i < 20000; i++)
		syscall(SYS_getppid);
	hot_loop(LOOPS);
	disable(self->ring.fd);
	count = value_of(self->ring.fd);
	seen = look(&self->ring);
	EXPECT_LT(0, seen.user);
	EXPECT_GT(seen.samples, seen.user);
	/* An event may be lost each time the counter is restarted. */
	EXPECT_GE(3, count / 100003 - seen.samples + 1) {
		TH_LOG("%llu counted, %u samples", count, seen.samples);
	}
	unmap_ring(&self->ring);
}

TEST_HARNESS_MAIN
