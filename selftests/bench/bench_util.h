/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers of the benchmark's programs. */
#ifndef RPMU_BENCH_UTIL_H
#define RPMU_BENCH_UTIL_H

#include <errno.h>
#include <sys/wait.h>

#include "../perf_util.h"

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		strerror(errno));
	exit(errno == EOPNOTSUPP ? 4 : 1);
}

static inline int must_open(struct perf_event_attr *attr, pid_t pid)
{
	int fd = perf_open(attr, pid, -1, -1, 0);

	if (fd < 0)
		die("perf_event_open");
	return fd;
}

static inline void spin_ms(int ms)
{
	__u64 end = now_ns() + ms * 1000000ULL;

	do {
		branch_loop(1000);
	} while (now_ns() < end);
}

#endif
