// SPDX-License-Identifier: GPL-2.0

//! The `CPUID` instruction, and the processor's features that the kernel has enabled.
//!
//! C headers: [`arch/x86/include/asm/cpuid/api.h`](srctree/arch/x86/include/asm/cpuid/api.h),
//! [`arch/x86/include/asm/cpufeature.h`](srctree/arch/x86/include/asm/cpufeature.h)

use crate::bindings;
use kernel::interrupt::LocalInterruptDisabled;

/// The registers that `CPUID` returns.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Regs {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

/// Executes `CPUID` on this CPU. Any context.
pub fn cpuid(leaf: u32, subleaf: u32) -> Regs {
    let mut regs = Regs::default();
    // SAFETY: The pointers are to four distinct fields of `regs`, each valid for writes of a
    // `u32`. The instruction itself exists on every 64-bit processor and has no side effect.
    unsafe {
        bindings::rpmu_helper_cpuid_count(
            leaf,
            subleaf,
            &mut regs.eax,
            &mut regs.ebx,
            &mut regs.ecx,
            &mut regs.edx,
        )
    };
    regs
}

/// Returns the core type of this CPU on a hybrid processor: EAX of leaf 0x1A, or 0 without it.
pub fn core_type(_irqs: &LocalInterruptDisabled) -> u32 {
    const LEAF: u32 = 0x1a;
    // For a leaf that does not exist, CPUID returns another leaf's data.
    match cpuid(0, 0).eax {
        LEAF.. => cpuid(LEAF, 0).eax,
        _ => 0,
    }
}

/// A feature of the processor. A feature that the kernel or a boot parameter has turned off is
/// absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feature(u32);

impl Feature {
    /// AMD's core performance counter extensions.
    pub const AMD_PERFCTR_CORE: Self = Self(bindings::X86_FEATURE_PERFCTR_CORE);
    /// AMD's branch records, version 2.
    pub const AMD_LBR_V2: Self = Self(bindings::X86_FEATURE_AMD_LBR_V2);
    /// AMD's freeze of the branch records at a PMI.
    pub const AMD_LBR_PMC_FREEZE: Self = Self(bindings::X86_FEATURE_AMD_LBR_PMC_FREEZE);
    /// AMD's performance monitoring, version 2.
    pub const AMD_PERFMON_V2: Self = Self(bindings::X86_FEATURE_PERFMON_V2);
    /// A local APIC that the kernel uses.
    pub const APIC: Self = Self(bindings::X86_FEATURE_APIC);
    /// Architectural last branch records, `CPUID` leaf 0x1C.
    pub const ARCH_LBR: Self = Self(bindings::X86_FEATURE_ARCH_LBR);
    /// Architectural performance monitoring, `CPUID` leaf 0xA.
    pub const ARCH_PERFMON: Self = Self(bindings::X86_FEATURE_ARCH_PERFMON);
    /// Branch trace store (BTS), unless the firmware has turned it off.
    pub const BTS: Self = Self(bindings::X86_FEATURE_BTS);
    /// The 64-bit layout of the debug store (DS) area.
    pub const DTES64: Self = Self(bindings::X86_FEATURE_DTES64);
    /// Hardware lock elision.
    pub const HLE: Self = Self(bindings::X86_FEATURE_HLE);
    /// Intel Processor Trace (PT).
    pub const INTEL_PT: Self = Self(bindings::X86_FEATURE_INTEL_PT);
    /// The MSR `IA32_PERF_CAPABILITIES`.
    pub const PDCM: Self = Self(bindings::X86_FEATURE_PDCM);
    /// Restricted transactional memory.
    pub const RTM: Self = Self(bindings::X86_FEATURE_RTM);

    /// Returns whether the boot CPU has the feature. Any context.
    pub fn present(self) -> bool {
        // SAFETY: The constants above are the only values of this type, all of them indices into
        // the capability words of `boot_cpu_data`.
        unsafe { bindings::rpmu_helper_boot_cpu_has(self.0) }
    }
}
