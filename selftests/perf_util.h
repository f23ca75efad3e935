/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests share: opening and reading events, loops of a known number
 * of instructions, and what the CPU and the driver under test are.
 *
 * The tests ask CPUID, never the driver, what the hardware has, so that a
 * driver that reports nonsense cannot make its own tests pass.
 */
#ifndef RPMU_SELFTESTS_PERF_UTIL_H
#define RPMU_SELFTESTS_PERF_UTIL_H

#include <cpuid.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "cpu_models.h"

#define CPU_PMU		"/sys/bus/event_source/devices/cpu"

/* INST_RETIRED.ANY_P and BR_INST_RETIRED.ALL_BRANCHES: architectural events. */
#define RAW_INSTRUCTIONS	0x00c0
#define RAW_BRANCHES		0x00c4

/* Every read_format that perf stat uses, on an event of its own. */
#define READ_ONE	(PERF_FORMAT_TOTAL_TIME_ENABLED | \
			 PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID)
#define READ_GROUP	(READ_ONE | PERF_FORMAT_GROUP)

struct one_count {
	__u64 value;
	__u64 enabled;	/* ns */
	__u64 running;	/* ns */
	__u64 id;
};

#define MAX_GROUP	16

struct group_count {
	__u64 nr;
	__u64 enabled;	/* ns */
	__u64 running;	/* ns */
	struct {
		__u64 value;
		__u64 id;
	} event[MAX_GROUP];
};

/* A counting event that is opened disabled: what most tests start from. */
static inline struct perf_event_attr counting(__u32 type, __u64 config)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.config = config,
		.disabled = 1,
		.read_format = READ_ONE,
	};

	return attr;
}

static inline struct perf_event_attr counting_user(__u32 type, __u64 config)
{
	struct perf_event_attr attr = counting(type, config);

	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	return attr;
}

/* Returns the descriptor, or -1 and errno. */
static inline int perf_open(const struct perf_event_attr *attr, pid_t pid,
			    int cpu, int group_fd, unsigned long flags)
{
	return syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, flags);
}

/* For the calling task, on whatever CPU it runs. */
static inline int perf_open_self(const struct perf_event_attr *attr, int group_fd)
{
	return perf_open(attr, 0, -1, group_fd, 0);
}

static inline bool read_one(int fd, struct one_count *count)
{
	return read(fd, count, sizeof(*count)) == sizeof(*count);
}

/* What read_value() gives if it cannot read; no test expects it of a count. */
#define NO_COUNT	(~0ULL)

static inline __u64 read_value(int fd)
{
	struct one_count count;

	return read_one(fd, &count) ? count.value : NO_COUNT;
}

/* Percentage of the enabled time that the event was on a counter. */
static inline double percent_running(const struct one_count *count)
{
	return count->enabled ? 100.0 * count->running / count->enabled : 0.0;
}

/*
 * Enable the event (or with PERF_IOC_FLAG_GROUP its group), decrement a
 * word of memory n times, disable: all of it in one asm statement, so that no
 * instruction of the compiler's is counted. At user level there are
 *
 *	2 * n			dec, which loads and stores, and jnz
 *	4			set-up of the disabling ioctl
 *	1			its SYSCALL
 *
 * instructions between the return of the first ioctl and the entry into the
 * second. The kernel clobbers RAX, RCX and R11 only.
 */
#define LOOP_INSTRUCTIONS(n)	(2 * (__u64)(n) + 5)
#define LOOP_BRANCHES(n)	((__u64)(n))

