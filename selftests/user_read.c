// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user-space reads with RDPMC: a task gets the same counts as from
 * read(), only while it has an event mapped, and never another task's counts.
 * If RDPMC would give a wrong count, the page has no index.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define RDPMC		CPU_PMU "/rdpmc"
#define LOOPS		100000UL
#define ROUNDS		50
/* The result of an RDPMC that faulted. */
#define FAULT		(~0ULL)

static sigjmp_buf back;
static __u64 tried;

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

/* Returns the counter's value, or FAULT. */
static __u64 try_rdpmc(__u32 counter)
{
	signal(SIGSEGV, on_fault);
	if (!sigsetjmp(back, 1))
		tried = rdpmc(counter);
	else
		tried = FAULT;
	signal(SIGSEGV, SIG_DFL);
	return tried;
}

static inline __u64 read_mapped(const struct perf_event_mmap_page *page)
{
	__u32 index;

	return read_page(page, &index);
}

/* Reads like libperf: with RDPMC if the page has an index, otherwise with read(). */
static __u64 read_by_page(const struct perf_event_mmap_page *page, int fd)
{
	__u32 index;
	__u64 count = read_page(page, &index);

	return page->cap_user_rdpmc && index ? count : read_value(fd);
}

static struct perf_event_mmap_page *map_page(int fd)
{
	return mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
}

static void unmap_page(struct perf_event_mmap_page *page)
{
	munmap(page, sysconf(_SC_PAGESIZE));
}

/* 2 * n instructions. */
static inline void loop(unsigned long n)
{
	asm volatile("1:\n\tdec %[n]\n\tjnz 1b" : [n] "+r" (n) : : "cc");
}

static int open_user(__u64 config)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config);

	attr.disabled = 0;
	return perf_open_self(&attr, -1);
}

/* Branches, which have no fixed counter: the I-th event on a general-purpose counter. */
static int open_branches(unsigned int i)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);

	attr.disabled = 0;
	attr.exclude_kernel = may_count_user_alone(i);
	return perf_open_self(&attr, -1);
}

FIXTURE(user_read)
{
	char mode[16];
};

FIXTURE_SETUP(user_read)
{
	ASSERT_TRUE(read_line(RDPMC, self->mode, sizeof(self->mode)));
	ASSERT_STREQ("1", self->mode);
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
}

FIXTURE_TEARDOWN(user_read)
{
	write_line(RDPMC, self->mode);
}

TEST_F(user_read, page)
{
	struct perf_event_mmap_page *page;
	int fd = open_user(RAW_BRANCHES);

	ASSERT_LE(0, fd);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	EXPECT_EQ(1, !!page->cap_user_rdpmc);
	EXPECT_EQ(counter_width(), page->pmc_width);
	EXPECT_NE(0, page->index);
	EXPECT_GE(gp_counters(), page->index);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(0, page->index);
	EXPECT_EQ(read_value(fd), page->offset);
}

/* Between two reads, the count is the loop plus a constant. */
TEST_F(user_read, exact)
{
	struct perf_event_mmap_page *page;
	__u64 start, none, one, two;
	int fd = open_user(RAW_INSTRUCTIONS), round;

	ASSERT_LE(0, fd);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	for (round = 0; round < ROUNDS; round++) {
		start = read_mapped(page);
		loop(1);
		none = read_mapped(page) - start;
		start = read_mapped(page);
		loop(1 + LOOPS);
		one = read_mapped(page) - start;
		start = read_mapped(page);
		loop(1 + 2 * LOOPS);
		two = read_mapped(page) - start;
		/* A scheduler tick may cause a second read. */
		if (one - none == 2 * LOOPS && two - none == 4 * LOOPS)
			break;
	}
	EXPECT_EQ(2 * LOOPS, one - none);
	EXPECT_EQ(4 * LOOPS, two - none);
}

/*
 * The count of a read() is between the counts of the user-space reads before
 * and after it.
 */
TEST_F(user_read, same_as_read)
{
	struct perf_event_mmap_page *page;
	__u64 before, by_read, after, last = 0;
	int fd = open_user(RAW_INSTRUCTIONS), round;

	ASSERT_LE(0, fd);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	for (round = 0; round < ROUNDS; round++) {
		before = read_mapped(page);
		by_read = read_value(fd);
		after = read_mapped(page);
		EXPECT_LE(last, before);
		EXPECT_LT(before, by_read);
		EXPECT_LT(by_read, after);
		EXPECT_GT(before + 10000, by_read);
		last = after;
		if (round % 10 == 0) {
			ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
			EXPECT_EQ(read_value(fd), read_mapped(page));
			ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		}
		/* The built-in driver discards the sign of the value that it has read. */
		if (round % 10 == 5 && on_rpmu()) {
			ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESET, 0));
			last = 0;
		}
	}
}

