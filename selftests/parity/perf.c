// SPDX-License-Identifier: GPL-2.0
/*
 * Replaces perf where perf's own tests need the symbols of its workloads,
 * because distributions strip perf. Runs these workloads itself, compiled from
 * the kernel's source, and passes everything else to the installed perf.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/tests.h"

static struct test_workload *const workloads[] = {
	&workload__thloop, &workload__brstack, &workload__datasym, NULL
};

/* The symbols that the tests look for. */
static const char *const symbols[] = {
	"test_loop", "brstack", "brstack_bench", "workload_datasym_buf1", NULL
};

int main(int argc, char **argv)
{
	struct test_workload *const *workload;
	const char *const *symbol;

	/* perf test -vv -F Symbols */
	if (argc == 5 && !strcmp(argv[1], "test") && !strcmp(argv[4], "Symbols")) {
		for (symbol = symbols; *symbol; symbol++)
			printf(" %s\n", *symbol);
		return 0;
	}
	/* perf test -w WORKLOAD ARGUMENTS */
	if (argc >= 4 && !strcmp(argv[1], "test") && !strcmp(argv[2], "-w")) {
		for (workload = workloads; *workload; workload++) {
			if (!strcmp(argv[3], (*workload)->name))
				return (*workload)->func(argc - 4, (const char **)argv + 4);
		}
	}
	execv("/usr/bin/perf", argv);
	perror("/usr/bin/perf");
	return 127;
}
