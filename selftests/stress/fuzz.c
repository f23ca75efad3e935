// SPDX-License-Identifier: GPL-2.0
/*
 * Random system calls around perf events. A task makes the same calls for the
 * same seed, but the state of other CPUs differs.
 *
 *	fuzz SEED CALLS [WITHOUT...]
 *
 * Leaves out the kinds of calls in WITHOUT, to narrow down a failure. The exit
 * status is 0 when all calls are made; stress.sh checks the kernel's log and
 * the counts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kselftest.h"
#include "../perf_util.h"

#define FDS		48
#define CHILDREN	4
#define CGROUPS		3
#define PAGE		4096UL
#define CGROUP_ROOT	"/tmp/fuzz-cgroup"

static __u64 state;
static unsigned long calls;
static unsigned long refused[256], opened;
static int fds[FDS];
static struct {
	void *at;
	size_t size;
} maps[FDS];
static pid_t children[CHILDREN];
static int cpus;

/* xorshift64* */
static __u64 random64(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dULL;
}

static __u64 below(__u64 n)
{
	return (random64() >> 16) % n;
}

static bool one_in(__u64 n)
{
	return below(n) == 0;
}

/* Returns an edge case, or any number. */
static __u64 number(void)
{
	static const __u64 edges[] = {
		0, 1, 2, 3, 7, 8, 100, 1000, 4096, 100000, 0x7fffffff, 0x80000000,
		0xffffffff, 1ULL << 47, (1ULL << 48) - 1, 1ULL << 63, ~0ULL,
	};

	return one_in(3) ? random64() >> below(64) : edges[below(ARRAY_SIZE(edges))];
}

/*
 * Returns any config, or one that has a constraint on some model: limited to
 * some counters, corrupting, with an extra register, on a fixed counter, of
 * TSX, or with reserved bits.
 */
static __u64 raw_config(void)
{
	static const __u64 configs[] = {
		0xc0, 0xc4, 0x1c4, 0x2c4, 0x20c4, 0x3c, 0x300, 0x1b7, 0x1bb, 0x12a, 0x12b,
		0x148, 0x8a3, 0xca3, 0x4a3, 0x81d0, 0x82d0, 0x1d1, 0x2d1, 0x4d2, 0x1d3,
		0x1cd, 0x2cd, 0x1c6, 0x8c8, 0x1c8, 0x2005d, 0x14c, 0x160, 0x80b1, 0x1c2,
		0x410000c0, 0x18000c0, 0x4c0000c4, 0x1000000c0, 0x2000000c0, 0x400,
		0x1b00,
	};

	switch (below(8)) {
	case 0:
		return random64();
	case 1:
		return random64() & 0xffff;
	case 2:
		return configs[below(ARRAY_SIZE(configs))] ^ 1ULL << below(40);
	default:
		return configs[below(ARRAY_SIZE(configs))];
	}
}

static int random_fd(void)
{
	return fds[below(FDS)];
}

static pid_t random_pid(void)
{
	switch (below(6)) {
	case 0:
		return -1;
	case 1:
		return children[below(CHILDREN)];
	case 2:
		return one_in(10) ? (pid_t)number() : 1;
	default:
		return 0;
	}
}

static void close_slot(int slot)
{
	if (maps[slot].at) {
		munmap(maps[slot].at, maps[slot].size);
		maps[slot].at = NULL;
		calls++;
	}
	if (fds[slot] >= 0) {
		close(fds[slot]);
		calls++;
	}
	fds[slot] = -1;
}