/* Mapping an event updates its page with the count at its last read. */
TEST_F(user_read, mapped_after_read)
{
	struct perf_event_mmap_page *page;
	__u64 by_read, after;
	int fd = open_user(RAW_INSTRUCTIONS);

	if (!on_rpmu())
		SKIP(return, "the built-in driver discards the sign of the value that it has read");
	ASSERT_LE(0, fd);
	loop(LOOPS);
	by_read = read_value(fd);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	after = read_mapped(page);
	EXPECT_LE(by_read, after);
	EXPECT_GT(by_read + 10000, after);
}

TEST_F(user_read, every_counter)
{
	/* topdown.c tests the fourth fixed counter, which counts slots. */
	static const __u64 fixed[] = { RAW_INSTRUCTIONS, 0x3c, 0x300 };
	unsigned int gp = gp_counters(), nr = gp + fixed_counters(), i, j;
	struct perf_event_mmap_page *page[16];
	__u64 start[16];

	if (nr > gp + ARRAY_SIZE(fixed))
		nr = gp + ARRAY_SIZE(fixed);
	ASSERT_GE(ARRAY_SIZE(page), nr);
	ASSERT_TRUE(own_counters());
	for (i = 0; i < nr; i++) {
		int fd = i < gp ? open_branches(i) : open_user(fixed[i - gp]);

		ASSERT_LE(0, fd);
		page[i] = map_page(fd);
		ASSERT_NE(MAP_FAILED, page[i]);
		EXPECT_NE(0, page[i]->index);
		for (j = 0; j < i; j++)
			EXPECT_NE(page[j]->index, page[i]->index);
	}
	for (i = 0; i < nr; i++)
		start[i] = read_mapped(page[i]);
	loop(LOOPS);
	for (i = 0; i < nr; i++)
		EXPECT_LE(start[i] + LOOPS, read_mapped(page[i]));
}

TEST_F(user_read, only_while_mapped)
{
	struct perf_event_mmap_page *page;
	int fd = open_user(RAW_INSTRUCTIONS);

	ASSERT_LE(0, fd);
	EXPECT_EQ(FAULT, try_rdpmc(0));
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	EXPECT_NE(FAULT, try_rdpmc(0));
	EXPECT_EQ(FAULT, try_rdpmc(17));
	unmap_page(page);
	EXPECT_EQ(FAULT, try_rdpmc(0));
}

TEST_F(user_read, never)
{
	struct perf_event_mmap_page *page, *late;
	int fd = open_user(RAW_INSTRUCTIONS), fd_late;

	ASSERT_LE(0, fd);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	ASSERT_TRUE(write_line(RDPMC, "0"));
	EXPECT_EQ(FAULT, try_rdpmc(0));
	fd_late = open_user(RAW_INSTRUCTIONS);
	ASSERT_LE(0, fd_late);
	late = map_page(fd_late);
	ASSERT_NE(MAP_FAILED, late);
	EXPECT_EQ(0, !!late->cap_user_rdpmc);
	EXPECT_EQ(0, late->index);
	ASSERT_TRUE(write_line(RDPMC, "1"));
	EXPECT_NE(FAULT, try_rdpmc(0));
	unmap_page(page);
	/* The other event does not matter. */
	EXPECT_EQ(FAULT, try_rdpmc(0));
}

TEST_F(user_read, always)
{
	EXPECT_EQ(FAULT, try_rdpmc(0));
	ASSERT_TRUE(write_line(RDPMC, "2"));
	EXPECT_NE(FAULT, try_rdpmc(0));
	ASSERT_TRUE(write_line(RDPMC, "1"));
	EXPECT_EQ(FAULT, try_rdpmc(0));
}

/* A running thread may use RDPMC as soon as another thread has mapped an event. */
static int thread_step;
static __u64 thread_got;

static int step_now(void)
{
	return __atomic_load_n(&thread_step, __ATOMIC_SEQ_CST);
}

static void go_to_step(int step)
{
	__atomic_store_n(&thread_step, step, __ATOMIC_SEQ_CST);
}

