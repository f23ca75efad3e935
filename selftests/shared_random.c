// SPDX-License-Identifier: GPL-2.0
/*
 * Random operations on equal and different events, with counts that must be
 * identical.
 *
 *	shared_random [STEPS [SEED]]
 *
 * A round opens and closes events of this task, of CPUs and of control groups,
 * alone, in groups, inherited, pinned, exclusive, or with samples by period or
 * frequency; starts all of them in one system call (prctl); makes random steps:
 * loops, on this or another CPU, in this task, in a child before or meanwhile, in
 * this control group or another; reads; changes of some events; a CPU that goes
 * offline and comes back; and stops all events in one system call. In some rounds,
 * sampled events are throttled. In between, events that were not changed have
 * counted the same, if they count the same kind of instructions at the same place.
 * All count user mode only, so it does not matter that the kernel starts one after
 * the other.
 *
 * Four tests:
 *
 *	equal	equal events of the same task, CPU or control group have identical
 *		counts. Some events leave out guests: they count the same on
 *		another counter.
 *	sums	the counts of a task with its children are the sum of the CPUs'
 *		counts, and these are the sums of the control groups' counts. Only
 *		in an emulated machine, where nothing else runs.
 *	fit	as long as there are enough counters, events count all the time.
 *	pages	counts that are read by RDPMC are between those of read() before
 *		and after.
 *
 * The same seed makes the same steps.
 *
 * On Sandy Bridge to Haswell with two threads per core, the built-in driver confuses
 * the constraints of events: constraints_after_another_has_left of ht_exclusion.c. A
 * test that fails there is skipped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kselftest.h"
#include "perf_util.h"

SHARED_COUNTERS()

#define SLOTS		24
#define MAX_CPUS	2
#define CGROUPS		2
#define MOST_STEPS	16
#define STEPS		5000
/* On a driver that shares no counters, where the steps only test this program. */
#define FEW_STEPS	1000
#define MAX_REPORTS	5

/* The meaning of an event: events with the same meaning have the same count. */
enum meaning { INSTRUCTIONS, BRANCHES, RETURNS, MEANINGS };

static const struct key {
	enum meaning meaning;
	bool no_guests;
} keys[] = {
	{ INSTRUCTIONS, false }, { INSTRUCTIONS, true }, { BRANCHES, false },
	{ BRANCHES, true }, { RETURNS, false },
};

/* Where an event counts. */
enum place {
	TASK,			/* this task on any CPU */
	TASK_HERE,		/* this task on one CPU */
	CPU,			/* any task on one CPU */
	CGROUP,			/* any task of a control group on one CPU */
	PLACES,
};

struct event {
	int fd;			/* -1: a free slot */
	unsigned int key;
	enum place place;
	int cpu;
	unsigned int cgroup;
	int leader;		/* its slot, or -1 */
	__u64 period;		/* or frequency */
	bool by_frequency, inherit, pinned, exclusive;
	bool may_fail;		/* pinned, or a sibling of such an event */
	bool alone;		/* exclusive, or a sibling of such an event: shares no counter */
	bool changed;		/* in this round */
	bool limited;		/* may be disabled by its limit of samples in any round */
	struct perf_event_mmap_page *page;
	struct one_count last;	/* at the end of the previous round */
};

static struct event events[SLOTS];
static int cpus;
static int places = CGROUP;	/* without CGROUP, where it cannot be had */
static bool shares;		/* equal events share a counter */
static bool confuses;		/* the driver confuses constraints: see above */
static unsigned int most;		/* the maximum of open events in this round */
static unsigned int widest;		/* the most counters that a CPU needed in this round */
static char taken[MOST_STEPS + 1];	/* the steps of this round: 'a' is case 0 of step() */
static bool throttled;		/* sampled events are, in this round */
static pid_t child;		/* which works at the same time, or 0 */
static char hierarchy[32] = "/tmp/cgroup-XXXXXX";
static int cgroups[CGROUPS];	/* their directories */
static unsigned long steps, rounds, compared, summed, full, rotated;
static unsigned long paged, offline, slow, moved;
/* The events opened, closed, started, stopped, changed or read, and moves, forks and hotplugs. */
static unsigned long operations;
static unsigned long wrong_equal, wrong_sums, wrong_fit, wrong_page;
static __u64 state;
static __u64 seed;

/* xorshift64* */
static unsigned int below(unsigned int n)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1dULL >> 33) % n;
}

