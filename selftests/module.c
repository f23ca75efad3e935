// SPDX-License-Identifier: GPL-2.0
/*
 * insmod and rmmod with one system call each and its error as it is; busybox'
 * insmod tries a second one where the first fails, and the module would say
 * everything twice.
 *
 *	module load FILE [PARAMETERS]
 *	module unload NAME
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long err;
	int fd;

	if (argc >= 3 && argc <= 4 && !strcmp(argv[1], "load")) {
		fd = open(argv[2], O_RDONLY | O_CLOEXEC);
		err = fd < 0 ? fd : syscall(SYS_finit_module, fd,
						 argc == 4 ? argv[3] : "", 0);
	} else if (argc == 3 && !strcmp(argv[1], "unload")) {
		err = syscall(SYS_delete_module, argv[2], O_NONBLOCK);
	} else {
		fprintf(stderr, "usage: module load FILE [PARAMETERS] | unload NAME\n");
		return 2;
	}
	if (err)
		printf("%s: %s\n", argv[2], strerror(errno));
	return !!err;
}
