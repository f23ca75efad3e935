// SPDX-License-Identifier: GPL-2.0
/*
 * Tests hibernation while events count: events of the boot CPU, which stays
 * online, and of a task. No disk is needed: the kernel gives its image to the
 * test (/dev/snapshot). The test then has the image restored, as a freshly
 * booted kernel does it: CPUs go offline, the last one is suspended, and the
 * memory of the image replaces the memory of the running kernel. The restored
 * kernel finds the registers in the state in which the other kernel left them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

/* The kernel tree's linux/types.h does not include it. */
#include <asm/posix_types.h>
#include <linux/suspend_ioctls.h>

#include "kselftest_harness.h"
#include "perf_util.h"

OWN_COUNTERS()

#define LOOPS		100000UL
#define MAX_GP		16
#define SNAPSHOT	"/dev/snapshot"

/* The smallest image that the kernel can make of this machine. */
#define IMAGE_SIZE	1UL

static bool can_hibernate(void)
{
	return access(SNAPSHOT, R_OK | W_OK) == 0;
}

/* Copies the image out of the kernel. Returns its size, 0 on error. */
static size_t take_image(int fd, char **image)
{
	loff_t size;
	ssize_t n;
	size_t got;

	if (ioctl(fd, SNAPSHOT_GET_IMAGE_SIZE, &size) < 0)
		return 0;
	/* The reported size may not include the image's header. */
	size += 16 << 20;
	*image = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*image == MAP_FAILED)
		return 0;
	for (got = 0; got + 4096 <= (size_t)size; got += n) {
		n = read(fd, *image + got, 4096);
		if (n == 0)
			return got;
		if (n < 0)
			break;
	}
	return 0;
}

/* Returns the image to the kernel. Returns only if that fails. */
static void restore_image(char *image, size_t size)
{
	int fd = open(SNAPSHOT, O_WRONLY);
	ssize_t n;
	size_t put;

	if (fd < 0)
		return;
	for (put = 0; put < size; put += n) {
		n = write(fd, image + put, 4096);
		if (n <= 0)
			break;
	}
	munmap(image, size);
	if (put >= size && ioctl(fd, SNAPSHOT_FREEZE, 0) == 0)
		ioctl(fd, SNAPSHOT_ATOMIC_RESTORE, 0);
	close(fd);
}

/* Hibernates the machine. Returns a negative errno, 0 after it has been restored. */
static int hibernate(void)
{
	int fd = open(SNAPSHOT, O_RDONLY), in_suspend = 0, error;
	char *image = NULL;
	size_t size;

	if (fd < 0)
		return -errno;
	ioctl(fd, SNAPSHOT_PREF_IMAGE_SIZE, IMAGE_SIZE);
	if (ioctl(fd, SNAPSHOT_FREEZE, 0) < 0 ||
	    ioctl(fd, SNAPSHOT_CREATE_IMAGE, &in_suspend) < 0) {
		error = -errno;
		close(fd);
		return error;
	}
	/* The restored kernel also continues here. */
	if (!in_suspend) {
		close(fd);
		return 0;
	}
	size = take_image(fd, &image);
	close(fd);
	if (!size)
		return -ENOMEM;
	restore_image(image, size);
	return -EIO;
}

static int open_on_cpu(int cpu)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);

	attr.disabled = 0;
	attr.pinned = 1;
	return perf_open(&attr, -1, cpu, -1, 0);
}

/*
 * All general-purpose counters of the boot CPU are in use, so that nothing else
 * reschedules its events. The built-in driver does not restore events that were
 * on the CPU.
 */
FIXTURE(hibernation)
{
};

FIXTURE_SETUP(hibernation)
{
}

FIXTURE_TEARDOWN(hibernation)
{
}

/* Freeing memory for the image and copying it takes most of the time. */
TEST_F_TIMEOUT(hibernation, cpu_and_task_count_on, 300)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	unsigned int gp = gp_counters(), i;
	int cpu, cpus = sysconf(_SC_NPROCESSORS_ONLN), task, other, fd[MAX_GP];
	__u64 before[MAX_GP], after;

	ASSERT_GE(MAX_GP, gp);
	if (!can_hibernate())
		SKIP(return, "the kernel has no /dev/snapshot");
	ASSERT_TRUE(run_on(0));
	for (i = 0; i < gp; i++) {
		fd[i] = open_on_cpu(0);
		ASSERT_LE(0, fd[i]);
	}
	task = perf_open_self(&attr, -1);
	ASSERT_LE(0, task);
	counted_loop(task, 0, LOOPS);
	branch_loop(LOOPS);
	for (i = 0; i < gp; i++) {
		before[i] = read_value(fd[i]);
		EXPECT_LE(4 * LOOPS, before[i]);
	}

	ASSERT_EQ(0, hibernate());

	ASSERT_EQ(cpus, sysconf(_SC_NPROCESSORS_ONLN));
	branch_loop(LOOPS);
	for (i = 0; i < gp; i++) {
		after = read_value(fd[i]);
		/*
		 * The built-in driver counts the registers' content after the
		 * restore as events.
		 */
		if (on_rpmu()) {
			EXPECT_LE(before[i] + 4 * LOOPS, after);
			EXPECT_GT(before[i] + 100000 * LOOPS, after);
		}
		close(fd[i]);
	}
	/* No count is lost, and the second loop is counted. */
	counted_loop(task, 0, LOOPS);
	EXPECT_EQ(2 * LOOP_INSTRUCTIONS(LOOPS), read_value(task));
	close(task);
	for (cpu = 0; cpu < cpus; cpu++) {
		other = perf_open_self(&attr, -1);
		ASSERT_LE(0, other);
		ASSERT_TRUE(run_on(cpu));
		counted_loop(other, 0, LOOPS);
		EXPECT_EQ(LOOP_INSTRUCTIONS(LOOPS), read_value(other));
		close(other);
	}
}

TEST_HARNESS_MAIN