static void do_open(void)
{
	static const __u64 periods[] = { 1, 2, 10, 100, 1000, 10000, 100000, 10000000 };
	struct perf_event_attr attr = { .size = sizeof(attr) };
	int slot = below(FDS), cpu = one_in(2) ? -1 : (int)below(cpus), fd;
	unsigned long flags = one_in(4) ? below(16) : 0;
	pid_t pid = random_pid();

	switch (below(8)) {
	case 0:
		attr.type = PERF_TYPE_HARDWARE;
		attr.config = below(11);
		break;
	case 1:
		attr.type = PERF_TYPE_HW_CACHE;
		attr.config = below(8) | below(4) << 8 | below(3) << 16;
		break;
	case 2:
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = below(12);
		break;
	case 3:
		attr.type = one_in(8) ? number() : PERF_TYPE_RAW;
		attr.config = raw_config();
		break;
	default:
		attr.type = PERF_TYPE_RAW;
		attr.config = raw_config();
	}
	if (one_in(3))
		attr.config1 = one_in(2) ? 0x10003ULL << below(8) : number();
	if (one_in(20))
		attr.config2 = number();
	if (one_in(20))
		attr.config3 = number();
	if (one_in(20))
		attr.config4 = one_in(4) ? number() : 1;
	attr.disabled = one_in(2);
	attr.inherit = one_in(4);
	attr.inherit_stat = one_in(8);
	attr.pinned = one_in(8);
	attr.exclusive = one_in(16);
	attr.exclude_user = one_in(6);
	attr.exclude_kernel = one_in(2);
	attr.exclude_hv = one_in(2);
	attr.exclude_idle = one_in(16);
	attr.exclude_guest = one_in(4);
	attr.enable_on_exec = one_in(6);
	/*
	 * No remove_on_exec: perf_event_remove_on_exec() of 7.3.4 takes the mutexes of owner
	 * and context in the opposite order to perf_event_task_disable(), so that an exec and
	 * a prctl() deadlock.
	 */
	attr.sample_id_all = one_in(4);
	attr.read_format = one_in(3) ? below(32) : READ_ONE;
	if (one_in(3)) {
		attr.freq = one_in(3);
		attr.sample_period = periods[below(ARRAY_SIZE(periods))];
		if (attr.freq)
			attr.sample_freq = 1 + below(20000);
		attr.sample_type = below(1 << 20);
		attr.sample_type &= one_in(4) ? ~0ULL : PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN |
			PERF_SAMPLE_PERIOD;
		attr.wakeup_events = below(4);
	}
	if (one_in(16))
		attr.precise_ip = one_in(2) ? 0 : below(4);
	if (one_in(50))
		attr.sample_period = number();
	/* Flip any bit, including reserved and new ones. */
	if (one_in(16))
		((__u8 *)&attr)[below(sizeof(attr))] ^= 1 << below(8);
	attr.remove_on_exec = 0;
	if (one_in(100))
		attr.size = number();

	close_slot(slot);
	fd = perf_open(&attr, pid, cpu, one_in(3) ? random_fd() : -1, flags);
	calls++;
	if (fd < 0) {
		refused[errno & 255]++;
		return;
	}
	opened++;
	fds[slot] = fd;
}

static void do_ioctl(void)
{
	static const unsigned long commands[] = {
		PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_REFRESH,
		PERF_EVENT_IOC_RESET, PERF_EVENT_IOC_PERIOD, PERF_EVENT_IOC_SET_OUTPUT,
		PERF_EVENT_IOC_SET_FILTER, PERF_EVENT_IOC_ID, PERF_EVENT_IOC_SET_BPF,
		PERF_EVENT_IOC_PAUSE_OUTPUT, PERF_EVENT_IOC_QUERY_BPF,
		PERF_EVENT_IOC_MODIFY_ATTRIBUTES,
	};
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, raw_config());
	unsigned long command = commands[below(ARRAY_SIZE(commands))], arg = one_in(3);
	__u64 value = one_in(2) ? 1 + below(100000) : number();

	switch (command) {
	case PERF_EVENT_IOC_REFRESH:
		arg = below(10);
		break;
	case PERF_EVENT_IOC_PERIOD:
	case PERF_EVENT_IOC_ID:
	case PERF_EVENT_IOC_QUERY_BPF:
		arg = (unsigned long)&value;
		break;
	case PERF_EVENT_IOC_SET_OUTPUT:
		arg = random_fd();
		break;
	case PERF_EVENT_IOC_MODIFY_ATTRIBUTES:
		arg = (unsigned long)&attr;
		break;
	}
	ioctl(random_fd(), one_in(100) ? number() : command, one_in(50) ? number() : arg);
	calls++;
}

static void do_read(void)
{
	static char buf[4096];
	struct pollfd poll_fd = { .fd = random_fd(), .events = POLLIN };

	if (one_in(8))
		poll(&poll_fd, 1, 0);
	else
		read(random_fd(), buf, one_in(4) ? below(sizeof(buf)) : sizeof(buf));
	calls++;
}

static void do_mmap(void)
{
	int slot = below(FDS);
	size_t size = PAGE * (1 + (one_in(4) ? below(5) : (1UL << below(4)) & ~1UL));
	void *at;

	if (maps[slot].at) {
		const struct perf_event_mmap_page *page = maps[slot].at;
		unsigned int counter = page->index, low, high;

		/* Another event may have the counter by now. */
		if (page->cap_user_rdpmc && counter--)
			asm volatile("rdpmc" : "=a" (low), "=d" (high) : "c" (counter));
		munmap(maps[slot].at, maps[slot].size);
		maps[slot].at = NULL;
	} else if (fds[slot] >= 0) {
		at = mmap(NULL, size, PROT_READ | (one_in(3) ? 0 : PROT_WRITE),
			  one_in(10) ? MAP_PRIVATE : MAP_SHARED, fds[slot], one_in(20) ? PAGE : 0);
		if (at != MAP_FAILED) {
			maps[slot].at = at;
			maps[slot].size = size;
		}
	}
	calls++;
}