static void *busy_thread(void *arg)
{
	int step;

	(void)arg;
	if (!run_on(0))
		return NULL;
	go_to_step(1);
	for (;;) {
		step = step_now();
		if (step == 2 || step == 4) {
			thread_got = try_rdpmc(0);
			go_to_step(step + 1);
		} else if (step == 6) {
			return NULL;
		}
	}
}

static void wait_for_step(int step)
{
	while (step_now() != step)
		usleep(1000);
}

TEST_F(user_read, other_thread)
{
	struct perf_event_mmap_page *page;
	int fd = open_user(RAW_INSTRUCTIONS);
	pthread_t thread;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU only");
	ASSERT_LE(0, fd);
	go_to_step(0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, busy_thread, NULL));
	wait_for_step(1);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	go_to_step(2);
	wait_for_step(3);
	EXPECT_NE(FAULT, thread_got);
	unmap_page(page);
	go_to_step(4);
	wait_for_step(5);
	EXPECT_EQ(FAULT, thread_got);
	go_to_step(6);
	pthread_join(thread, NULL);
}

/* The pipes to and from another task. */
struct other {
	int to;
	int from;
	pid_t pid;
};

/*
 * Executes loops on request, in another task on this CPU, with events on every
 * fixed counter and on @gp general-purpose counters. Exits with 0 if the count of
 * instructions was the same in each round, and those of branches were plausible.
 * Instructions have a fixed counter if there is one, otherwise one of the others.
 */
static void other_task(int to, int from, unsigned int gp, int rounds)
{
	unsigned int i;
	__u64 first = 0, count, last[MAX_GROUP] = {};
	int fd = -1, round, branches[MAX_GROUP];
	char byte = 0;

	if (gp > MAX_GROUP)
		_exit(1);
	if (!fixed_counters())
		gp--;
	for (i = 0; i < gp; i++) {
		/* An event of the CPU may have the first counter. */
		branches[i] = open_branches(i + 1);
		if (branches[i] < 0)
			_exit(2);
	}
	if ((fixed_counters() > 1 && open_user(0x3c) < 0) ||
	    (fixed_counters() > 2 && open_user(0x300) < 0))
		_exit(3);
	for (round = 0; round < rounds; round++) {
		struct perf_event_attr attr =
			counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);

		if (fd < 0)
			fd = perf_open_self(&attr, -1);
		if (fd < 0 || read(to, &byte, 1) != 1)
			_exit(4);
		if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
			_exit(5);
		loop(LOOPS);
		/* Sleeps while it counts. */
		if (write(from, &byte, 1) != 1 ||
		    read(to, &byte, 1) != 1)
			_exit(6);
		loop(LOOPS);
		if (ioctl(fd, PERF_EVENT_IOC_DISABLE, 0))
			_exit(7);
		/* The count is the same every time, and across its sleep. */
		count = read_value(fd);
		if (!first)
			first = count;
		if (count < 4 * LOOPS || count != first)
			_exit(8);
		if (ioctl(fd, PERF_EVENT_IOC_RESET, 0))
			_exit(10);
		/* A counter that is cleared meanwhile does not change the count. */
		for (i = 0; i < gp; i++) {
			count = read_value(branches[i]) - last[i];
			if (count < 2 * LOOPS || count > 10 * LOOPS)
				_exit(11);
			last[i] += count;
		}
		if (write(from, &byte, 1) != 1)
			_exit(9);
	}
	_exit(0);
}

static bool start_other(struct other *other, unsigned int gp, int rounds)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		return false;
	other->pid = fork_helper();
	if (other->pid == 0)
		other_task(to[0], from[1], gp, rounds);
	/* Close these ends, so that this task notices when the other one exits. */
	close(to[0]);
	close(from[1]);
	other->to = to[1];
	other->from = from[0];
	return other->pid > 0;
}

/* Lets the other task run until it goes to sleep. */
static bool run_other(const struct other *other)
{
	char byte = 0;

	return write(other->to, &byte, 1) == 1 && read(other->from, &byte, 1) == 1;
}

static int status_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int status_of_other(const struct other *other)
{
	return status_of(other->pid);
}

/*
 * Returns the number of counters that are not 0, except for the counter with
 * @index in the event's page.
 */
static int others_counters(__u32 index)
{
	unsigned int gp = gp_counters(), fixed = fixed_counters(), i;
	int nonzero = 0;

	for (i = 0; i < gp; i++)
		nonzero += i + 1 != index && try_rdpmc(i) != 0;
	for (i = 0; i < fixed; i++)
		nonzero += (FIXED | i) + 1 != index && try_rdpmc(FIXED | i) != 0;
	return nonzero;
}

