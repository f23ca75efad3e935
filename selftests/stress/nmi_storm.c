// SPDX-License-Identifier: GPL-2.0
/*
 * Overflows as fast as possible: samples with an event on every general-purpose
 * counter of every CPU until the CPUs have had PMIS interrupts. The periods are
 * 1 to 100, or the shortest that the driver accepts. Where the PMU has PEBS, half
 * of the events are precise, some with buffered records. The kernel's rate limits
 * stay on, as little but the handler would run without them.
 *
 *	nmi_storm PMIS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "../perf_util.h"

/*
 * RAW_BRANCHES with a period of 1 would use the branch trace store and is
 * refused; this event uses a counter.
 */
#define TAKEN_BRANCHES	0x20c4
#define MAX_EVENTS	(8 * 16)
#define SECONDS		600

int main(int argc, char **argv)
{
	static const __u64 periods[] = { 1, 2, 3, 5, 10, 33, 64, 100 };
	unsigned int cpus = sysconf(_SC_NPROCESSORS_ONLN), generals = gp_counters();
	unsigned int cpu, i, events = 0, left;
	unsigned long goal, start = pmis(), now = start;
	int fds[MAX_EVENTS], status = 0, max_precise = 0;
	pid_t children[16];
	time_t end = time(NULL) + SECONDS;
	char text[16];

	if (argc != 2) {
		fprintf(stderr, "usage: nmi_storm PMIS\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	goal = strtoul(argv[1], NULL, 0);
	if (read_line(CPU_PMU "/caps/max_precise", text, sizeof(text)))
		max_precise = atoi(text);
	/* Keep each CPU busy. */
	for (cpu = 0; cpu < cpus && cpu < 16; cpu++) {
		children[cpu] = fork_helper();
		if (!children[cpu]) {
			run_on(cpu);
			for (;;)
				branch_loop(1000);
		}
	}
	for (cpu = 0; cpu < cpus; cpu++) {
		for (i = 0; i < generals && events < MAX_EVENTS; i++) {
			bool each = periods[i % 8] == 1;
			struct perf_event_attr attr =
				counting(PERF_TYPE_RAW, each ? TAKEN_BRANCHES : RAW_BRANCHES);

			attr.sample_period = periods[i % 8];
			attr.exclude_kernel = i % 2;
			if (max_precise && !each && i % 4 > 1) {
				attr.precise_ip = 1 + i % max_precise;
				attr.wakeup_events = i % 4 == 2;
			}
			do {
				fds[events] = perf_open(&attr, -1, cpu, -1, 0);
			} while (fds[events] < 0 && errno == EINVAL &&
				 (attr.sample_period *= 2) < 1000);
			if (fds[events] < 0) {
				printf("# event %u of CPU %u: %s\n", i, cpu, strerror(errno));
				status = 1;
				continue;
			}
			events++;
		}
	}
	if (!events)
		goal = 0;
	/* Enable throttled events again, and disable some while others overflow. */
	for (left = 0; now - start < goal && time(NULL) < end; left = (left + 1) % events) {
		ioctl(fds[left], PERF_EVENT_IOC_ENABLE, 0);
		usleep(1000);
		if (left % 3 == 0)
			ioctl(fds[(left + 1) % events], PERF_EVENT_IOC_DISABLE, 0);
		now = pmis();
	}
	for (i = 0; i < events; i++)
		close(fds[i]);
	for (cpu = 0; cpu < cpus && cpu < 16; cpu++)
		kill(children[cpu], SIGKILL);
	printf("# %lu PMIs\n", now - start);
	return status || now - start < goal;
}
