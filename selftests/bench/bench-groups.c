// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on a CPU with many groups of events, to measure how their cost
 * grows with the number of groups.
 *
 *	bench-groups switch CONTEXT GROUPS SIZE [SIBLING]
 *	bench-groups wake CONTEXT GROUPS SIZE [SIBLING]
 *	bench-groups rotate CONTEXT GROUPS SIZE [SIBLING]
 *	bench-groups open CONTEXT GROUPS SIZE [SIBLING]
 *	bench-groups exec task GROUPS SIZE [SIBLING]
 *	bench-groups cgroup-switch CGROUPS EVENTS
 *	bench-groups cgroup-rotate CGROUPS EVENTS
 *
 * In "switch" the task is switched out and back at once, in "wake" after more
 * than a rotation interval. CONTEXT is "task" (the groups count the measured task)
 * or "cpu" (they count CPU 0); SIZE is the number of events in a group. With
 * SIBLING, a task on the core's other thread has events that rotate as well:
 * "plain" ones, or "corrupting" ones, for which the threads alternate.
 *
 * Runs on CPU 0; control groups are below /tmp/bench-cgroups, where measure has
 * mounted their hierarchy. bench_mark.ko marks operations of processes with the
 * name "bench-task": a process takes the name after the setup and warm-up.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "bench_util.h"

#define MARKED		"bench-task"
#define CGROUPS		"/tmp/bench-cgroups"
#define SWITCHES	16
/* A switch takes longer while the other thread has its turn: measure over many turns. */
#define SWITCHES_BESIDE	512
#define TURNS		32
#define OPENS		8
#define EXECS		8

/* Events that every general-purpose counter can count, and no fixed counter. */
static const __u64 general[] = {
	0x00c4, 0x01c4, 0x02c4, 0x08c4, 0x10c4, 0x20c4, 0x40c4,
};

static int turn_ms;

static void marked(bool on)
{
	prctl(PR_SET_NAME, on ? MARKED : "unmarked");
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu, int leader,
		      unsigned long flags)
{
	int fd = perf_open(attr, pid, cpu, leader, flags);

	if (fd < 0)
		die("perf_event_open");
	return fd;
}

/* Opens group number @nr of the task, or of CPU 0 if @task is -1. */
static int open_group(int nr, int size, pid_t task, bool on_exec)
{
	const int kinds = sizeof(general) / sizeof(*general);
	int leader = -1, i;

	for (i = 0; i < size; i++) {
		struct perf_event_attr attr =
			counting(PERF_TYPE_RAW, general[(nr * size + i) % kinds]);
		int fd;

		attr.disabled = on_exec && leader < 0;
		attr.enable_on_exec = attr.disabled;
		fd = open_event(&attr, task, task < 0 ? 0 : -1, leader, 0);
		if (leader < 0)
			leader = fd;
	}
	return leader;
}

/* Writes a byte to a pipe or reads one from it. */
static void hand_over(int fd, bool write_it)
{
	char byte = 0;

	if (write_it ? write(fd, &byte, 1) != 1 : read(fd, &byte, 1) != 1)
		die("a pipe");
}

/*
 * Marks @times switches out of this task and back; it stays out for @out_ms. The
 * task in between joins the control group of the file @others_cgroup, if not NULL.
 */