/* Executes branches and memory accesses for the events to count. */
static void work(void)
{
	branch_loop(1 + below(2000));
	memory_loop(1 + below(2000));
}

static void do_fork(void)
{
	int slot = below(CHILDREN), i;

	if (children[slot] > 0) {
		kill(children[slot], SIGKILL);
		waitpid(children[slot], NULL, 0);
		children[slot] = 0;
		calls += 2;
		return;
	}
	children[slot] = fork_helper();
	calls++;
	if (children[slot])
		return;
	if (one_in(4))
		execl("/proc/self/exe", "fuzz", "child", NULL);
	for (i = 0; i < 50; i++) {
		work();
		if (one_in(8))
			sched_yield();
	}
	_exit(0);
}

static void do_move(void)
{
	cpu_set_t set;
	int cpu;

	CPU_ZERO(&set);
	for (cpu = 0; cpu < cpus; cpu++)
		if (one_in(2))
			CPU_SET(cpu, &set);
	sched_setaffinity(one_in(4) ? children[below(CHILDREN)] : 0, sizeof(set), &set);
	calls++;
}

static void do_prctl(void)
{
	prctl(one_in(2) ? PR_TASK_PERF_EVENTS_DISABLE : PR_TASK_PERF_EVENTS_ENABLE);
	calls++;
}

static void do_file(void)
{
	static const char *const settings[] = {
		CPU_PMU "/rdpmc", CPU_PMU "/freeze_on_smi", CPU_PMU "/allow_tsx_force_abort",
		MUX_INTERVAL, CPU_PMU "/rpmu/format", CPU_PMU "/rpmu/switch_max_percent",
	};
	static const char *const files[] = {
		CPU_PMU "/rdpmc", CPU_PMU "/caps/max_precise", CPU_PMU "/format/event",
		CPU_PMU "/events/instructions", CPU_PMU "/format/rand_mask",
		CPU_PMU "/rpmu/format", "/sys/kernel/debug/rpmu/refusals",
		"/sys/kernel/debug/rpmu/users",
		"/sys/kernel/debug/rpmu/cpu0/schedule", "/sys/kernel/debug/rpmu/cpu1/schedule",
		"/proc/interrupts",
	};
	static char buf[16384];
	int fd;

	if (one_in(2)) {
		const char *path = settings[below(ARRAY_SIZE(settings))];

		fd = open(path, O_WRONLY);
		snprintf(buf, sizeof(buf), "%llu", (unsigned long long)
			 (path == settings[3] ? 1 + below(8) : one_in(8) ? number() : below(3)));
		if (fd >= 0)
			write(fd, buf, strlen(buf));
	} else {
		fd = open(files[below(ARRAY_SIZE(files))], O_RDONLY);
		if (fd >= 0)
			while (read(fd, buf, 1 + below(sizeof(buf) - 1)) > 0)
				calls++;
	}
	calls += 2;
	if (fd >= 0) {
		close(fd);
		calls++;
	}
}

static void do_signal(void)
{
	int fd = random_fd();

	fcntl(fd, F_SETFL, one_in(2) ? O_ASYNC : 0);
	fcntl(fd, F_SETSIG, one_in(2) ? SIGIO : SIGRTMIN);
	fcntl(fd, F_SETOWN, getpid());
	calls += 3;
}

static void do_cgroup(void)
{
	char path[64], pid[16];
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, raw_config());
	int dir, slot = below(FDS);

	snprintf(path, sizeof(path), CGROUP_ROOT "/%d", (int)below(CGROUPS));
	switch (below(4)) {
	case 0:
		if (one_in(2))
			mkdir(path, 0700);
		else
			rmdir(path);
		break;
	case 1:
		strcat(path, "/cgroup.procs");
		snprintf(pid, sizeof(pid), "%d", one_in(2) ? 0 : children[below(CHILDREN)]);
		write_line(one_in(2) ? path : CGROUP_ROOT "/cgroup.procs", pid);
		calls += 2;
		break;
	default:
		dir = open(path, O_RDONLY | O_DIRECTORY);
		calls++;
		if (dir < 0)
			break;
		attr.disabled = one_in(2);
		/*
		 * Not pinned: if a pinned event gets no counter at a switch
		 * between control groups, the perf core of 7.3.4 leaves the PMU
		 * disabled for good (perf_cgroup_switch() disables PMUs with
		 * events of control groups, merge_sched_in() decrements the
		 * number of these events, and the enable skips the PMU).
		 */
		close_slot(slot);
		fds[slot] = perf_open(&attr, dir, below(cpus), -1, PERF_FLAG_PID_CGROUP);
		if (fds[slot] < 0)
			refused[errno & 255]++;
		else
			opened++;
		close(dir);
		calls++;
	}
	calls++;
}