static inline void counted_loop(int fd, unsigned long ioc_flags, unsigned long n)
{
	register unsigned long r12 asm("r12") = fd;
	register unsigned long r13 asm("r13") = ioc_flags;
	unsigned long count = n;

	asm volatile("mov %[ioctl], %%eax\n\t"
		     "mov %%r12, %%rdi\n\t"
		     "mov %[enable], %%esi\n\t"
		     "mov %%r13, %%rdx\n\t"
		     "syscall\n"
		     "1:\n\t"
		     "decq %[count]\n\t"
		     "jnz 1b\n\t"
		     "mov %[ioctl], %%eax\n\t"
		     "mov %%r12, %%rdi\n\t"
		     "mov %[disable], %%esi\n\t"
		     "mov %%r13, %%rdx\n\t"
		     "syscall"
		     : [count] "+m" (count)
		     : [ioctl] "i" (SYS_ioctl),
		       [enable] "i" (PERF_EVENT_IOC_ENABLE),
		       [disable] "i" (PERF_EVENT_IOC_DISABLE),
		       "r" (r12), "r" (r13)
		     : "rax", "rcx", "rdx", "rsi", "rdi", "r11", "cc", "memory");
}

/*
 * Is a loop of n passes of the calling task counted exactly right now? *count
 * is NO_COUNT where there is no event to be had; errno says why.
 */
static inline bool counts_exactly(unsigned long n, __u64 *count)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fd = perf_open_self(&attr, -1);

	*count = NO_COUNT;
	if (fd < 0)
		return false;
	counted_loop(fd, 0, n);
	*count = read_value(fd);
	close(fd);
	return *count == LOOP_INSTRUCTIONS(n);
}

/*
 * The same around n system calls nr(arg, 0): 6 * n instructions at user level
 * and the same 5 at the end. The calls' own instructions are the kernel's.
 */
#define SYSCALLS_INSTRUCTIONS(n)	(6 * (__u64)(n) + 5)

static inline void counted_syscalls(int fd, unsigned long ioc_flags,
				    unsigned long n, unsigned long nr,
				    const void *arg)
{
	register unsigned long count asm("rbx") = n;
	register unsigned long r12 asm("r12") = fd;
	register unsigned long r13 asm("r13") = ioc_flags;
	register unsigned long r14 asm("r14") = nr;
	register const void *r15 asm("r15") = arg;

	asm volatile("mov %[ioctl], %%eax\n\t"
		     "mov %%r12, %%rdi\n\t"
		     "mov %[enable], %%esi\n\t"
		     "mov %%r13, %%rdx\n\t"
		     "syscall\n"
		     "1:\n\t"
		     "mov %%r14, %%rax\n\t"
		     "mov %%r15, %%rdi\n\t"
		     "xor %%esi, %%esi\n\t"
		     "syscall\n\t"
		     "dec %%rbx\n\t"
		     "jnz 1b\n\t"
		     "mov %[ioctl], %%eax\n\t"
		     "mov %%r12, %%rdi\n\t"
		     "mov %[disable], %%esi\n\t"
		     "mov %%r13, %%rdx\n\t"
		     "syscall"
		     : "+r" (count)
		     : [ioctl] "i" (SYS_ioctl),
		       [enable] "i" (PERF_EVENT_IOC_ENABLE),
		       [disable] "i" (PERF_EVENT_IOC_DISABLE),
		       "r" (r12), "r" (r13), "r" (r14), "r" (r15)
		     : "rax", "rcx", "rdx", "rsi", "rdi", "r11", "cc", "memory");
}

/*
 * One pass: a call and a return, a conditional branch that is not taken and
 * one that is: four branches.
 */
static inline void branch_loop(unsigned long n)
{
	asm volatile("1:\n\t"
		     "call 2f\n\t"
		     "test %[n], %[n]\n\t"
		     "jz 3f\n\t"
		     "dec %[n]\n\t"
		     "jnz 1b\n\t"
		     "jmp 3f\n"
		     "2:\n\t"
		     "ret\n"
		     "3:"
		     : [n] "+r" (n)
		     :
		     : "cc", "memory");
}

/* Per iteration two loads, three stores, one of both, and one branch. */
static inline void memory_loop(unsigned long n)
{
	static unsigned long words[4];

	asm volatile("1:\n\t"
		     "mov (%[w]), %%rax\n\t"
		     "mov 8(%[w]), %%rdx\n\t"
		     "mov %%rax, 16(%[w])\n\t"
		     "mov %%rax, 24(%[w])\n\t"
		     "movl $1, (%[w])\n\t"
		     "addq $1, 8(%[w])\n\t"
		     "dec %[n]\n\t"
		     "jnz 1b"
		     : [n] "+r" (n)
		     : [w] "r" (words)
		     : "rax", "rdx", "cc", "memory");
}

