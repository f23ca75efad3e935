// SPDX-License-Identifier: GPL-2.0
/*
 * Locks the kernel down, step by step. Lockdown cannot be undone, and it
 * prevents the loading of rpmu, so the test starts on rpmu and then runs on the
 * built-in driver. In the last step, even root may not sample registers;
 * everything else still works.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define SECURITY	"/sys/kernel/security"
#define LOCKDOWN	SECURITY "/lockdown"
#define LOOPS		100000UL

FIXTURE(lockdown) {};

FIXTURE_VARIANT(lockdown)
{
	const char *level;
	int registers;		/* errno */
};

/* The variants must run in this order: lockdown can only be increased. */
FIXTURE_VARIANT_ADD(lockdown, 0_none)
{
	.level = "none",
	.registers = 0,
};

FIXTURE_VARIANT_ADD(lockdown, 1_integrity)
{
	.level = "integrity",
	.registers = 0,
};

FIXTURE_VARIANT_ADD(lockdown, 2_confidentiality)
{
	.level = "confidentiality",
	.registers = EPERM,
};

/* The current level is in brackets. */
static bool is_level(const char *level)
{
	char line[80], wanted[32];

	snprintf(wanted, sizeof(wanted), "[%s]", level);
	return read_line(LOCKDOWN, line, sizeof(line)) && strstr(line, wanted);
}

FIXTURE_SETUP(lockdown)
{
	if (access(LOCKDOWN, F_OK))
		mount("securityfs", SECURITY, "securityfs", 0, NULL);
	if (access(LOCKDOWN, F_OK))
		SKIP(return, "the kernel cannot be locked down");
	if (is_level(variant->level))
		return;
	if (!write_line(LOCKDOWN, variant->level))
		SKIP(return, "the kernel is locked down further already");
	ASSERT_TRUE(is_level(variant->level));
}

FIXTURE_TEARDOWN(lockdown)
{
}

TEST_F(lockdown, only_registers_are_refused)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	int fd;

	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	counted_loop(fd, 0, LOOPS);
	EXPECT_EQ(LOOP_INSTRUCTIONS(LOOPS), read_value(fd));
	close(fd);

	attr.exclude_kernel = 0;
	attr.sample_period = 100003;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_PHYS_ADDR;
	fd = perf_open(&attr, -1, 0, -1, 0);
	EXPECT_LE(0, fd);
	close(fd);

	attr.sample_type = PERF_SAMPLE_REGS_INTR;
	attr.sample_regs_intr = 1 << 8;		/* PERF_REG_X86_IP */
	fd = perf_open(&attr, -1, 0, -1, 0);
	EXPECT_EQ(variant->registers, fd < 0 ? errno : 0);
	close(fd);
}

/* Read-only files remain readable, like other files of debugfs. */
TEST_F(lockdown, explanations_stay)
{
	if (!on_rpmu())
		SKIP(return, "the built-in driver reports no reasons");
	EXPECT_LE(0, open("/sys/kernel/debug/rpmu/refusals", O_RDONLY));
	EXPECT_LE(0, open("/sys/kernel/debug/rpmu/cpu0/schedule", O_RDONLY));
}

TEST_HARNESS_MAIN
