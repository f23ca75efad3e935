// SPDX-License-Identifier: GPL-2.0
/*
 * Members of the built-in driver's structures that the kernel goes on using
 * while another driver is in charge. The header is not for modules; a kernel
 * build directory may lack it (see Kbuild), and then they cannot be had.
 */

#include <linux/percpu.h>
#include <linux/perf_event.h>

#ifdef RPMU_KNOWS_BUILTIN
#include <../events/perf_event.h>

bool rpmu_helper_knows_builtin(void)
{
	return true;
}

int rpmu_helper_builtin_cntval_bits(void *pmu)
{
	return ((struct x86_pmu *)pmu)->cntval_bits;
}

int *rpmu_helper_builtin_attr_rdpmc(void *pmu)
{
	return &((struct x86_pmu *)pmu)->attr_rdpmc;
}

unsigned long *rpmu_helper_builtin_attr_freeze_on_smi(void *pmu)
{
	return &((struct x86_pmu *)pmu)->attr_freeze_on_smi;
}

unsigned long *rpmu_helper_builtin_dirty(void __percpu *events)
{
	struct cpu_hw_events __percpu *cpuc = events;

	return this_cpu_ptr(cpuc)->dirty;
}
#else
bool rpmu_helper_knows_builtin(void)
{
	return false;
}

int rpmu_helper_builtin_cntval_bits(void *pmu)
{
	return 0;
}

int *rpmu_helper_builtin_attr_rdpmc(void *pmu)
{
	return NULL;
}

unsigned long *rpmu_helper_builtin_attr_freeze_on_smi(void *pmu)
{
	return NULL;
}

unsigned long *rpmu_helper_builtin_dirty(void __percpu *events)
{
	return NULL;
}
#endif
