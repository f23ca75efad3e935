/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which microarchitecture the CPU is, as far as these tests make a difference:
 * the one table of model numbers.
 */
#ifndef RPMU_CPU_MODELS_H
#define RPMU_CPU_MODELS_H

#include <cpuid.h>
#include <stdbool.h>

enum cpu_model {
	MODEL_OTHER,
	MODEL_NEHALEM,
	MODEL_WESTMERE,
	MODEL_SANDY_BRIDGE,
	MODEL_IVY_BRIDGE,
	MODEL_HASWELL,
	MODEL_BROADWELL,
	MODEL_SKYLAKE,		/* to Comet Lake */
	MODEL_ICE_LAKE,		/* to Rocket Lake */
	MODEL_GOLDEN_COVE,	/* Sapphire Rapids, Emerald Rapids */
};

/* The CPU's model within family 6; 0 for another family. */
static inline unsigned int cpu_number(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || ((eax >> 8) & 0xf) != 6)
		return 0;
	return ((eax >> 12) & 0xf0) | ((eax >> 4) & 0xf);
}

static inline enum cpu_model cpu_model(void)
{
	switch (cpu_number()) {
	case 0x1a: case 0x1e: case 0x2e:
		return MODEL_NEHALEM;
	case 0x25: case 0x2c: case 0x2f:
		return MODEL_WESTMERE;
	case 0x2a: case 0x2d:
		return MODEL_SANDY_BRIDGE;
	case 0x3a: case 0x3e:
		return MODEL_IVY_BRIDGE;
	case 0x3c: case 0x3f: case 0x45: case 0x46:
		return MODEL_HASWELL;
	case 0x3d: case 0x47: case 0x4f: case 0x56:
		return MODEL_BROADWELL;
	case 0x4e: case 0x55: case 0x5e: case 0x8e: case 0x9e: case 0xa5: case 0xa6:
		return MODEL_SKYLAKE;
	case 0x6a: case 0x6c: case 0x7d: case 0x7e: case 0x8c: case 0x8d: case 0xa7:
		return MODEL_ICE_LAKE;
	case 0x8f: case 0xcf:
		return MODEL_GOLDEN_COVE;
	default:
		return MODEL_OTHER;
	}
}

/* Haswell or Skylake, for which some tests know codes that they do not for others. */
static inline bool is_haswell_or_skylake(void)
{
	return cpu_model() == MODEL_HASWELL || cpu_model() == MODEL_SKYLAKE;
}

#endif