static void switches(int times, int out_ms, const char *others_cgroup)
{
	int to[2], fro[2], i;
	pid_t other;

	if (pipe(to) || pipe(fro))
		die("pipe");
	other = fork();
	if (other < 0)
		die("fork");
	if (!other) {
		if (others_cgroup && !write_line(others_cgroup, "0"))
			die(others_cgroup);
		for (;;) {
			hand_over(to[0], false);
			if (out_ms)
				usleep(out_ms * 1000);
			hand_over(fro[1], true);
		}
	}
	for (i = -4; i <= times; i++) {
		if (!i)
			marked(true);
		if (i == times)
			marked(false);
		hand_over(to[1], true);
		hand_over(fro[0], false);
	}
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

static void rotations(int times)
{
	spin_ms(4 * turn_ms);
	marked(true);
	spin_ms(times * turn_ms);
	marked(false);
}

/* Starts a task with eight events on the core's other thread. */
static pid_t start_sibling(const char *kind)
{
	static const __u64 corrupting[] = { 0x01d1, 0x02d1, 0x81d0, 0x82d0 };
	pid_t sibling = fork_helper();
	int i;

	if (sibling < 0)
		die("fork");
	if (sibling) {
		usleep(100000);
		return sibling;
	}
	if (!run_on(1))
		die("the core's other thread");
	for (i = 0; i < 8; i++) {
		bool corrupts = !strcmp(kind, "corrupting") && i % 2;
		struct perf_event_attr attr =
			counting(PERF_TYPE_RAW,
				 corrupts ? corrupting[i / 2] : general[i % 7]);

		attr.disabled = 0;
		must_open(&attr, 0);
	}
	for (;;)
		branch_loop(1000);
}

/*
 * Executes the operation in the measured task. All events are opened before the
 * task runs, because opening an event in a running task would schedule its
 * events.
 */
static void in_task(const char *op, bool task, int groups, int size, bool has_sibling)
{
	int i;

	if (!strcmp(op, "switch")) {
		switches(has_sibling ? SWITCHES_BESIDE : SWITCHES, 0, NULL);
	} else if (!strcmp(op, "wake")) {
		switches(SWITCHES, turn_ms + turn_ms / 2, NULL);
	} else if (!strcmp(op, "rotate")) {
		rotations(TURNS);
	} else if (!strcmp(op, "open")) {
		for (i = -1; i < OPENS; i++) {
			marked(i >= 0);
			close(open_group(groups, size, task ? 0 : -1, false));
		}
		marked(false);
	} else {
		marked(true);
		execl("/proc/self/exe", "bench-groups", "nothing", NULL);
		die("exec");
	}
}

static int op_groups(const char *op, bool task, int groups, int size,
		     const char *sibling_kind)
{
	bool exec = !strcmp(op, "exec");
	int times = exec ? EXECS : 1, status = 0, i;
	pid_t sibling = sibling_kind ? start_sibling(sibling_kind) : 0;

	if (!strcmp(op, "open"))
		groups--;
	while (times-- && !status) {
		int go[2];
		pid_t pid;

		if (!run_on(0))
			die("CPU 0");
		if (pipe2(go, O_CLOEXEC))
			die("pipe");
		pid = fork_helper();
		if (pid < 0)
			die("fork");
		if (!pid) {
			marked(false);
			hand_over(go[0], false);
			in_task(op, task, groups, size, sibling);
			exit(0);
		}
		/* Let the task sleep in read() while its events are opened. */
		usleep(20000);
		/*
		 * Without an event of the task, the CPU's groups could stay
		 * during a switch.
		 */
		if (!task) {
			struct perf_event_attr attr = counting(PERF_TYPE_RAW, 0x00c4);

			attr.disabled = 0;
			attr.pinned = 1;
			open_event(&attr, pid, -1, -1, 0);
		}
		for (i = 0; i < groups; i++)
			open_group(i, size, task ? pid : -1, exec);
		/* Leave the CPU, so that this process does not preempt the task. */
		if (!run_on(1))
			die("the core's other thread");
		hand_over(go[1], true);
		if (waitpid(pid, &status, 0) != pid)
			die("waitpid");
		/* Close the pipe and all events. */
		if (times)
			close_range(go[0], ~0U, 0);
	}
	if (sibling)
		kill(sibling, SIGKILL);
	return status;
}

/*
 * Measures a task in the first of many control groups; another task is in the
 * second one.
 */
static void op_cgroup(bool rotate, int groups, int events)
{
	char path[64], other[64];
	int i, event;

	for (i = 0; i < groups; i++) {
		int cgroup;

		snprintf(path, sizeof(path), CGROUPS "/%d", i);
		if (mkdir(path, 0755))
			die("mkdir");
		cgroup = open(path, O_RDONLY);
		if (cgroup < 0)
			die(path);
		for (event = 0; event < events; event++) {
			struct perf_event_attr attr =
				counting(PERF_TYPE_RAW, general[event]);

			attr.disabled = 0;
			open_event(&attr, cgroup, 0, -1, PERF_FLAG_PID_CGROUP);
		}
		close(cgroup);
	}
	if (!write_line(CGROUPS "/0/cgroup.procs", "0"))
		die("cgroup.procs");
	snprintf(other, sizeof(other), CGROUPS "/1/cgroup.procs");
	if (rotate)
		rotations(TURNS);
	else
		switches(SWITCHES, 0, other);
	write_line(CGROUPS "/cgroup.procs", "0");
	for (i = 0; i < groups; i++) {
		snprintf(path, sizeof(path), CGROUPS "/%d", i);
		if (rmdir(path))
			die(path);
	}
}

static int print_usage(void)
{
	fputs("arguments: switch|wake|rotate|open|exec task|cpu GROUPS SIZE [plain|corrupting],\n"
	      "or cgroup-switch|cgroup-rotate CGROUPS EVENTS\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct rlimit files = { 16384, 16384 };
	char interval[16];

	marked(false);
	if (argc == 2 && !strcmp(argv[1], "nothing"))
		return 0;
	if (argc < 4 || (strncmp(argv[1], "cgroup-", 7) && argc < 5))
		return print_usage();
	if (!run_on(0) || !read_line(MUX_INTERVAL, interval, sizeof(interval)))
		die(MUX_INTERVAL);
	turn_ms = atoi(interval);
	if (setrlimit(RLIMIT_NOFILE, &files))
		die("setrlimit");
	if (!strncmp(argv[1], "cgroup-", 7)) {
		op_cgroup(!strcmp(argv[1], "cgroup-rotate"), atoi(argv[2]), atoi(argv[3]));
		return 0;
	}
	return op_groups(argv[1], !strcmp(argv[2], "task"), atoi(argv[3]), atoi(argv[4]),
			 argc > 5 ? argv[5] : NULL);
}