static bool one_in(unsigned int n)
{
	return !below(n);
}

static void die(const char *what)
{
	ksft_exit_fail_msg("%s: %s (seed %llu, step %lu)\n", what, strerror(errno), seed, steps);
}

/* Executes passes of two instructions, one of them a branch, and then some of branch_loop(). */
static void work(unsigned int passes)
{
	unsigned long n = 1 + passes;

	asm volatile("1:\n\tdec %[n]\n\tjnz 1b" : [n] "+r" (n) : : "cc");
	branch_loop(1 + passes / 8);
}

static __u64 config_of(enum meaning meaning)
{
	switch (meaning) {
	case INSTRUCTIONS:
		return RAW_INSTRUCTIONS;
	case BRANCHES:
		return RAW_BRANCHES;
	default:
		return is_amd() ? 0x00c8 : 0x08c4;
	}
}

static bool counts_on(const struct event *event, int cpu)
{
	return event->place == TASK || event->cpu == cpu;
}

/* Returns the number of counters that the events need on a CPU if none uses a fixed one. */
static unsigned int need_on(int cpu)
{
	unsigned int key, need = 0;
	int i;

	for (key = 0; key < ARRAY_SIZE(keys); key++) {
		unsigned int all = 0, sample = 0, alone = 0;

		for (i = 0; i < SLOTS; i++) {
			if (events[i].fd < 0 || events[i].key != key || !counts_on(&events[i], cpu))
				continue;
			all++;
			alone += events[i].alone;
			sample += !events[i].alone && events[i].period;
		}
		if (shares)
			need += alone + (sample || all == alone ? sample : 1);
		else
			need += all;
	}
	return need;
}

static void note_need(void)
{
	int cpu, i;

	for (i = 0; i < SLOTS; i++)
		if (events[i].fd >= 0 && events[i].exclusive)
			widest = -1U;
	for (cpu = 0; cpu < cpus; cpu++)
		if (need_on(cpu) > widest)
			widest = need_on(cpu);
}

static unsigned int in_use(void)
{
	unsigned int used = 0;
	int i;

	for (i = 0; i < SLOTS; i++)
		used += events[i].fd >= 0;
	return used;
}

/* Returns a random open event, or NULL. */
static struct event *any_event(void)
{
	int i, first = below(SLOTS);

	for (i = 0; i < SLOTS; i++)
		if (events[(first + i) % SLOTS].fd >= 0)
			return &events[(first + i) % SLOTS];
	return NULL;
}

static int slot_of(const struct event *event)
{
	return event - events;
}

static unsigned int members(int leader)
{
	unsigned int nr = 1;
	int i;

	for (i = 0; i < SLOTS; i++)
		nr += events[i].fd >= 0 && events[i].leader == leader;
	return nr;
}

/* Marks the event as changed, and if it is a leader its siblings. */
static void change(struct event *event)
{
	int i;

	event->changed = true;
	for (i = 0; i < SLOTS; i++)
		if (events[i].leader == slot_of(event))
			events[i].changed = true;
}

static unsigned int frequency(void)
{
	return 100 + below(2000);
}

