// SPDX-License-Identifier: GPL-2.0

//! The counters of architectural performance monitoring, and IA32_PERF_CAPABILITIES.
//!
//! [`Counters`] is the only source of [`Gp`] and [`Fixed`], the names of counters. Code that holds
//! one can thus neither name a register beyond the counters' nor execute `RDPMC` for a counter that
//! is absent, which would be an unhandled fault. What CPUID says of counters is decoded by the
//! driver; here it is not relied on: a counter exists if its register can be read.
//!
//! Source: Intel SDM volume 3, section 20.2.

use crate::{
    bindings,
    x86::{
        cpuid::Feature,
        msr::{Msr, ReadOnlyMsr},
    },
};
use kernel::interrupt::LocalInterruptDisabled;

/// As many general-purpose counters as have their registers in one run of addresses everywhere
/// (SDM volume 4, table 2-2: `IA32_PERFEVTSEL0` to `7`, `IA32_PMC0` to `7`, `IA32_A_PMC0` to `7`).
const MAX_GP: u32 = 8;
/// As many fixed counters as `IA32_FIXED_CTR_CTRL` has fields for, four bits each.
const MAX_FIXED: u32 = 16;

/// The counters that a logical processor has.
///
/// # Invariants
///
/// A bit is set in `gp` or `fixed` only if the processor has the counter; none is from [`MAX_GP`] and
/// [`MAX_FIXED`] on.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    gp: u32,
    fixed: u32,
}

impl Counters {
    /// Finds out which of the counters in the masks `gp` and `fixed`, a bit each, this CPU has.
    ///
    /// All CPUs must be alike ([`Feature::HYBRID_CPU`]). Nothing is changed. Interrupts off.
    pub fn probe(gp: u32, fixed: u32, irqs: &LocalInterruptDisabled) -> Self {
        let exists = |msr: Msr| msr.read_safe(irqs).is_ok();
        // INVARIANT: The registers of each counter have been read. RDPMC takes the same numbers (SDM
        // volume 2B, RDPMC).
        Self {
            gp: keep(gp, MAX_GP, |n| {
                exists(Msr::pmc(Gp(n))) && exists(Msr::perfevtsel(Gp(n)))
            }),
            fixed: keep(fixed, MAX_FIXED, |n| exists(Msr::fixed_ctr(Fixed(n)))),
        }
    }

    /// General-purpose counter `n`, if there is one.
    #[inline]
    pub fn gp(&self, n: u32) -> Option<Gp> {
        // INVARIANT: By the type invariant of `Counters`.
        (n < MAX_GP && self.gp & (1 << n) != 0).then_some(Gp(n as u8))
    }

    /// Fixed counter `n`, if there is one.
    #[inline]
    pub fn fixed(&self, n: u32) -> Option<Fixed> {
        // INVARIANT: By the type invariant of `Counters`.
        (n < MAX_FIXED && self.fixed & (1 << n) != 0).then_some(Fixed(n as u8))
    }

    /// All general-purpose counters.
    pub(in crate::x86) fn all_gp(&self) -> impl Iterator<Item = Gp> + '_ {
        (0..MAX_GP).filter_map(|n| self.gp(n))
    }
}

/// The bits of `mask` below `limit` for which `exists` says so.
fn keep(mask: u32, limit: u32, exists: impl Fn(u8) -> bool) -> u32 {
    (0..limit)
        .filter(|n| mask & (1 << n) != 0 && exists(*n as u8))
        .fold(0, |kept, n| kept | (1 << n))
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

    /// Reads the counter of this CPU, in its full width.
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

    /// Reads the counter of this CPU, in its full width.
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
    /// [`Msr::a_pmc`](crate::x86::msr::Msr::a_pmc).
    pub fn full_width_write(self) -> bool {
        self.0 & (1 << 13) != 0
    }
}
