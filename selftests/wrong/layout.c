// SPDX-License-Identifier: GPL-2.0
/*
 * Changes the kernel's BTF while it is loaded: inserts a member into a structure,
 * renames a member, or makes the BTF invalid. The kernel itself does not change.
 */

#include <linux/btf.h>
#include <linux/module.h>
#include <asm/processor-flags.h>
#include <asm/special_insns.h>

/* The size of an inserted member, in bits. */
#define INSERTED	64

static ulong start;
module_param(start, ulong, 0);
MODULE_PARM_DESC(start, "__start_BTF");

static char *structure = "";
module_param(structure, charp, 0);
MODULE_PARM_DESC(structure, "The structure; none to damage the header");

static char *member = "";
module_param(member, charp, 0);
MODULE_PARM_DESC(member, "The member before which another is inserted, or which is renamed");

static bool renamed;
module_param(renamed, bool, 0);
MODULE_PARM_DESC(renamed, "Rename the member");

static struct btf_header *header;
static struct btf_type *changed;
static struct btf_member *first;

/* Writes to the BTF, which the kernel maps read-only. */
static void write_word(u32 *word, u32 value)
{
	unsigned long flags, cr0;

	local_irq_save(flags);
	cr0 = read_cr0();
	asm volatile("mov %0, %%cr0" : : "r" (cr0 & ~X86_CR0_WP) : "memory");
	WRITE_ONCE(*word, value);
	asm volatile("mov %0, %%cr0" : : "r" (cr0) : "memory");
	local_irq_restore(flags);
}

/* The header may be shorter than struct btf_header of this kernel. */
static void *sections(void)
{
	return (void *)header + header->hdr_len;
}

static const char *name_at(u32 offset)
{
	return sections() + header->str_off + offset;
}

static size_t bytes_after(const struct btf_type *type)
{
	u32 elements = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
		return sizeof(u32);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return elements * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return elements * sizeof(struct btf_enum);
	case BTF_KIND_FUNC_PROTO:
		return elements * sizeof(struct btf_param);
	case BTF_KIND_VAR:
		return sizeof(struct btf_var);
	case BTF_KIND_DATASEC:
		return elements * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG:
		return sizeof(struct btf_decl_tag);
	case BTF_KIND_ENUM64:
		return elements * sizeof(struct btf_enum64);
	default:
		return 0;
	}
}

static struct btf_member *members_of(struct btf_type *type)
{
	return (struct btf_member *)(type + 1);
}

static bool find(void)
{
	void *at = sections() + header->type_off;
	void *end = at + header->type_len;
	u32 n;

	for (; at < end; at += sizeof(*changed) + bytes_after(at)) {
		changed = at;
		if (BTF_INFO_KIND(changed->info) != BTF_KIND_STRUCT ||
		    strcmp(name_at(changed->name_off), structure))
			continue;
		for (n = 0; n < BTF_INFO_VLEN(changed->info); n++) {
			first = members_of(changed) + n;
			if (!strcmp(name_at(first->name_off), member))
				return true;
		}
	}
	return false;
}

/* Moves the member and all members behind it by this many bits. */
static void move_members(int by)
{
	struct btf_member *end = members_of(changed) + BTF_INFO_VLEN(changed->info);
	struct btf_member *it;

	for (it = first; it < end; it++)
		write_word(&it->offset, it->offset + by);
	write_word(&changed->size, changed->size + by / 8);
}

static void change(bool back)
{
	if (!*structure)
		write_word((u32 *)header, *(u32 *)header ^ 1);
	else if (renamed)
		write_word(&first->name_off, first->name_off + (back ? -1 : 1));
	else
		move_members(back ? -INSERTED : INSERTED);
}

static void layout_exit(void)
{
	change(true);
}

static int __init layout_init(void)
{
	header = (void *)start;
	if (!header || header->magic != BTF_MAGIC)
		return -EINVAL;
	if (*structure && !find())
		return -ENOENT;
	change(false);
	return 0;
}

module_init(layout_init);
module_exit(layout_exit);
MODULE_DESCRIPTION("Changes the kernel's BTF");
MODULE_LICENSE("GPL");