/* Opens an event in a free slot, in a group one time in four. */
static void open_event(bool enabled)
{
	struct event *event = NULL, *leader = any_event();
	struct perf_event_attr attr;
	int i;

	for (i = 0; i < SLOTS && !event; i++)
		if (events[i].fd < 0)
			event = &events[i];
	if (!event || in_use() >= most)
		return;
	*event = (struct event){
		.fd = -1,
		.key = below(ARRAY_SIZE(keys)),
		.place = below(places),
		.cpu = below(cpus),
		.cgroup = below(CGROUPS),
		.leader = -1,
		.inherit = one_in(2),
		.pinned = one_in(8),
		.exclusive = one_in(128),
		.changed = true,
	};
	if (one_in(4)) {
		event->by_frequency = one_in(4);
		event->period = event->by_frequency ? frequency() : 500 + below(20000);
	}
	/* Often one that must have the same count as another, or adds up to a count with it. */
	if (leader && one_in(2)) {
		if (!one_in(4)) {
			event->place = leader->place;
			event->cpu = leader->cpu;
			event->cgroup = leader->cgroup;
			event->inherit = leader->inherit;
		}
		do
			event->key = below(ARRAY_SIZE(keys));
		while (keys[event->key].meaning != keys[leader->key].meaning);
	}
	if (leader && one_in(4) && leader->leader < 0 && members(slot_of(leader)) < 3) {
		event->place = leader->place;
		event->cpu = leader->cpu;
		event->cgroup = leader->cgroup;
		event->inherit = leader->inherit;
		event->leader = slot_of(leader);
		event->pinned = false;
		event->exclusive = false;
		event->period = 0;
	}
	event->may_fail = event->pinned || (event->leader >= 0 && leader->may_fail);
	event->alone = event->exclusive || (event->leader >= 0 && leader->exclusive);
	attr = counting_user(PERF_TYPE_RAW, config_of(keys[event->key].meaning));
	attr.exclude_guest = keys[event->key].no_guests;
	attr.freq = event->by_frequency;
	attr.sample_period = event->period;
	attr.inherit = event->inherit;
	attr.pinned = event->pinned;
	attr.exclusive = event->exclusive;
	attr.disabled = !enabled;
	event->fd = perf_open(&attr, event->place == CGROUP ? cgroups[event->cgroup] :
				     event->place == CPU ? -1 : 0,
			      event->place == TASK ? -1 : event->cpu,
			      event->leader < 0 ? -1 : events[event->leader].fd,
			      event->place == CGROUP ? PERF_FLAG_PID_CGROUP : 0);
	/*
	 * The group does not fit, or its leader went with a child: the perf core
	 * exchanges the contexts of a task and its child when it switches between
	 * them.
	 */
	if (event->fd < 0 && errno != EINVAL && errno != ENODEV)
		die("perf_event_open");
	if (event->fd < 0)
		return;
	operations++;
	note_need();
	/* Only the task itself can read its counters, and not those of its children. */
	if (event->place <= TASK_HERE && !event->inherit && one_in(2)) {
		event->page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, event->fd,
				   0);
		if (event->page == MAP_FAILED)
			die("mmap");
	}
}

static void close_event(struct event *event)
{
	int i;

	operations++;
	if (event->page)
		munmap(event->page, sysconf(_SC_PAGESIZE));
	close(event->fd);
	event->fd = -1;
	for (i = 0; i < SLOTS; i++) {
		if (events[i].fd < 0 || events[i].leader != slot_of(event))
			continue;
		events[i].leader = -1;
		events[i].changed |= event->limited || (throttled && event->period);
	}
}

static void go_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
	operations++;
}

/* Waits for the child, if there is one. */
static void reap_child(void)
{
	int status;

	if (!child)
		return;
	if (waitpid(child, &status, 0) != child || status)
		die("waitpid");
	child = 0;
}

/*
 * Starts a child, which works on the CPU that it has or on another. It shares this
 * task's descriptors: with copies of its own, it would keep events open that this
 * task closes.
 */
static void start_child(void)
{
	int cpu = one_in(2) ? (int)below(cpus) : -1;
	unsigned int passes = below(10000);

	reap_child();
	operations++;
	child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, 0);
	if (child < 0)
		die("clone");
	if (child)
		return;
	work(passes / 2);
	if (cpu >= 0)
		go_to_cpu(cpu);
	work(passes / 2);
	_exit(0);
}

static const char *tasks_of(unsigned int cgroup)
{
	static char path[sizeof(hierarchy) + 20];

	snprintf(path, sizeof(path), "%s/%u/cgroup.procs", hierarchy, cgroup);
	return path;
}

