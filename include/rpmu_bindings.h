/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel headers whose types and functions rpmu needs and that the
 * kernel's own Rust bindings do not have. bindgen reads this file, see Kbuild;
 * what it takes from here is the allow-list in include/bindgen_parameters.
 */
#ifndef RPMU_BINDINGS_H
#define RPMU_BINDINGS_H

#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/jump_label.h>
#include <linux/kprobes.h>
#include <linux/kstrtox.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/random.h>
#include <linux/rbtree.h>
#include <linux/sched/clock.h>
#include <linux/smp.h>
#include <linux/syscore_ops.h>
#include <linux/sysfs.h>
#include <linux/uaccess.h>
#include <asm/apicdef.h>
#include <asm/cpufeature.h>
#include <asm/intel_ds.h>
#include <asm/msr-index.h>
#include <asm/nmi.h>
#include <asm/perf_event.h>
#include <asm/processor.h>
#include <asm/segment.h>

/* For the prototypes, so that none is written twice. */
#include "../rust/helpers.c"
#include "../rust/static_calls.c"
#include "../rust/kretprobe.c"
#include "../rust/users.c"
#include "../rust/task_data.c"
#include "../rust/sysfs.c"
#include "rpmu_trace.h"

/* rust/parameters.c */
bool rpmu_helper_ht_workaround(void);
bool rpmu_helper_share(void);
bool rpmu_helper_dry_run(void);
unsigned int rpmu_helper_trial(void);
bool rpmu_helper_trust_layouts(void);
u64 rpmu_helper_max_period(void);
const char *rpmu_helper_policy(void);
const char *rpmu_helper_release(void);

/* bindgen does not evaluate BIT(), PAGE_SIZE and _IO(). */
static const int RUST_CONST_HELPER_PERF_EV_CAP_SOFTWARE = PERF_EV_CAP_SOFTWARE;
static const int RUST_CONST_HELPER_PERF_EV_CAP_SIBLING = PERF_EV_CAP_SIBLING;
static const u32 RUST_CONST_HELPER_PEBS_BUFFER_SIZE = PEBS_BUFFER_SIZE;
static const u32 RUST_CONST_HELPER_PERF_EVENT_IOC_DISABLE = PERF_EVENT_IOC_DISABLE;
/* bindgen takes the HZ of user mode. */
static const u32 RUST_CONST_HELPER_HZ = HZ;

#endif /* RPMU_BINDINGS_H */
