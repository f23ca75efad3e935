// SPDX-License-Identifier: GPL-2.0
/*
 * Tests a KVM guest: the events that count inside and outside of it, and the
 * counters that KVM gives it. The guest executes a loop in real mode. Both
 * drivers must give the same counts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/klog.h>
#include <sys/mman.h>

#include <linux/kvm.h>

#include "kselftest_harness.h"
#include "kvm_guest.h"
#include "perf_util.h"

#define LOOPS		100000UL
/* More than the kernel's instructions for three entries, even with KASAN. */
#define MANY_LOOPS	(200 * LOOPS)
#define PAGE		4096UL
/* The guest-physical address of its code. */
#define CODE		0x1000UL
/* The width of a guest's counters. */
#define COUNTER_MASK	((1ULL << 48) - 1)

/* KVM's modules and their names, each after those that it needs. */
static const char *const modules[][2] = {
	{ "./irqbypass.ko", "irqbypass" },
	{ "./kvm.ko", "kvm" },
	{ "./kvm-amd.ko", "kvm_amd" },
};

struct guest {
	int kvm, vm, vcpu;
	struct kvm_run *run;
	int run_size;
};

FIXTURE(kvm)
{
	unsigned int modules;	/* that the test has loaded */
	struct guest guest;
};

/* Gives the guest the CPU's features that KVM supports, including a PMU. */
static bool set_features(const struct guest *guest)
{
	static struct {
		struct kvm_cpuid2 head;
		struct kvm_cpuid_entry2 entries[256];
	} cpuid;

	cpuid.head.nent = 256;
	return ioctl(guest->kvm, KVM_GET_SUPPORTED_CPUID, &cpuid) == 0 &&
	       ioctl(guest->vcpu, KVM_SET_CPUID2, &cpuid) == 0;
}

/* Gives the guest a page with its code, and a code segment that begins at 0. */
static bool set_code(const struct guest *guest)
{
	struct kvm_userspace_memory_region region = {
		.guest_phys_addr = CODE,
		.memory_size = PAGE,
	};
	struct kvm_sregs sregs;
	void *page;

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return false;
	memcpy(page, guest_loop, guest_end - guest_loop);
	region.userspace_addr = (unsigned long)page;
	if (ioctl(guest->vm, KVM_SET_USER_MEMORY_REGION, &region) ||
	    ioctl(guest->vcpu, KVM_GET_SREGS, &sregs))
		return false;
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	return ioctl(guest->vcpu, KVM_SET_SREGS, &sregs) == 0;
}

/* Creates a guest with one CPU. Returns false with errno set if that fails. */
static bool make_guest(struct guest *guest)
{
	guest->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (guest->kvm < 0)
		return false;
	guest->vm = ioctl(guest->kvm, KVM_CREATE_VM, 0);
	guest->vcpu = ioctl(guest->vm, KVM_CREATE_VCPU, 0);
	guest->run_size = ioctl(guest->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (guest->vm < 0 || guest->vcpu < 0 || guest->run_size < 0)
		return false;
	guest->run = mmap(NULL, guest->run_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			  guest->vcpu, 0);
	return guest->run != MAP_FAILED && set_features(guest) && set_code(guest);
}

static void end_guest(struct guest *guest)
{
	munmap(guest->run, guest->run_size);
	close(guest->vcpu);
	close(guest->vm);
	close(guest->kvm);
}

/* Loads KVM's modules, and counts them in *@loaded. Returns false if that fails. */
static bool load_kvm(unsigned int *loaded)
{
	for (; *loaded < 3; ++*loaded) {
		if (!load_module(modules[*loaded][0], ""))
			return false;
	}
	return true;
}

static bool unload_kvm(unsigned int *loaded)
{
	for (; *loaded; --*loaded) {
		if (!unload_module(modules[*loaded - 1][1]))
			return false;
	}
	return true;
}

FIXTURE_SETUP(kvm)
{
	if (!is_amd())
		SKIP(return, "the guest's code is for AMD's CPUs");
	if (access("/dev/kvm", F_OK)) {
		if (access(modules[2][0], R_OK))
			SKIP(return, "needs /dev/kvm, or %s", modules[2][0]);
		ASSERT_TRUE(load_kvm(&self->modules));
	}
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	ASSERT_TRUE(make_guest(&self->guest)) {
		TH_LOG("%s", strerror(errno));
	}
}

FIXTURE_TEARDOWN(kvm)
{
	if (self->guest.run)
		end_guest(&self->guest);
	EXPECT_TRUE(unload_kvm(&self->modules));
}

/*
 * Runs @code in the guest up to its HLT. *@regs are the registers at the start
 * and, on return, at the end.
 */
static bool run_code(struct guest *guest, const char *code, struct kvm_regs *regs)
{
	regs->rip = CODE + (code - guest_loop);
	regs->rflags = 2;
	return ioctl(guest->vcpu, KVM_SET_REGS, regs) == 0 &&
	       ioctl(guest->vcpu, KVM_RUN, 0) == 0 &&
	       guest->run->exit_reason == KVM_EXIT_HLT &&
	       ioctl(guest->vcpu, KVM_GET_REGS, regs) == 0;
}

static bool run_loop(struct guest *guest, unsigned long loops)
{
	struct kvm_regs regs = { .rsi = loops };

	return run_code(guest, guest_loop, &regs);
}

/* Returns the guest's own counter after a loop, if it starts with @start. */
static __u64 run_counted(struct guest *guest, unsigned long loops, __u64 start)
{
	struct kvm_regs regs = {
		.rsi = loops,
		.rax = (__u32)start,
		.rdx = start >> 32,
	};

	if (!run_code(guest, guest_counted, &regs))
		return NO_COUNT;
	return regs.rdx << 32 | (__u32)regs.rax;
}

/* The places where an event counts. */
enum {
	NOWHERE = 0,
	IN_HOST = 1,
	IN_GUEST = 2,
	EVERYWHERE = 3,
};

static int open_counting_in(unsigned int where, int leader)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_INSTRUCTIONS);

	attr.exclude_host = !(where & IN_HOST);
	attr.exclude_guest = !(where & IN_GUEST);
	attr.disabled = leader < 0;
	return perf_open_self(&attr, leader);
}