static void make_cgroups(void)
{
	char path[sizeof(hierarchy) + 12];
	int i;

	if (!mkdtemp(hierarchy))
		die(hierarchy);
	if (mount("none", hierarchy, "cgroup", 0, "perf_event")) {
		ksft_print_msg("no control groups: %s\n", strerror(errno));
		rmdir(hierarchy);
		return;
	}
	places = PLACES;
	for (i = 0; i < CGROUPS; i++) {
		snprintf(path, sizeof(path), "%s/%d", hierarchy, i);
		if (mkdir(path, 0700))
			die(path);
		cgroups[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (cgroups[i] < 0)
			die(path);
	}
	if (!write_line(tasks_of(0), "0"))
		die(tasks_of(0));
}

static void remove_cgroups(void)
{
	char path[sizeof(hierarchy) + 20];
	int i;

	if (places < PLACES)
		return;
	snprintf(path, sizeof(path), "%s/cgroup.procs", hierarchy);
	write_line(path, "0");
	for (i = 0; i < CGROUPS; i++) {
		close(cgroups[i]);
		snprintf(path, sizeof(path), "%s/%d", hierarchy, i);
		rmdir(path);
	}
	umount(hierarchy);
	rmdir(hierarchy);
}

/* Lets a sampled event have ten samples a tick, at 250 Hz, or as many as it can. */
static void throttle(bool on)
{
	struct sample_limits limits;

	if (on ? !write_line(CPU_PERCENT, "25") || !write_line(SAMPLE_RATE, "2500") :
		 !lift_sample_limits(&limits))
		die("the limits on samples");
	throttled = on;
}

static void change_event(struct event *event)
{
	unsigned int flags = event->leader < 0 && one_in(4) ? PERF_IOC_FLAG_GROUP : 0;

	operations++;
	switch (below(event->period ? 4 : 2)) {
	case 0:
		change(event);
		ioctl(event->fd, one_in(2) ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, flags);
		break;
	case 1:
		if (flags)
			change(event);
		event->changed = true;
		ioctl(event->fd, PERF_EVENT_IOC_RESET, flags);
		break;
	case 2:
		/* It and its siblings stop after this many samples. */
		change(event);
		event->limited = true;
		ioctl(event->fd, PERF_EVENT_IOC_REFRESH, 1 + below(3));
		break;
	default:
		/* Its count is not affected. */
		event->period = event->by_frequency ? frequency() :
						      500 + below(one_in(4) ? 10000000 : 20000);
		if (ioctl(event->fd, PERF_EVENT_IOC_PERIOD, &event->period))
			die("PERF_EVENT_IOC_PERIOD");
	}
}

static void show(int slot, const struct event *event)
{
	ksft_print_msg("event %d: key %u, place %u, CPU %d, group %d, period %llu%s%s%s%s%s%s\n",
		       slot, event->key, event->place, event->cpu, event->leader,
		       event->period, event->inherit ? ", inherited" : "",
		       event->pinned ? ", pinned" : "", event->exclusive ? ", exclusive" : "",
		       event->may_fail ? ", may fail" : "", event->changed ? ", changed" : "",
		       event->limited ? ", limited" : "");
}

static void report(const char *what, const struct event *event, __u64 count, __u64 other)
{
	static unsigned int reports;
	int i;

	if (reports++ >= MAX_REPORTS)
		return;
	ksft_print_msg("seed %llu, step %lu: %s: %llu, %llu expected\n", seed, steps, what, count,
		       other);
	show(-1, event);
	ksft_print_msg("steps %s%s, %u counters needed\n", taken, throttled ? ", throttled" : "",
		       widest);
	if (reports > 1)
		return;
	for (i = 0; i < SLOTS; i++)
		if (events[i].fd >= 0)
			show(i, &events[i]);
}

/* The count of a meaning at a place in this round. */
static struct place_count {
	bool known;
	__u64 count;
	int slot;		/* of the event that has counted so, */
	__u64 enabled;		/* and how long it was enabled */
} counts[MEANINGS][PLACES][2][MAX_CPUS];

/* @which: the control group, or whether children count for a task. */
static struct place_count *count_of(enum meaning meaning, enum place place, unsigned int which,
				    int cpu)
{
	return &counts[meaning][place][place == CPU ? 0 : which][place == TASK ? 0 : cpu];
}

static void check_sum(enum place place, int cpu, __u64 count, __u64 sum)
{
	const struct event of_place = { .place = place, .cpu = cpu, .inherit = true };

	summed++;
	if (sum == count)
		return;
	wrong_sums++;
	report("sum", &of_place, count, sum);
}

/*
 * Checks that the count of each CPU is the count of this task and its children on
 * that CPU, and the sum of the control groups' counts there, and that the sum of the
 * CPUs' counts is the count of this task and its children on any CPU.
 */
static void check_sums(void)
{
	int meaning, cpu;

	for (meaning = 0; meaning < MEANINGS; meaning++) {
		const struct place_count *task = count_of(meaning, TASK, true, 0);
		bool known = task->known;
		__u64 sum = 0;

		for (cpu = 0; cpu < cpus; cpu++) {
			const struct place_count *all = count_of(meaning, CPU, false, cpu);
			const struct place_count *here = count_of(meaning, TASK_HERE, true, cpu);
			const struct place_count *first = count_of(meaning, CGROUP, 0, cpu);
			const struct place_count *second = count_of(meaning, CGROUP, 1, cpu);

			if (all->known && first->known && second->known)
				check_sum(CGROUP, cpu, first->count + second->count, all->count);
			if (all->known && here->known)
				check_sum(TASK_HERE, cpu, here->count, all->count);
			known = known && all->known;
			sum += all->count;
		}
		if (known)
			check_sum(TASK, 0, task->count, sum);
	}
}

/* Checks the counts of this round of all events, or of those that count whatever is on @cpu. */
static void check_events(int cpu)
{
	bool fits = widest <= gp_counters();
	int i;

	memset(counts, 0, sizeof(counts));
	for (i = 0; i < SLOTS; i++) {
		struct event *event = &events[i];
		const struct key *key = &keys[event->key];
		const struct event *leader = event->leader < 0 ? event : &events[event->leader];
		struct one_count now, last = event->last;
		struct place_count *place;

		if (event->fd < 0 || (cpu >= 0 && (event->place < CPU || event->cpu != cpu)))
			continue;
		operations++;
		/* A pinned event without a counter cannot be read. */
		if (!read_one(event->fd, &now)) {
			if (fits) {
				wrong_fit++;
				report("error state", event, 0, 1);
			}
			event->changed = true;
			continue;
		}
		if (cpu < 0)
			event->last = now;
		if (event->changed || event->limited || leader->limited)
			continue;
		now.value -= last.value;
		now.enabled -= last.enabled;
		now.running -= last.running;
		/* A child's pinned event may be in the error state, where it has no time. */
		if (event->may_fail && !fits)
			continue;
		/*
		 * Three kinds of events have different times even if they always had a
		 * counter. An event of the task on one CPU is also enabled while the
		 * task is on another CPU. When a child ends, the perf core drops the
		 * time for which its events have waited since the last switch. The time
		 * of a control group begins before its events count.
		 */
		if (event->place == TASK_HERE || event->place == CGROUP ||
		    (event->place == TASK && event->inherit) ?
		    !fits : now.enabled != now.running) {
			rotated++;
			if (fits) {
				wrong_fit++;
				report("time", event, now.running, now.enabled);
			}
			continue;
		}
		full++;
		place = count_of(key->meaning, event->place,
				 event->place == CGROUP ? event->cgroup : event->inherit,
				 event->cpu);
		if (throttled && leader->period) {
			slow += place->known && now.value < place->count;
			continue;
		}
		if (!place->known) {
			*place = (struct place_count){ true, now.value, i, now.enabled };
			continue;
		}
		compared++;
		if (place->count != now.value) {
			wrong_equal++;
			report("count", event, now.value, place->count);
			ksft_print_msg("event %d, enabled for %llu ns; event %d, for %llu ns\n",
				       i, now.enabled, place->slot, place->enabled);
		}
	}
}

static void check_round(void)
{
	check_events(-1);
	if (is_tcg())
		check_sums();
}

/* Reads the event's page by RDPMC, if it has a counter of its own. */
static void check_page(const struct event *event)
{
	struct one_count before, after;
	__u64 count, since;
	__u32 index;

	if (!read_one(event->fd, &before))
		return;
	count = read_page(event->page, &index);
	if (!index || !event->page->cap_user_rdpmc || !read_one(event->fd, &after))
		return;
	paged++;
	operations++;
	since = count - before.value;
	/*
	 * After a reset, the built-in driver's offset belongs to the counter's value
	 * without its sign.
	 */
	if (!on_rpmu())
		since &= (1ULL << counter_width()) - 1;
	if (since <= after.value - before.value)
		return;
	wrong_page++;
	report("page", event, count, before.value);
}

/*
 * Takes the last CPU offline and online again. Its events have counted equally
 * until then, and do not come back.
 */
static void take_cpu_offline(void)
{
	int i, cpu = cpus - 1;

	if (!cpu)
		return;
	reap_child();
	go_to_cpu(0);
	if (!set_cpu_online(cpu, false))
		die("offline");
	offline++;
	operations++;
	work(below(20000));
	check_events(cpu);
	for (i = 0; i < SLOTS; i++)
		if (events[i].fd >= 0 && events[i].place >= CPU && events[i].cpu == cpu)
			close_event(&events[i]);
	if (!set_cpu_online(cpu, true))
		die("online");
}

static void step(void)
{
	struct event *event = any_event();
	unsigned int kind = below(16);
	struct one_count count;

	steps++;
	taken[strlen(taken)] = 'a' + kind;
	switch (kind) {
	case 0:
		go_to_cpu(below(cpus));
		break;
	case 1:
		start_child();
		if (one_in(2))
			reap_child();
		break;
	case 2:
		open_event(true);
		break;
	case 3:
		if (event)
			close_event(event);
		break;
	case 4:
		if (event)
			change_event(event);
		break;
	case 5:
	case 6:
	case 7:
		/* On the event's CPU, by IPI. */
		if (event && event->page)
			check_page(event);
		else if (event)
			operations += read_one(event->fd, &count);
		break;
	case 8:
		if (one_in(4))
			usleep(1 + below(3000));
		else if (one_in(16))
			take_cpu_offline();
		break;
	case 9:
		if (places == PLACES) {
			if (!write_line(tasks_of(below(CGROUPS)), "0"))
				die("cgroup.procs");
			moved++;
			operations++;
		}
		break;
	default:
		work(below(20000));
	}
}

static void play_round(void)
{
	unsigned int i, nr = 2 + below(MOST_STEPS - 1);

	rounds++;
	/* With the built-in driver, more events than counters rotate. */
	most = one_in(3) ? SLOTS : gp_counters();
	if (shares && one_in(2))
		most *= 2;
	if (most > SLOTS)
		most = SLOTS;
	while (in_use() > most)
		close_event(any_event());
	for (i = 0; i < SLOTS / 2; i++)
		open_event(false);
	for (i = 0; i < SLOTS; i++) {
		struct event *event = &events[i];

		/* In the error state, which ends as all events start, an event has no count. */
		event->changed = event->fd >= 0 && !read_one(event->fd, &event->last);
	}
	widest = 0;
	note_need();
	memset(taken, 0, sizeof(taken));
	if (one_in(8))
		throttle(true);
	operations += in_use();
	prctl(PR_TASK_PERF_EVENTS_ENABLE);
	for (i = 0; i < nr; i++)
		step();
	reap_child();
	prctl(PR_TASK_PERF_EVENTS_DISABLE);
	operations += in_use();
	check_round();
	if (throttled)
		throttle(false);
	if (one_in(8))
		for (i = 0; i < SLOTS; i++)
			if (events[i].fd >= 0 && one_in(2))
				close_event(&events[i]);
}

static bool has_siblings(void)
{
	char line[32];

	return read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", line,
			 sizeof(line)) && strpbrk(line, "-,");
}

