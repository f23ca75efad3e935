// SPDX-License-Identifier: GPL-2.0
/*
 * Loads and unloads modules with a single system call each, and reports its
 * error. The insmod of busybox makes a second call if the first one fails, so
 * that the module would log everything twice.
 *
 * module load FILE [PARAMETERS]
 *
 * module unload NAME
 */
#define _GNU_SOURCE
#include <errno.h>

#include "perf_util.h"

int main(int argc, char **argv)
{
	bool done;

	if (argc >= 3 && argc <= 4 && !strcmp(argv[1], "load")) {
		done = load_module(argv[2], argc == 4 ? argv[3] : "");
	} else if (argc == 3 && !strcmp(argv[1], "unload")) {
		done = unload_module(argv[2]);
	} else {
		fprintf(stderr, "usage: module load FILE [PARAMETERS] | unload NAME\n");
		return 2;
	}
	if (!done)
		printf("%s: %s\n", argv[2], strerror(errno));
	return !done;
}
