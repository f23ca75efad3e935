// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the first bytes of a kernel variable in hexadecimal, for the shell
 * tests.
 *
 *	kdata SYMBOL BYTES	a global variable
 *	kdata SYMBOL BYTES CPU	a per-CPU variable's instance on one CPU
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/elf.h>

#include "perf_util.h"

/* Returns the address of a symbol, or 0 if the kernel has no such symbol. */
static __u64 address_of(const char *symbol)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	unsigned long long address;
	char line[512], name[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %*c %255s", &address, name) == 2 &&
		    strcmp(name, symbol) == 0) {
			fclose(file);
			return address;
		}
	}
	return 0;
}

static bool read_kernel(__u64 address, void *to, size_t size)
{
	int fd = open("/proc/kcore", O_RDONLY), i;
	struct elf64_hdr header;
	struct elf64_phdr part;

	if (fd < 0 || pread(fd, &header, sizeof(header), 0) != sizeof(header))
		return false;
	for (i = 0; i < header.e_phnum; i++) {
		if (pread(fd, &part, sizeof(part), header.e_phoff + i * sizeof(part)) !=
		    sizeof(part))
			return false;
		if (part.p_type == PT_LOAD && address >= part.p_vaddr &&
		    address + size <= part.p_vaddr + part.p_memsz)
			return pread(fd, to, size, part.p_offset + address - part.p_vaddr) ==
			       (ssize_t)size;
	}
	errno = ENXIO;
	return false;
}

int main(int argc, char **argv)
{
	static unsigned char data[1 << 16];
	unsigned long size, i;
	__u64 address, offset;

	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: kdata SYMBOL BYTES [CPU]\n");
		return 2;
	}
	size = strtoul(argv[2], NULL, 0);
	address = address_of(argv[1]);
	if (!address || size > sizeof(data)) {
		printf("%s: no such symbol, or too many bytes\n", argv[1]);
		return 1;
	}
	if (argc == 4) {
		__u64 entry = address_of("__per_cpu_offset") + 8 * strtoul(argv[3], NULL, 0);

		if (!read_kernel(entry, &offset, sizeof(offset))) {
			printf("__per_cpu_offset: %s\n", strerror(errno));
			return 1;
		}
		address += offset;
	}
	if (!read_kernel(address, data, size)) {
		printf("%s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	for (i = 0; i < size; i++)
		printf("%02x", data[i]);
	printf("\n");
	return 0;
}