/*
 * Counters that another task has just left cannot be read, and counters in use
 * continue to count: those of the other task, of this one, and of the CPU.
 */
TEST_F(user_read, others_are_wiped)
{
	struct perf_event_attr cpu_attr =
		counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct perf_event_mmap_page *page;
	int fd, cpu_fd, round;
	int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	__u64 mine, of_cpu, by_read;
	struct other other;

	signal(SIGPIPE, SIG_IGN);
	ASSERT_TRUE(start_other(&other, gp_counters(), ROUNDS));
	fd = open_user(RAW_INSTRUCTIONS);
	ASSERT_LE(0, fd);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	for (round = 0; round < ROUNDS; round++) {
		mine = read_mapped(page);
		if (!run_other(&other))
			break;
		EXPECT_EQ(0, others_counters(page->index));
		by_read = read_mapped(page);
		EXPECT_LT(mine, by_read);
		EXPECT_GT(mine + 100000, by_read);
		if (!run_other(&other))
			break;
	}
	EXPECT_EQ(0, status_of_other(&other));
	EXPECT_EQ(ROUNDS, round);

	/* An event of the CPU stays on its counter while tasks are switched. */
	cpu_attr.disabled = 0;
	cpu_fd = perf_open(&cpu_attr, -1, cpu, -1, 0);
	ASSERT_LE(0, cpu_fd);
	of_cpu = read_value(cpu_fd);
	for (round = 0; round < ROUNDS; round++) {
		ASSERT_TRUE(start_other(&other, gp_counters() - 1, 1));
		ASSERT_TRUE(run_other(&other));
		ASSERT_TRUE(run_other(&other));
		by_read = read_value(cpu_fd);
		EXPECT_LE(of_cpu + LOOPS, by_read);
		/* Other tasks run in between, but not for seconds. */
		EXPECT_GT(of_cpu + 10000000000ULL, by_read);
		of_cpu = by_read;
		ASSERT_EQ(0, status_of_other(&other));
	}
}

/* Events whose counts RDPMC cannot give to all readers of the page. */
FIXTURE(page_index)
{
	int cpu;
	pid_t pid;
};

FIXTURE_SETUP(page_index)
{
	char mode[16];

	if (!on_rpmu())
		SKIP(return, "the built-in driver gives every reader an index");
	ASSERT_TRUE(read_line(RDPMC, mode, sizeof(mode)));
	ASSERT_STREQ("1", mode);
	self->cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	self->pid = 0;
	ASSERT_TRUE(run_on(self->cpu));
}

FIXTURE_TEARDOWN(page_index)
{
	if (self->pid > 0) {
		kill(self->pid, SIGKILL);
		waitpid(self->pid, NULL, 0);
	}
	write_line(RDPMC, "1");
}

static int open_of(pid_t pid, int cpu, bool inherit)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);

	attr.disabled = 0;
	attr.inherit = inherit;
	return perf_open(&attr, pid, cpu, -1, 0);
}

/* Starts a task that runs on a CPU until it is killed. */
static pid_t start_busy(int cpu)
{
	pid_t pid = fork_helper();

	if (pid == 0) {
		if (!run_on(cpu))
			_exit(1);
		for (;;)
			loop(LOOPS);
	}
	return pid;
}

/* The value that a library reads is between the values of read() before and after it. */
static void expect_right(struct __test_metadata *_metadata, int fd,
			 const struct perf_event_mmap_page *page)
{
	__u64 before, got, after;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		before = read_value(fd);
		got = read_by_page(page, fd);
		after = read_value(fd);
		EXPECT_NE(NO_COUNT, before);
		EXPECT_LE(before, got);
		EXPECT_LE(got, after);
		loop(LOOPS / ROUNDS);
		if (round % 10 == 9)
			usleep(2000);
	}
}

/*
 * An event of a task that runs on another CPU: the counters of the reader's CPU
 * have other counts.
 */
TEST_F(page_index, other_task)
{
	struct perf_event_mmap_page *page;
	int fd;

	if (self->cpu == 0)
		SKIP(return, "one CPU only");
	self->pid = start_busy(0);
	ASSERT_LT(0, self->pid);
	fd = open_of(self->pid, -1, false);
	ASSERT_LE(0, fd);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	usleep(20000);
	EXPECT_EQ(0, page->index);
	EXPECT_EQ(1, !!page->cap_user_rdpmc);
	expect_right(_metadata, fd, page);
	EXPECT_LT(LOOPS, read_by_page(page, fd));
}