#define LOOP_LOADS	3
#define LOOP_STORES	4

/* Move to one CPU and let whoever was running there go to sleep. */
static inline bool run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return false;
	usleep(20000);
	return true;
}

/*
 * What counts a CPU counts every program there. While this task has the CPU
 * alone, no other program gets it, unless this one sleeps.
 */
static inline bool take_cpu(bool alone)
{
	const struct sched_param param = { .sched_priority = alone };

	return sched_setscheduler(0, alone ? SCHED_FIFO : SCHED_OTHER, &param) == 0;
}

/* fork() for a helper that dies with the test, however that ends. */
static inline pid_t fork_helper(void)
{
	pid_t test = getpid(), helper = fork();

	if (helper == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != test))
		_exit(1);
	return helper;
}

/* General-purpose counters that this CPU has: CPUID.0AH:EAX[15:8]. */
static inline unsigned int gp_counters(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (!__get_cpuid_count(0xa, 0, &eax, &ebx, &ecx, &edx))
		return 0;
	return (eax >> 8) & 0xff;
}

/*
 * Whether the I-th of the events that fill the general-purpose counters may
 * count user mode alone. On Broadwell, counters 4 to 7 read 0 then, so there
 * is room for four.
 */
static inline bool may_count_user_alone(unsigned int i)
{
	return i < 4 || cpu_model() != MODEL_BROADWELL;
}

/*
 * Counts user mode alone, but with the kernel where not every counter may count
 * user mode alone: any counter will do.
 */
static inline struct perf_event_attr counting_anywhere(__u32 type, __u64 config)
{
	struct perf_event_attr attr = counting_user(type, config);

	attr.exclude_kernel = may_count_user_alone(gp_counters() - 1);
	return attr;
}

/* Fixed counters that this CPU has, if they are numbered without gaps: CPUID.0AH:EDX[4:0]. */
static inline unsigned int fixed_counters(void)
{
	unsigned int eax, ebx, ecx, edx;

	__cpuid_count(0xa, 0, eax, ebx, ecx, edx);
	return edx & 0x1f;
}

/* What RDPMC takes for fixed counter 0. */
#define FIXED		0x40000000U

static inline __u64 rdpmc(__u32 counter)
{
	__u32 low, high;

	asm volatile("rdpmc" : "=a" (low), "=d" (high) : "c" (counter));
	return low | (__u64)high << 32;
}

/* Whether CPUID leaf 0xA marks the architectural event as absent. */
static inline bool event_absent(unsigned int bit)
{
	unsigned int eax, ebx = 0, ecx, edx;

	__get_cpuid_count(0xa, 0, &eax, &ebx, &ecx, &edx);
	return ebx & 1 << bit;
}

/* Whether the CPU has an event for the generic event, one of PERF_COUNT_HW_*. */
static inline bool has_generic_event(__u64 id)
{
	const enum cpu_model model = cpu_model();
	/* Ivy Bridge in part */
	const bool counts_stalls = model == MODEL_NEHALEM || model == MODEL_WESTMERE ||
				   model == MODEL_SANDY_BRIDGE;

	switch (id) {
	case PERF_COUNT_HW_CPU_CYCLES:
		return !event_absent(0);
	case PERF_COUNT_HW_INSTRUCTIONS:
		return !event_absent(1);
	case PERF_COUNT_HW_BUS_CYCLES:
		return !event_absent(2);
	case PERF_COUNT_HW_CACHE_REFERENCES:
		return !event_absent(3);
	case PERF_COUNT_HW_CACHE_MISSES:
		return !event_absent(4);
	case PERF_COUNT_HW_BRANCH_INSTRUCTIONS:
		return !event_absent(5);
	case PERF_COUNT_HW_BRANCH_MISSES:
		/* Nehalem: another event stands in for it. */
		return !event_absent(6) || model == MODEL_NEHALEM;
	case PERF_COUNT_HW_STALLED_CYCLES_FRONTEND:
		return counts_stalls || model == MODEL_IVY_BRIDGE;
	case PERF_COUNT_HW_STALLED_CYCLES_BACKEND:
		return counts_stalls;
	case PERF_COUNT_HW_REF_CPU_CYCLES:
		return true;
	default:
		return false;
	}
}

