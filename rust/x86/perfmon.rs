// SPDX-License-Identifier: GPL-2.0

//! Architectural performance monitoring: which counters there are, as `CPUID` leaf 0xA tells.
//!
//! [`ArchPerfmon`] is the only source of [`Gp`] and [`Fixed`], the names of counters. Code that
//! holds one can thus neither name a register beyond the counters' nor execute `RDPMC` for a
//! counter that is absent, which would be an unhandled fault.
//!
//! Source: Intel SDM volume 3, section 20.2, and volume 2, `CPUID`.

use super::{
    cpuid::{cpuid, Feature},
    msr::ReadOnlyMsr,
};
use crate::bindings;
use kernel::{bits::genmask_checked_u32, interrupt::LocalInterruptDisabled};

/// As many general-purpose counters as have their registers in one run of addresses everywhere
/// (SDM volume 4, table 2-2: `IA32_PERFEVTSEL0` to `7`, `IA32_PMC0` to `7`, `IA32_A_PMC0` to `7`).
const MAX_GP: u32 = 8;
/// As many fixed counters as `IA32_FIXED_CTR_CTRL` has fields for, four bits each.
const MAX_FIXED: u32 = 16;

/// What the processor says about its counters.
///
/// On parts whose CPUs are not all alike ([`Feature::HYBRID_CPU`]) it depends on the CPU that asks,
/// and is of no use for the others.
#[derive(Clone, Copy, Debug)]
pub struct ArchPerfmon {
    version: u8,
    num_gp: u8,
    gp_width: u8,
    mask_length: u8,
    events_absent: u32,
    fixed_mask: u32,
    fixed_width: u8,
    anythread_deprecated: bool,
}

impl ArchPerfmon {
    /// Asks the processor. `None` if it has no architectural performance monitoring, or if a
    /// hypervisor hides it. Any context.
    pub fn probe() -> Option<Self> {
        if !Feature::ARCH_PERFMON.present() {
            return None;
        }
        let regs = cpuid(0xa, 0);
        let [version, num_gp, gp_width, mask_length] = regs.eax.to_le_bytes();
        if version == 0 {
            return None;
        }
        // Before version 5 fixed counters are numbered without gaps. Versions 2 to 4 may leave the
        // number out although real ones have three (arch/x86/events/intel/core.c:8037-8046).
        let fixed_mask = match version {
            1 => 0,
            2..=4 => {
                let assumed = if Feature::HYPERVISOR.present() { 0 } else { 3 };
                low_bits((regs.edx & 0x1f).max(assumed).min(MAX_FIXED))
            }
            _ => regs.ecx & low_bits(MAX_FIXED),
        };
        Some(Self {
            version,
            num_gp: num_gp.min(MAX_GP as u8),
            gp_width,
            mask_length,
            events_absent: regs.ebx,
            fixed_mask,
            fixed_width: (regs.edx >> 5) as u8,
            anythread_deprecated: regs.edx & (1 << 15) != 0,
        })
    }

    /// The version of architectural performance monitoring, 1 at least.
    pub fn version(&self) -> u32 {
        self.version.into()
    }

    /// The number of general-purpose counters of a logical processor.
    pub fn num_gp(&self) -> u32 {
        self.num_gp.into()
    }

    /// The width of general-purpose counters in bits.
    pub fn gp_width(&self) -> u32 {
        self.gp_width.into()
    }

    /// Bit `n` is set if fixed counter `n` exists.
    pub fn fixed_mask(&self) -> u32 {
        self.fixed_mask
    }

    /// The width of fixed counters in bits.
    pub fn fixed_width(&self) -> u32 {
        self.fixed_width.into()
    }

    /// How many architectural events [`ArchPerfmon::event_absent`] has an answer for.
    pub fn mask_length(&self) -> u32 {
        self.mask_length.into()
    }

    /// Whether the processor declares an architectural event (its bit in `CPUID.0AH:EBX`) absent.
    /// Beyond [`ArchPerfmon::mask_length`] all are.
    pub fn event_absent(&self, bit: u32) -> bool {
        bit >= self.mask_length().min(u32::BITS) || self.events_absent & (1 << bit) != 0
    }