/* Each event in turn is the first of its group. */
TEST_F(kvm, counts_where_it_should)
{
	unsigned int first, entries, i;
	__u64 count[4];
	int group[4];

	for (first = 0; first < 4; first++) {
		for (i = 0; i < 4; i++) {
			group[i] = open_counting_in((first + i) % 4, i ? group[0] : -1);
			ASSERT_LE(0, group[i]);
		}
		ASSERT_EQ(0, ioctl(group[0], PERF_EVENT_IOC_ENABLE, 0));
		for (entries = 0; entries < 3; entries++)
			ASSERT_TRUE(run_loop(&self->guest, MANY_LOOPS));
		ASSERT_EQ(0, ioctl(group[0], PERF_EVENT_IOC_DISABLE, 0));
		for (i = 0; i < 4; i++)
			count[(first + i) % 4] = read_value(group[i]);
		for (i = 4; i; i--)
			close(group[i - 1]);

		EXPECT_EQ(0, count[NOWHERE]);
		EXPECT_EQ(3 * GUEST_LOOP(MANY_LOOPS), count[IN_GUEST]);
		EXPECT_LT(0, count[IN_HOST]);
		EXPECT_GT(GUEST_LOOP(MANY_LOOPS), count[IN_HOST]);
		EXPECT_GE(counters_start_together() ? 0 : 1000,
			  llabs((long long)(count[EVERYWHERE] - count[IN_HOST] - count[IN_GUEST])));
	}
}

/*
 * KVM opens an event for the guest's counter. When KVM is loaded, functions of the
 * built-in driver enable all counters, and this may be the first event after that.
 */
TEST_F(kvm, guests_counter)
{
	unsigned int i;

	for (i = 1; i <= 3; i++)
		EXPECT_EQ(GUEST_COUNTED(i * LOOPS), run_counted(&self->guest, i * LOOPS, 0));
}

/* The counter overflows within the loop, in an NMI. */
TEST_F(kvm, guests_counter_overflows)
{
	const __u64 start = -LOOPS & COUNTER_MASK;
	unsigned long before = pmis();

	EXPECT_EQ(GUEST_COUNTED(LOOPS) - LOOPS, run_counted(&self->guest, LOOPS, start));
	EXPECT_LT(before, pmis());
}

