// SPDX-License-Identifier: GPL-2.0
/*
 * The first, the second, the third … allocation that an operation makes fails,
 * until one run of it makes no more: Documentation/fault-injection of the
 * kernel, "fail-nth".
 *
 *	fail_nth load FILE	insmod, from the built-in driver
 *	fail_nth open		perf_event_open of events and groups of all kinds
 *
 * After each, events count as if nothing had been. Exit status 4: the kernel
 * has no fault injection.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>

#include "../perf_util.h"

#define FAIL_NTH	"/proc/self/fail-nth"
#define LOOPS		1000UL

static bool fail_nth(unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return write_line(FAIL_NTH, text);
}

/* Has it come to that failure? Switches the waiting for it off. */
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

/* What insmod may say of an allocation that failed. */
static bool of_memory(int err)
{
	return err == ENOMEM || err == EFAULT || err == EBADMSG || err == ENOEXEC;
}

static int load(const char *path)
{
	unsigned int n, failed = 0;
	int file = open(path, O_RDONLY | O_CLOEXEC), err;
	bool hit = true;

	for (n = 1; hit; n++) {
		if (!fail_nth(n))
			return 4;
		err = syscall(SYS_finit_module, file, "", 0) ? errno : 0;
		hit = injected();
		if (err) {
			failed++;
			if (on_rpmu()) {
				printf("# failure %u: %s, and rpmu is there\n", n, strerror(err));
				return 1;
			}
		}
		if (err && (!hit || !of_memory(err))) {
			printf("# failure %u%s: %s\n", n, hit ? "" : " was not", strerror(err));
			return 1;
		}
		if (!counts(n))
			return 1;
		if (!err && syscall(SYS_delete_module, "rpmu", O_NONBLOCK)) {
			printf("# failure %u: unload: %s\n", n, strerror(errno));
			return 1;
		}
		if (!(n % 50)) {
			printf("# %u\n", n);
			fflush(stdout);
		}
	}
	printf("# %u allocations, %u times loading was refused\n", n - 2, failed);
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
	/* The failed one is none. */
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
	};
	unsigned int kind, size, n, total = 0, failed = 0;
	bool hit;
	int err;

	attrs[1].inherit = 1;
	attrs[2].config1 = 0x10001;
	for (kind = 0; kind < 4; kind++) {
		for (size = 1; size <= 4; size += 3) {
			int usual = open_group(&attrs[kind], size);

			for (n = 1, hit = true; hit; n++) {
				if (!fail_nth(n))
					return 4;
				err = open_group(&attrs[kind], size);
				hit = injected();
				total += hit;
				failed += err == ENOMEM;
				if (err != usual && !(hit && err == ENOMEM)) {
					printf("# kind %u, %u events, failure %u: %s\n", kind,
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
	if (argc == 3 && !strcmp(argv[1], "load"))
		return load(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "open"))
		return open_all();
	fprintf(stderr, "usage: fail_nth load FILE | open\n");
	return 2;
}
