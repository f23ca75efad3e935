// SPDX-License-Identifier: GPL-2.0
/*
 * Uses the PMU like KVM, BPF and Intel PT on random CPUs, until SIGTERM: enters
 * guests, takes branch snapshots and raises PT's interrupt. vm_entry.ko imitates KVM
 * and BPF, tracers.ko imitates PT; both must be loaded, tracers.ko only if software
 * can set PT's status bit on the CPU.
 *
 *	neighbours SEED [counters]
 *
 * With "counters", the guests have their own counters, whose events keep rpmu
 * from being unloaded. The exit status is 1 if something that must work fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "kselftest.h"
#include "../perf_util.h"
#include "../vm_entry/vm_entry.h"

#define DEVICE		"/dev/vm_entry"
#define RAISE		"/sys/module/tracers/parameters/raise"
#define PAUSE_NS	5000000
#define PERIOD		20000
#define LOOPS		1000
#define COUNTERS	2

static struct {
	unsigned long entries, switched, snapshots, in_writes, counters, refused, interrupts;
} did;

static bool failed(const char *what)
{
	printf("# neighbours: %s: %s\n", what, strerror(errno));
	return false;
}

static bool enter_guest(int fd)
{
	struct vm_entry_run run = { .loops = 1 + rand() % LOOPS, .defer = rand() % 2 };

	if (ioctl(fd, VM_ENTRY_RUN, &run))
		return failed("VM_ENTRY_RUN");
	did.entries++;
	did.switched += run.switched;
	return true;
}

static bool snapshot(int fd)
{
	if (ioctl(fd, VM_ENTRY_SNAPSHOT, 1 + rand() % LOOPS))
		return failed("VM_ENTRY_SNAPSHOT");
	did.snapshots++;
	return true;
}

/*
 * Runs a guest that uses counters: opens them, enters the guest, reads them, sets
 * other periods, and enters the guest again. If pinned events of others occupy all
 * counters, the guest gets none.
 */
static bool use_counters(int fd)
{
	struct vm_entry_open open = { .type = PERF_TYPE_RAW, .period = PERIOD };
	struct vm_entry_event event;
	unsigned int i, opened = 0;
	bool fine = true;

	for (i = 0; i < COUNTERS; i++) {
		open.config = i % 2 ? RAW_BRANCHES : RAW_INSTRUCTIONS;
		open.flags = rand() % 4;
		if (ioctl(fd, VM_ENTRY_OPEN, &open) >= 0)
			opened++;
		else
			did.refused++;
	}
	did.counters += opened;
	fine = enter_guest(fd);
	for (i = 0; i < opened && fine; i++) {
		event = (struct vm_entry_event){ .nr = i };
		fine = ioctl(fd, VM_ENTRY_PAUSE, &event) == 0 || failed("VM_ENTRY_PAUSE");
		event.value = PERIOD / 2;
		fine = fine && (ioctl(fd, VM_ENTRY_PERIOD, &event) == 0 ||
				failed("VM_ENTRY_PERIOD"));
		fine = fine && (ioctl(fd, VM_ENTRY_ENABLE, &event) == 0 ||
				failed("VM_ENTRY_ENABLE"));
	}
	fine = fine && enter_guest(fd);
	if (ioctl(fd, VM_ENTRY_CLOSE, 0))
		return failed("VM_ENTRY_CLOSE");
	return fine;
}

/* One of this many passes takes a snapshot at each write of a register on its CPU. */
#define IN_WRITES	8

static bool pass(int fd, bool counters)
{
	bool in_writes = rand() % IN_WRITES == 0, fine;
	int calls;

	/* If the CPU is offline, try it in another pass. */
	if (!run_on(rand() % sysconf(_SC_NPROCESSORS_CONF)))
		return true;
	if (in_writes)
		ioctl(fd, VM_ENTRY_SNAPSHOTS, 1);
	fine = enter_guest(fd) && snapshot(fd) && (!counters || use_counters(fd));
	if (in_writes) {
		calls = ioctl(fd, VM_ENTRY_SNAPSHOTS, 0);
		did.in_writes += calls > 0 ? calls : 0;
	}
	if (fine && access(RAISE, W_OK) == 0) {
		fine = write_line(RAISE, "1") || failed(RAISE);
		did.interrupts++;
	}
	return fine;
}

int main(int argc, char **argv)
{
	bool counters = argc == 3 && !strcmp(argv[2], "counters"), fine = true;
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	sigset_t end;
	int fd;

	if (argc < 2 || argc > 3 || (argc == 3 && !counters)) {
		fprintf(stderr, "usage: neighbours SEED [counters]\n");
		return 2;
	}
	srand(atoi(argv[1]));
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return failed(DEVICE), 1;
	do {
		fine = pass(fd, counters);
	} while (fine && sigtimedwait(&end, NULL, &pause) != SIGTERM);
	/* Without an error, there has been at least one VM entry and one snapshot. */
	if (fine && (!did.entries || !did.snapshots)) {
		errno = ENODATA;
		fine = failed("no VM entry");
	}
	printf("# %lu VM entries, %lu of them with other counters\n", did.entries, did.switched);
	printf("# %lu branch snapshots, and %lu in writes of registers\n", did.snapshots,
	       did.in_writes);
	printf("# %lu counters of guests, %lu refused\n", did.counters, did.refused);
	printf("# %lu times PT's interrupt\n", did.interrupts);
	return fine ? 0 : 1;
}