/* An event of another CPU, and one of this CPU, which the reader may leave. */
TEST_F(page_index, cpu)
{
	struct perf_event_mmap_page *page;
	int cpu, fd;

	self->pid = start_busy(0);
	ASSERT_LT(0, self->pid);
	for (cpu = 0; cpu <= self->cpu; cpu++) {
		fd = open_of(-1, cpu, false);
		ASSERT_LE(0, fd);
		page = map_page(fd);
		ASSERT_NE(MAP_FAILED, page);
		usleep(20000);
		EXPECT_EQ(0, page->index);
		expect_right(_metadata, fd, page);
	}
}

/* With rdpmc 2, which lets all tasks read all counters, the page of a CPU's event has an index. */
TEST_F(page_index, cpu_if_always)
{
	struct perf_event_mmap_page *page;
	int fd;

	ASSERT_TRUE(write_line(RDPMC, "2"));
	fd = open_of(-1, self->cpu, false);
	ASSERT_LE(0, fd);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	EXPECT_NE(0, page->index);
	expect_right(_metadata, fd, page);
	if (self->cpu == 0)
		return;
	/* The page of another task's event has no index: it would be wrong on this CPU. */
	self->pid = start_busy(0);
	ASSERT_LT(0, self->pid);
	fd = open_of(self->pid, -1, false);
	ASSERT_LE(0, fd);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	usleep(20000);
	EXPECT_EQ(0, page->index);
	expect_right(_metadata, fd, page);
}

/*
 * A task's own event on one CPU has an index; if it is inherited by children,
 * it has none.
 */
TEST_F(page_index, inherited)
{
	struct perf_event_mmap_page *page;
	int fd = open_of(0, self->cpu, false);

	ASSERT_LE(0, fd);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	EXPECT_NE(0, page->index);
	expect_right(_metadata, fd, page);

	fd = open_of(0, self->cpu, true);
	ASSERT_LE(0, fd);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	self->pid = start_busy(self->cpu);
	ASSERT_LT(0, self->pid);
	usleep(20000);
	EXPECT_EQ(0, page->index);
	expect_right(_metadata, fd, page);
}

/*
 * A child does not inherit the mapping. While the child has a mapping of its own,
 * its parent's page has no index.
 */
TEST_F(page_index, fork)
{
	struct perf_event_mmap_page *page;
	int fd = open_user(RAW_INSTRUCTIONS), ready[2], go[2];
	char byte = 0;

	ASSERT_LE(0, fd);
	page = map_page(fd);
	ASSERT_NE(MAP_FAILED, page);
	EXPECT_NE(0, page->index);
	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(go));
	self->pid = fork_helper();
	if (self->pid == 0) {
		if (msync(page, sysconf(_SC_PAGESIZE), MS_ASYNC) == 0 || errno != ENOMEM)
			_exit(1);
		if (read(go[0], &byte, 1) != 1 || map_page(fd) == MAP_FAILED ||
		    write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(2);
		_exit(0);
	}
	ASSERT_LT(0, self->pid);
	EXPECT_NE(0, page->index);
	expect_right(_metadata, fd, page);
	ASSERT_EQ(1, write(go[1], &byte, 1));
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	EXPECT_EQ(0, page->index);
	expect_right(_metadata, fd, page);
	ASSERT_EQ(1, write(go[1], &byte, 1));
	ASSERT_EQ(0, status_of(self->pid));
	self->pid = 0;
	EXPECT_NE(0, page->index);
	expect_right(_metadata, fd, page);
}

/*
 * A thread that reads its event through a page that another thread has mapped, as
 * in frameworks with worker threads.
 */
struct worker {
	pid_t tid;
	int fd;
	const struct perf_event_mmap_page *page;
	bool has_index;
	__u64 counted;
};

static void *worker_thread(void *arg)
{
	struct worker *worker = arg;
	__u64 start;

	worker->tid = syscall(SYS_gettid);
	go_to_step(1);
	while (step_now() != 2)
		usleep(1000);
	worker->has_index = worker->page->index;
	start = read_by_page(worker->page, worker->fd);
	loop(LOOPS);
	worker->counted = read_by_page(worker->page, worker->fd) - start;
	go_to_step(3);
	return NULL;
}