/* The guest's counter and the host's events for the guest count at the same time. */
TEST_F(kvm, guests_counter_beside_events)
{
	int guest = open_counting_in(IN_GUEST, -1), host = open_counting_in(IN_HOST, -1);
	/* The guest's code around the loop has fewer than @more instructions. */
	const __u64 loop = GUEST_LOOP(MANY_LOOPS), more = 16;
	unsigned int i;

	ASSERT_LE(0, guest);
	ASSERT_LE(0, host);
	ASSERT_EQ(0, ioctl(guest, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, ioctl(host, PERF_EVENT_IOC_ENABLE, 0));
	for (i = 1; i <= 3; i++) {
		EXPECT_EQ(GUEST_COUNTED(MANY_LOOPS), run_counted(&self->guest, MANY_LOOPS, 0));
		EXPECT_LE(i * loop, read_value(guest));
		EXPECT_GE(i * (loop + more), read_value(guest));
	}
	EXPECT_LT(0, read_value(host));
	EXPECT_GT(loop, read_value(host));
	close(host);
	close(guest);
}

static bool load_rpmu(void)
{
	/* The parameters that rpmu needs on this kernel. */
	const char *parameters = getenv("RPMU_PARAMETERS");

	return load_module("./rpmu.ko", parameters ? parameters : "");
}

/* The driver can be replaced while a guest exists that has not used its counters. */
TEST_F(kvm, driver_changes)
{
	if (!on_rpmu() || access("./rpmu.ko", R_OK))
		SKIP(return, "needs rpmu and ./rpmu.ko");
	ASSERT_TRUE(run_loop(&self->guest, LOOPS));
	ASSERT_TRUE(unload_module("rpmu"));
	EXPECT_TRUE(run_loop(&self->guest, LOOPS));
	ASSERT_TRUE(load_rpmu());
	EXPECT_EQ(GUEST_COUNTED(LOOPS), run_counted(&self->guest, LOOPS, 0));
	EXPECT_FALSE(unload_module("rpmu"));
}

/* rpmu cannot replace the built-in driver while a guest exists that has used its counters. */
TEST_F(kvm, rpmu_waits_for_counter)
{
	if (on_rpmu() || access("./rpmu.ko", R_OK))
		SKIP(return, "needs the built-in driver and ./rpmu.ko");
	EXPECT_EQ(GUEST_COUNTED(LOOPS), run_counted(&self->guest, LOOPS, 0));
	EXPECT_FALSE(load_rpmu());
	EXPECT_EQ(EBUSY, errno);
	EXPECT_FALSE(on_rpmu());
	EXPECT_EQ(GUEST_COUNTED(LOOPS), run_counted(&self->guest, LOOPS, 0));
}

/* Loads and unloads KVM, which turns SVM on and off, while events count. */
FIXTURE(kvm_comes)
{
	unsigned int modules;	/* the loaded modules */
	struct guest guest;
};

FIXTURE_SETUP(kvm_comes)
{
	if (!is_amd())
		SKIP(return, "the guest's code is for AMD's CPUs");
	if (!access("/dev/kvm", F_OK) || access(modules[2][0], R_OK))
		SKIP(return, "needs %s, and no KVM before", modules[2][0]);
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
}

FIXTURE_TEARDOWN(kvm_comes)
{
	if (self->guest.run)
		end_guest(&self->guest);
	EXPECT_TRUE(unload_kvm(&self->modules));
}

/* Counts a loop of this process with a group that is enabled only for the loop. */
static bool count_loop(int group)
{
	if (ioctl(group, PERF_EVENT_IOC_ENABLE, 0))
		return false;
	branch_loop(LOOPS);
	return ioctl(group, PERF_EVENT_IOC_DISABLE, 0) == 0;
}

/*
 * An event that excludes guests is disabled while SVM is turned on and off, and
 * another event counts meanwhile. Enabled again, it does not count the guest, and
 * counts this process after SVM is off.
 */
TEST_F(kvm_comes, waiting_event_follows)
{
	int first = open_counting_in(EVERYWHERE, -1), host = open_counting_in(IN_HOST, first);
	int single = open_counting_in(EVERYWHERE, -1);
	__u64 before;

	ASSERT_LE(0, first);
	ASSERT_LE(0, host);
	ASSERT_LE(0, single);
	ASSERT_TRUE(count_loop(first));
	before = read_value(host);
	EXPECT_LE(LOOPS, before);

	ASSERT_TRUE(load_kvm(&self->modules));
	ASSERT_TRUE(make_guest(&self->guest));
	ASSERT_TRUE(count_loop(single));
	ASSERT_EQ(0, ioctl(first, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_TRUE(run_loop(&self->guest, MANY_LOOPS));
	ASSERT_EQ(0, ioctl(first, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_GT(before + GUEST_LOOP(MANY_LOOPS), read_value(host));

	end_guest(&self->guest);
	self->guest.run = NULL;
	ASSERT_TRUE(unload_kvm(&self->modules));
	ASSERT_TRUE(count_loop(single));
	before = read_value(host);
	ASSERT_TRUE(count_loop(first));
	EXPECT_LE(before + LOOPS, read_value(host));
	close(single);
	close(host);
	close(first);
}

/* Returns the number of times that @text is in the kernel's log. */
static unsigned int times_in_log(const char *text)
{
	static char log[1 << 20];
	int size = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log) - 1);
	unsigned int times = 0;
	const char *at;

	log[size < 0 ? 0 : size] = '\0';
	for (at = log; (at = strstr(at, text)); at++)
		times++;
	return times;
}

/*
 * A sampling event has been closed, so long ago that the NMI handler has
 * forgotten it, and KVM lets its counter continue (amd_pmu_reload_virt()). The
 * driver must claim the NMI of the counter's overflow.
 */
TEST_F(kvm_comes, counter_of_a_closed_event_overflows)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	unsigned int before = times_in_log("NMI received for unknown reason");
	int fd;

	attr.sample_period = LOOPS;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(count_loop(fd));
	close(fd);
	usleep(200000);
	ASSERT_TRUE(load_kvm(&self->modules));
	branch_loop(10 * LOOPS);
	EXPECT_EQ(before, times_in_log("NMI received for unknown reason"));
}

TEST_HARNESS_MAIN
