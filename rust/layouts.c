// SPDX-License-Identifier: GPL-2.0
/*
 * The table of the members of the kernel's structures that rpmu relies on, as
 * the C compiler sees them. Kbuild compiles this file to assembly, as
 * arch/x86/kernel/asm-offsets.c, and makes Rust of it, which
 * rust/bindings/layouts.rs takes in: bindgen's view has to be the same. When the
 * module is loaded, driver/layouts.rs compares with the running kernel's BTF.
 *
 * The structures of the built-in driver are in a header that is not for modules.
 * A kernel build directory may lack it, so the offsets are those of BTF, and only
 * sizes are compared.
 */

#include <linux/kprobes.h>
#include <linux/mm_types.h>
#include <linux/perf_event.h>
#include <linux/stddef.h>
#ifdef RPMU_KNOWS_BUILTIN
#include <../events/perf_event.h>
#endif

#define EMIT(text, ...) \
	asm volatile("\n.ascii \"->" text "\"" : : __VA_ARGS__)

/* A member, and its path in bindgen's structure; none if Rust does not use it. */
#define MEMBER(structure, member, path...)				\
	EMIT(#structure " \\\"" #member "\\\" [" #path "] %c0 %c1;",	\
	     "i" (offsetof(struct structure, member)),			\
	     "i" (sizeof_field(struct structure, member)))

/* A structure of which rpmu makes objects. */
#define SIZE(structure)							\
	EMIT(#structure " \\\"\\\" [] 0 %c0;", "i" (sizeof(struct structure)))

/* A member of a structure of the built-in driver, and its type in Rust. */
#ifdef RPMU_KNOWS_BUILTIN
#define PRIVATE(name, structure, member, type)				\
	EMIT(#name " \\\"" #member "\\\" [" #type "] Some((%c0, %c1));", \
	     "i" (offsetof(struct structure, member)),			\
	     "i" (sizeof_field(struct structure, member)))
#else
#define PRIVATE(name, structure, member, type)				\
	EMIT(#name " \\\"" #member "\\\" [" #type "] None;")
#endif

#define X86_PMU(member, type) PRIVATE(member, x86_pmu, member, type)
#define CPU_HW_EVENTS(member, type) PRIVATE(member, cpu_hw_events, member, type)

void rpmu_layouts(void);

void rpmu_layouts(void)
{
	EMIT("public!(");
	MEMBER(mm_struct, context.perf_rdpmc_allowed);
	EMIT(");");

	EMIT("private!(x86_pmu:");
	X86_PMU(cntval_bits, i32);
	X86_PMU(attr_rdpmc, i32);
	X86_PMU(attr_freeze_on_smi, u64);
	EMIT(");");

	EMIT("private!(cpu_hw_events:");
	CPU_HW_EVENTS(dirty, u64);
	EMIT(");");
}