static void do_close(void)
{
	close_slot(below(FDS));
}

static struct {
	const char *name;
	void (*call)(void);
	unsigned int weight;
} kinds[] = {
	{ "open", do_open, 40 }, { "ioctl", do_ioctl, 130 }, { "read", do_read, 100 },
	{ "mmap", do_mmap, 35 }, { "close", do_close, 10 }, { "work", work, 40 },
	{ "fork", do_fork, 1 }, { "move", do_move, 4 }, { "prctl", do_prctl, 10 },
	{ "file", do_file, 4 }, { "signal", do_signal, 6 }, { "cgroup", do_cgroup, 3 },
};

/*
 * Opens an event on each CPU and keeps it, so that no CPU's context is empty. When
 * an empty context gets an event of a control group that is not the current one,
 * the perf core of 7.3.4 leaves the context inactive, schedules it without
 * disabling the PMU at a switch to a task with software events only, and warns
 * about that (__perf_install_in_context(), perf_event_context_sched_in(),
 * perf_assert_pmu_disabled()).
 */
static void hold_contexts(void)
{
	struct perf_event_attr attr = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	int cpu;

	attr.disabled = 0;
	for (cpu = 0; cpu < cpus; cpu++)
		perf_open(&attr, -1, cpu, -1, 0);
}

static bool leave_out(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(kinds[i].name, name)) {
			kinds[i].weight = 0;
			return true;
		}
	}
	return false;
}

static void one_call(void)
{
	unsigned int i, at = 0;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		at += kinds[i].weight;
	at = below(at);
	for (i = 0; at >= kinds[i].weight; i++)
		at -= kinds[i].weight;
	kinds[i].call();
}

/* Skips an RDPMC that faults because user space may not execute it any more. */
static void skip_rdpmc(int sig, siginfo_t *info, void *context)
{
	static const __u8 rdpmc[] = { 0x0f, 0x33 };
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	if (memcmp((void *)uc->uc_mcontext.gregs[REG_RIP], rdpmc, sizeof(rdpmc)))
		_exit(3);
	uc->uc_mcontext.gregs[REG_RIP] += sizeof(rdpmc);
}

static void pass_over(int sig)
{
	(void)sig;
}

int main(int argc, char **argv)
{
	struct sigaction skip = { .sa_sigaction = skip_rdpmc, .sa_flags = SA_SIGINFO };
	unsigned long goal, shown = 0;
	int i;

	/* The program that children execute. */
	if (argc == 2 && !strcmp(argv[1], "child")) {
		branch_loop(100000);
		return 0;
	}
	for (i = 3; i < argc && leave_out(argv[i]); i++)
		;
	if (argc < 3 || i < argc) {
		fprintf(stderr, "usage: fuzz SEED CALLS [WITHOUT...]\n");
		return 2;
	}
	/* The state of xorshift64* must not be 0. */
	state = strtoull(argv[1], NULL, 0) ^ 0x9e3779b97f4a7c15ULL;
	goal = strtoul(argv[2], NULL, 0);
	cpus = sysconf(_SC_NPROCESSORS_CONF);
	for (i = 0; i < FDS; i++)
		fds[i] = -1;
	hold_contexts();
	sigaction(SIGSEGV, &skip, NULL);
	signal(SIGIO, SIG_IGN);
	signal(SIGRTMIN, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* Events with sigtrap raise SIGTRAP, which kills the task if ignored. */
	signal(SIGTRAP, pass_over);

	while (calls < goal) {
		one_call();
		if (calls - shown >= 50000) {
			shown = calls;
			printf("# %lu calls, %lu events opened\n", calls, opened);
			fflush(stdout);
		}
	}
	for (i = 0; i < FDS; i++)
		close_slot(i);
	for (i = 0; i < CHILDREN; i++) {
		if (children[i] > 0) {
			kill(children[i], SIGKILL);
			waitpid(children[i], NULL, 0);
		}
	}
	write_line(CGROUP_ROOT "/cgroup.procs", "0");
	for (i = 0; i < CGROUPS; i++) {
		char path[64];

		snprintf(path, sizeof(path), CGROUP_ROOT "/%d", i);
		rmdir(path);
	}
	printf("# %lu calls, %lu events opened; refused:", calls, opened);
	for (i = 1; i < 256; i++)
		if (refused[i])
			printf(" %s %lu", strerrorname_np(i), refused[i]);
	printf("\n");
	return 0;
}