TEST_F(page_index, threads)
{
	struct worker worker = {};
	pthread_t thread;

	go_to_step(0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, worker_thread, &worker));
	wait_for_step(1);
	worker.fd = open_of(worker.tid, -1, false);
	ASSERT_LE(0, worker.fd);
	worker.page = map_page(worker.fd);
	ASSERT_NE(MAP_FAILED, worker.page);
	go_to_step(2);
	wait_for_step(3);
	pthread_join(thread, NULL);
	EXPECT_TRUE(worker.has_index);
	EXPECT_LE(2 * LOOPS, worker.counted);
	EXPECT_GT(2 * LOOPS + 10000, worker.counted);
}

/* The page of start_program()'s child, which maps it in the memory of this task. */
static struct perf_event_mmap_page *shared_page;

/*
 * Starts a child that maps its own event before it executes another program, on
 * CPU 0. Until then, vfork() lets it use this task's memory.
 */
static pid_t start_program(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		/* The program inherits the descriptor, which keeps the event open. */
		int fd = open_of(0, -1, false);

		shared_page = fd < 0 ? MAP_FAILED : map_page(fd);
		if (shared_page != MAP_FAILED && run_on(0))
			execl("/bin/sh", "sh", "-c", "while :; do :; done", NULL);
		_exit(1);
	}
	return pid;
}

TEST_F(page_index, exec)
{
	int round, with_index = 0;
	pid_t busy;

	if (self->cpu == 0)
		SKIP(return, "one CPU only");
	/* Make CPU 0 switch tasks, which updates the page. */
	busy = start_busy(0);
	ASSERT_LT(0, busy);
	self->pid = start_program();
	ASSERT_LT(0, self->pid);
	ASSERT_NE(MAP_FAILED, shared_page);
	usleep(50000);
	for (round = 0; round < ROUNDS; round++) {
		with_index += shared_page->index != 0;
		usleep(1000);
	}
	EXPECT_EQ(0, with_index);
	EXPECT_EQ(0, waitpid(self->pid, NULL, WNOHANG));
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
}

/* INST_RETIRED.PREC_DIST, which only one general-purpose counter counts. */
#define PREC_DIST	0x01c0

/*
 * A stopped event has no index, even after another event has taken its counter.
 * The kernel stops it until the next tick, because it samples too often.
 */
TEST_F(page_index, throttled)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct perf_event_mmap_page *page;
	unsigned int stopped = 0;
	__u32 before, index;
	int fd, other, i;
	char rate[32], percent[32];
	__u64 count;

	if (is_amd() || cpu_model() < MODEL_SANDY_BRIDGE || cpu_model() > MODEL_SKYLAKE)
		SKIP(return, "no event that counts on one counter alone");
	ASSERT_TRUE(read_line(SAMPLE_RATE, rate, sizeof(rate)));
	ASSERT_TRUE(read_line(CPU_PERCENT, percent, sizeof(percent)));
	/* With 0 percent the rate cannot be written. */
	if (!atoi(percent))
		ASSERT_TRUE(write_line(CPU_PERCENT, "25"));
	ASSERT_TRUE(write_line(SAMPLE_RATE, "500"));
	/* Pinned events stay when others are added: this one keeps the first counter. */
	attr.pinned = 1;
	attr.disabled = 0;
	EXPECT_LE(0, perf_open_self(&attr, -1));
	attr.sample_period = 1000;
	for (int try = 0; try < 10; try++) {
		fd = perf_open_self(&attr, -1);
		EXPECT_LE(0, fd);
		page = map_buffer(fd, 1);
		EXPECT_NE(MAP_FAILED, page);
		before = page->index;
		/* Wait until it does not count any more. */
		for (i = 0; i < 1000; i++) {
			count = read_value(fd);
			loop(1000);
			if (count == read_value(fd))
				break;
		}
		other = open_user(PREC_DIST);
		EXPECT_LE(0, other);
		loop(1000);
		read_page(page, &index);
		/* Check only if no tick has restarted the event. */
		if (count == read_value(fd)) {
			stopped++;
			EXPECT_EQ(0, index) {
				TH_LOG("%u before", before);
			}
			EXPECT_EQ(count, read_page(page, &index));
		}
		close(other);
		munmap(page, 2 * sysconf(_SC_PAGESIZE));
		close(fd);
	}
	EXPECT_TRUE(write_line(SAMPLE_RATE, rate));
	if (!atoi(percent))
		EXPECT_TRUE(write_line(CPU_PERCENT, percent));
	TH_LOG("%u times", stopped);
	EXPECT_LE(5, stopped);
}

TEST_HARNESS_MAIN