/*
 * Does QEMU translate this machine's code, rather than hardware run it? Then
 * the PMU is the emulated one, whose figures for caches, cycles and the like
 * are known. Those of hardware are its own.
 */
static inline bool is_tcg(void)
{
	unsigned int eax, vendor[3];

	__cpuid(0x40000000, eax, vendor[0], vendor[1], vendor[2]);
	return !memcmp(vendor, "TCGTCGTCGTCG", sizeof(vendor));
}

/* Is rpmu the driver under test, rather than the built-in one? */
static inline bool on_rpmu(void)
{
	return access("/sys/module/rpmu", F_OK) == 0;
}

/* One line of a sysfs or procfs file; false if there is no such file. */
static inline bool read_line(const char *path, char *buf, int size)
{
	FILE *file = fopen(path, "r");
	bool ok;

	if (!file)
		return false;
	ok = fgets(buf, size, file);
	fclose(file);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

static inline bool write_line(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	bool ok;

	if (!file)
		return false;
	ok = fputs(text, file) >= 0;
	return fclose(file) == 0 && ok;
}

/* Whether the kernel is the one with KASAN, lockdep and other checks, KERNEL=debug. */
static inline bool checks_itself(void)
{
	static const char suffix[] = "-debug";
	struct utsname name;
	size_t length;

	if (uname(&name))
		return false;
	length = strlen(name.release);
	return length >= strlen(suffix) &&
	       !strcmp(name.release + length - strlen(suffix), suffix);
}

#define SAMPLE_RATE	"/proc/sys/kernel/perf_event_max_sample_rate"
#define CPU_PERCENT	"/proc/sys/kernel/perf_cpu_time_max_percent"

/* How often and how long may be sampled: what it was before a test. */
struct sample_limits {
	char rate[32], percent[32];
};

static inline bool lift_sample_limits(struct sample_limits *before)
{
	if (!read_line(SAMPLE_RATE, before->rate, sizeof(before->rate)) ||
	    !read_line(CPU_PERCENT, before->percent, sizeof(before->percent)))
		return false;
	if (atoi(before->percent) == 0) {
		/* A test was killed and has left them so: what they are at boot. */
		*before = (struct sample_limits){ .rate = "100000", .percent = "25" };
		if (!write_line(CPU_PERCENT, before->percent))
			return false;
	}
	/* In this order: with 0 percent the rate cannot be written. */
	return write_line(SAMPLE_RATE, "10000000") && write_line(CPU_PERCENT, "0");
}

static inline bool put_back_sample_limits(const struct sample_limits *before)
{
	/* Setting the percentage sets the rate by what it was. */
	return write_line(CPU_PERCENT, before->percent) &&
	       write_line(SAMPLE_RATE, before->rate);
}

#define MUX_INTERVAL	CPU_PMU "/perf_event_mux_interval_ms"
/* So long that nobody gets a counter by rotation while a test runs. */
#define NO_ROTATION_S	10

static inline bool forbid_rotation(void)
{
	char ms[16];

	snprintf(ms, sizeof(ms), "%d", NO_ROTATION_S * 1000);
	return write_line(MUX_INTERVAL, ms);
}

/*
 * Back to the interval that was. A rotation timer that runs already keeps its
 * time, and until it is over the next test would have no rotation either.
 */
static inline bool allow_rotation(const char *interval)
{
	char now[16];
	bool forbidden = read_line(MUX_INTERVAL, now, sizeof(now)) &&
			 atoi(now) == NO_ROTATION_S * 1000;
	bool ok = write_line(MUX_INTERVAL, interval);

	if (forbidden)
		sleep(NO_ROTATION_S);
	return ok;
}

#endif