    /// Whether the `AnyThread` bits of the event selects are to be left clear.
    pub fn anythread_deprecated(&self) -> bool {
        self.anythread_deprecated
    }

    /// General-purpose counter `n`, if there is one.
    #[inline]
    pub fn gp(&self, n: u32) -> Option<Gp> {
        // INVARIANT: `num_gp` is what the processor has, and no more than `MAX_GP`.
        (n < self.num_gp.into()).then_some(Gp(n as u8))
    }

    /// Fixed counter `n`, if there is one.
    #[inline]
    pub fn fixed(&self, n: u32) -> Option<Fixed> {
        // INVARIANT: `fixed_mask` is what the processor has, and has no bit from `MAX_FIXED` on.
        (n < MAX_FIXED && self.fixed_mask & (1 << n) != 0).then_some(Fixed(n as u8))
    }
}

/// A mask of the `n` lowest bits; `n` is at most 32.
fn low_bits(n: u32) -> u32 {
    match n {
        0 => 0,
        n => genmask_checked_u32(0..=n - 1).unwrap_or(u32::MAX),
    }
}

/// A general-purpose counter.
///
/// # Invariants
///
/// The processor has this counter, and its number is less than [`MAX_GP`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gp(u8);

impl Gp {
    /// The counter's number, from 0.
    #[inline]
    pub const fn index(self) -> u32 {
        self.0 as u32
    }

    /// What `RDPMC` wants in `ECX` for this counter.
    #[inline]
    pub const fn rdpmc_index(self) -> u32 {
        self.index()
    }

    /// Reads the counter of this CPU, [`ArchPerfmon::gp_width`] bits.
    #[inline]
    pub fn rdpmc(self, irqs: &LocalInterruptDisabled) -> u64 {
        // SAFETY: By the type invariant the processor has this counter.
        unsafe { rdpmc(self.rdpmc_index(), irqs) }
    }
}

/// A fixed counter.
///
/// # Invariants
///
/// The processor has this counter, and its number is less than [`MAX_FIXED`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fixed(u8);

impl Fixed {
    /// The counter's number, from 0.
    #[inline]
    pub const fn index(self) -> u32 {
        self.0 as u32
    }

    /// What `RDPMC` wants in `ECX` for this counter: bit 30 says that it is a fixed one.
    #[inline]
    pub const fn rdpmc_index(self) -> u32 {
        1 << 30 | self.index()
    }

    /// Reads the counter of this CPU, [`ArchPerfmon::fixed_width`] bits.
    #[inline]
    pub fn rdpmc(self, irqs: &LocalInterruptDisabled) -> u64 {
        // SAFETY: By the type invariant the processor has this counter.
        unsafe { rdpmc(self.rdpmc_index(), irqs) }
    }
}

/// # Safety
///
/// The processor must have the counter that `index` stands for: `RDPMC` has no exception table
/// entry, its fault would be an oops.
#[inline]
unsafe fn rdpmc(index: u32, _irqs: &LocalInterruptDisabled) -> u64 {
    // SAFETY: The counter exists, says the caller; reading it has no side effect.
    unsafe { bindings::rpmu_helper_rdpmc(index) }
}

/// `IA32_PERF_CAPABILITIES`: what the counters can do beyond what `CPUID` tells.
///
/// Source: Intel SDM volume 4, table 2-2, register 0x345.
#[derive(Clone, Copy, Debug)]
pub struct PerfCapabilities(u64);

impl PerfCapabilities {
    /// Asks the processor. A processor without the register has none of the capabilities.
    pub fn read(irqs: &LocalInterruptDisabled) -> Self {
        if !Feature::PDCM.present() {
            return Self(0);
        }
        Self(
            ReadOnlyMsr::IA32_PERF_CAPABILITIES
                .read_safe(irqs)
                .unwrap_or(0),
        )
    }

    /// The whole register.
    pub fn raw(self) -> u64 {
        self.0
    }

    /// Whether counters can be written in their full width, through
    /// [`Msr::a_pmc`](super::msr::Msr::a_pmc).
    pub fn full_width_write(self) -> bool {
        self.0 & (1 << 13) != 0
    }
}