static void result(bool passed, const char *name)
{
	if (!passed && confuses)
		ksft_test_result_skip("%s: the built-in driver confuses constraints\n", name);
	else
		ksft_test_result(passed, "%s\n", name);
}

int main(int argc, char **argv)
{
	struct sample_limits limits;
	unsigned long end, least_sums;
	int i;

	ksft_print_header();
	ksft_set_plan(4);
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
	shares = shares_counters();
	confuses = !on_rpmu() && threads_corrupt() && has_siblings();
	end = argc > 1 ? strtoul(argv[1], NULL, 0) : shares ? STEPS : FEW_STEPS;
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus > MAX_CPUS)
		cpus = MAX_CPUS;
	for (i = 0; i < SLOTS; i++)
		events[i].fd = -1;
	if (!lift_sample_limits(&limits) || !take_cpu(true))
		die("set-up");
	make_cgroups();
	go_to_cpu(0);
	while (steps < end)
		play_round();
	for (i = 0; i < SLOTS; i++)
		if (events[i].fd >= 0)
			close(events[i].fd);
	remove_cgroups();
	take_cpu(false);
	put_back_sample_limits(&limits);
	ksft_print_msg("%lu steps in %lu rounds: %lu counts compared, %lu sums\n", steps, rounds,
		       compared, summed);
	ksft_print_msg("%lu operations on events\n", operations);
	ksft_print_msg("%lu events counted all the time, %lu did not, %lu were throttled\n", full,
		       rotated, slow);
	ksft_print_msg("%lu reads of pages, %lu moves between control groups, %lu times offline\n",
		       paged, moved, offline);
	result(!wrong_equal && compared > steps / 50, "equal");
	/* Sums need several events that count all the time, which is rare with two counters. */
	least_sums = gp_counters() < 4 ? 0 : shares ? steps / 500 + 1 : 1;
	if (is_tcg())
		result(!wrong_sums && summed >= least_sums, "sums");
	else
		ksft_test_result_skip("sums: other programs run\n");
	result(!wrong_fit && full > steps / 10, "fit");
	ksft_test_result(!wrong_page && paged > steps / 500, "pages\n");
	ksft_finished();
}
