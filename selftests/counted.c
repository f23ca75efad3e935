// SPDX-License-Identifier: GPL-2.0
/*
 * Counts and holds events for the shell tests.
 *
 *	counted check		count a known loop; exit 0 if the count is exact
 *	counted hold FILE	count this task until it is killed; create FILE
 *				when the event is enabled
 *	counted hold-cpu FILE	the same with an event of CPU 0
 *	counted reads N		count all instructions and read the count N
 *				times; exit 0 if it never decreases and never
 *				jumps
 *	counted branches N	make N passes of branch_loop(), without an event
 *	counted stuck FILE	open and close a pinned event, create FILE, and get
 *				stuck in an ioctl on a software event
 *	counted stuck-open FILE	the same, but do not close the pinned event
 *	counted page		mmap an event; exit 0 if its page has no index
 *				for RDPMC
 *	counted rdpmc		execute RDPMC without an event; exit 0 if it does
 *				not fault
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "perf_util.h"

#define LOOPS	100000UL

static int check(void)
{
	__u64 count;
	bool exact = counts_exactly(LOOPS, &count);

	if (count == NO_COUNT)
		printf("perf_event_open: %s\n", strerror(errno));
	else
		printf("%llu instructions, %llu expected\n", count, LOOP_INSTRUCTIONS(LOOPS));
	return !exact;
}

static int hold(struct perf_event_attr *attr, bool per_cpu, const char *path)
{
	int fd;

	attr->disabled = 0;
	fd = perf_open(attr, per_cpu ? -1 : 0, per_cpu ? 0 : -1, -1, 0);
	if (fd < 0) {
		printf("perf_event_open: %s\n", strerror(errno));
		return 1;
	}
	if (open(path, O_CREAT | O_WRONLY, 0600) < 0) {
		printf("%s: %s\n", path, strerror(errno));
		return 1;
	}
	for (;;)
		pause();
}

static bool make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	if (fd < 0)
		printf("%s: %s\n", path, strerror(errno));
	else
		close(fd);
	return fd >= 0;
}

/*
 * Waits until rpmu may disable its probes, a second after the pinned event has
 * enabled them, and gets stuck in a probed function.
 */
static int stick(struct perf_event_attr *attr, bool keep_open, const char *path)
{
	struct perf_event_attr software =
		counting_user(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	void *page = page_that_never_comes();
	int fd, pinned;

	software.sample_period = 1000000;
	fd = perf_open_self(&software, -1);
	attr->pinned = 1;
	pinned = perf_open_self(attr, -1);
	if (!page || fd < 0 || pinned < 0) {
		printf("no page, or no event: %s\n", strerror(errno));
		return 1;
	}
	if (!keep_open)
		close(pinned);
	usleep(1500000);
	if (!make_file(path))
		return 1;
	ioctl(fd, PERF_EVENT_IOC_PERIOD, page);
	printf("the ioctl has returned: %s\n", strerror(errno));
	return 1;
}

/* Returns 0 if it has none, 1 if it has one, and 2 if there is no page. */
static int page_has_index(struct perf_event_attr *attr)
{
	struct perf_event_mmap_page *page;
	int fd;

	attr->disabled = 0;
	fd = perf_open_self(attr, -1);
	if (fd < 0)
		return 2;
	page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return 2;
	return page->index || page->cap_user_rdpmc;
}

static int reads(unsigned long n)
{
	struct perf_event_attr attr =
		counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	__u64 before, now;
	int fd;

	attr.disabled = 0;
	fd = perf_open_self(&attr, -1);
	if (fd < 0) {
		printf("perf_event_open: %s\n", strerror(errno));
		return 1;
	}
	for (before = read_value(fd); n; n--, before = now) {
		now = read_value(fd);
		/* At most the count of a second, even if other tasks run in between. */
		if (now - before > 10000000000ULL) {
			printf("%llu, then %llu\n", before, now);
			return 1;
		}
		/* A different number of instructions each time. */
		branch_loop(1 + n % 7);
	}
	return 0;
}

static void on_fault(int sig)
{
	(void)sig;
	_exit(1);
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);

	if (argc == 2 && !strcmp(argv[1], "check"))
		return check();
	if (argc == 3 && !strcmp(argv[1], "hold"))
		return hold(&attr, false, argv[2]);
	if (argc == 3 && !strcmp(argv[1], "hold-cpu"))
		return hold(&attr, true, argv[2]);
	if (argc == 3 && !strcmp(argv[1], "stuck"))
		return stick(&attr, false, argv[2]);
	if (argc == 3 && !strcmp(argv[1], "stuck-open"))
		return stick(&attr, true, argv[2]);
	if (argc == 2 && !strcmp(argv[1], "page"))
		return page_has_index(&attr);
	if (argc == 3 && !strcmp(argv[1], "reads"))
		return reads(strtoul(argv[2], NULL, 0));
	if (argc == 3 && !strcmp(argv[1], "branches")) {
		branch_loop(strtoul(argv[2], NULL, 0));
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "rdpmc")) {
		signal(SIGSEGV, on_fault);
		rdpmc(0);
		return 0;
	}
	fprintf(stderr,
		"usage: counted check | hold FILE | hold-cpu FILE | stuck FILE | stuck-open FILE | page | reads N | branches N | rdpmc\n");
	return 2;
}
