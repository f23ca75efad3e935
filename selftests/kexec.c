// SPDX-License-Identifier: GPL-2.0
/*
 * Boots another kernel, without an initramfs:
 *
 *	kexec KERNEL COMMANDLINE	loads it
 *	kexec				starts it
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_types.h>
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd;

	if (argc == 1) {
		syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
			LINUX_REBOOT_CMD_KEXEC, NULL);
		printf("kexec: %s\n", strerror(errno));
		return 1;
	}
	if (argc != 3) {
		fprintf(stderr, "usage: kexec [KERNEL COMMANDLINE]\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || syscall(SYS_kexec_file_load, fd, -1, strlen(argv[2]) + 1, argv[2],
			      KEXEC_FILE_NO_INITRAMFS)) {
		printf("%s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	return 0;
}
