// SPDX-License-Identifier: GPL-2.0

//! Which processor this is and what it can do.
//!
//! C headers: [`arch/x86/include/asm/cpuid/api.h`](srctree/arch/x86/include/asm/cpuid/api.h),
//! [`arch/x86/include/asm/cpufeature.h`](srctree/arch/x86/include/asm/cpufeature.h)

use crate::bindings;

/// The registers that `CPUID` returns.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the fields are named as the registers are")]
pub struct Regs {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

/// Executes `CPUID` on whichever CPU this runs on. Any context.
pub fn cpuid(leaf: u32, subleaf: u32) -> Regs {
    let mut regs = Regs::default();
    // SAFETY: The pointers are to four distinct fields of `regs`, each valid for the write of a
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

/// Who made the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the variants are named as the vendors are")]
pub enum Vendor {
    Intel,
    Amd,
    Hygon,
    Centaur,
    Zhaoxin,
    Other,
}

/// The name of a processor, as vendors' documents use it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cpu {
    /// Who made it.
    pub vendor: Vendor,
    /// Display family: the extended family is added.
    pub family: u8,
    /// Display model: the extended model is added.
    pub model: u8,
    /// Revision of the model.
    pub stepping: u8,
    /// Revision of the microcode that the boot CPU came up with.
    pub microcode: u32,
}

impl Cpu {
    /// The boot CPU. Any context.
    pub fn boot() -> Self {
        let data = &raw const bindings::boot_cpu_data;
        // SAFETY: `boot_cpu_data` is a valid global that the kernel fills before modules can be
        // loaded. Only a late microcode update writes to it afterwards, to `microcode` and to
        // `x86_capability`: the former is a single word, which is read volatile for this reason;
        // the other is not read here. The fields of the anonymous union and struct are plain
        // bytes, so any view is initialised.
        let (vendor, family, model, stepping, microcode) = unsafe {
            let name = (*data).__bindgen_anon_1.__bindgen_anon_1;
            (
                name.x86_vendor,
                name.x86,
                name.x86_model,
                (*data).x86_stepping,
                (&raw const (*data).microcode).read_volatile(),
            )
        };
        Self {
            vendor: match vendor.into() {
                bindings::X86_VENDOR_INTEL => Vendor::Intel,
                bindings::X86_VENDOR_AMD => Vendor::Amd,
                bindings::X86_VENDOR_HYGON => Vendor::Hygon,
                bindings::X86_VENDOR_CENTAUR => Vendor::Centaur,
                bindings::X86_VENDOR_ZHAOXIN => Vendor::Zhaoxin,
                _ => Vendor::Other,
            },
            family,
            model,
            stepping,
            microcode,
        }
    }
}

/// A feature of the processor, as the kernel sees it: one that the kernel or a boot parameter has
/// turned off counts as absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feature(u32);

impl Feature {
    /// There is a local APIC, and the kernel uses it.
    pub const APIC: Self = Self(bindings::X86_FEATURE_APIC);
    /// Architectural performance monitoring, `CPUID` leaf 0xA.
    pub const ARCH_PERFMON: Self = Self(bindings::X86_FEATURE_ARCH_PERFMON);
    /// Hardware lock elision.
    pub const HLE: Self = Self(bindings::X86_FEATURE_HLE);
    /// The CPUs of this machine are not all of one type.
    pub const HYBRID_CPU: Self = Self(bindings::X86_FEATURE_HYBRID_CPU);
    /// This is a virtual machine.
    pub const HYPERVISOR: Self = Self(bindings::X86_FEATURE_HYPERVISOR);
    /// `IA32_PERF_CAPABILITIES` exists.
    pub const PDCM: Self = Self(bindings::X86_FEATURE_PDCM);
    /// Restricted transactional memory.
    pub const RTM: Self = Self(bindings::X86_FEATURE_RTM);
    /// Transactions always abort, whatever `MSR_TSX_FORCE_ABORT` says.
    pub const RTM_ALWAYS_ABORT: Self = Self(bindings::X86_FEATURE_RTM_ALWAYS_ABORT);
    /// `MSR_TSX_FORCE_ABORT` exists: counter 3 is shared with transactional memory.
    pub const TSX_FORCE_ABORT: Self = Self(bindings::X86_FEATURE_TSX_FORCE_ABORT);

    /// Whether the boot CPU has the feature. Any context.
    pub fn present(self) -> bool {
        // SAFETY: The constants above are the only values of this type, all of them indices into
        // the capability words of `boot_cpu_data`.
        unsafe { bindings::rpmu_helper_boot_cpu_has(self.0) }
    }
}
