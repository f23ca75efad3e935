// SPDX-License-Identifier: GPL-2.0

//! The counters of architectural performance monitoring, and IA32_PERF_CAPABILITIES.
//!
//! [`Counters`] is the only source of [`Gp`] and [`Fixed`], the names of counters. So code that
//! holds one can neither name registers of absent counters nor execute `RDPMC` for these, which
//! would be an unhandled fault. The driver decodes CPUID, but this file does not rely on it: a
//! counter exists if its register can be read.
//!
//! Source: Intel SDM volume 3, section 20.2.

use crate::{
    bindings,
    x86::{
        cpuid::Feature,
        msr::{
            Msr,
            ReadOnlyMsr, //
        },
        reserve::Register, //
    },
};
use kernel::interrupt::LocalInterruptDisabled;

/// The number of general-purpose counters whose registers are at consecutive addresses on all
/// processors (SDM volume 4, table 2-2: `IA32_PERFEVTSEL0` to `7`, `IA32_PMC0` to `7`,
/// `IA32_A_PMC0` to `7`).
pub const MAX_GP: u32 = 8;
/// The number of fixed counters for which `IA32_FIXED_CTR_CTRL` has fields, of four bits each.
pub const MAX_FIXED: u32 = 16;

/// The counters that a logical processor has.
///
/// # Invariants
///
/// A bit is set in `gp` or `fixed` only if the processor has the counter. All bits are below
/// [`MAX_GP`] and [`MAX_FIXED`]. `metrics` has a value only if the processor has
/// `MSR_PERF_METRICS`.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    gp: u32,
    fixed: u32,
    metrics: Option<Metrics>,
}

impl Counters {
    /// Returns the counters in the masks `gp` and `fixed` that this CPU has, and `MSR_PERF_METRICS`
    /// if it is `wanted` and the CPU has it. (Big cores of Raptor Lake have it although
    /// `IA32_PERF_CAPABILITIES` does not show it: erratum RPL018.)
    ///
    /// All CPUs with the PMU must be alike. Nothing is changed. Interrupts off.
    pub fn probe(gp: u32, fixed: u32, wanted: bool, irqs: &LocalInterruptDisabled) -> Self {
        let exists = |msr: Msr| msr.read_safe(irqs).is_ok();
        let has_metrics = wanted && exists(Msr::MSR_PERF_METRICS);
        // INVARIANT: The registers of each counter and MSR_PERF_METRICS have been read. RDPMC takes
        // the same numbers (SDM volume 2B, RDPMC).
        Self {
            gp: keep(gp, MAX_GP, |n| {
                exists(Msr::pmc(Gp(n))) && exists(Msr::perfevtsel(Gp(n)))
            }),
            fixed: keep(fixed, MAX_FIXED, |n| exists(Msr::fixed_ctr(Fixed(n)))),
            metrics: has_metrics.then_some(Metrics(())),
        }
    }

    /// Returns general-purpose counter `n`, if there is one.
    #[inline]
    pub fn gp(&self, n: u32) -> Option<Gp> {
        // INVARIANT: By the type invariant of `Counters`.
        (n < MAX_GP && self.gp & (1 << n) != 0).then_some(Gp(n as u8))
    }

    /// Returns fixed counter `n`, if there is one.
    #[inline]
    pub fn fixed(&self, n: u32) -> Option<Fixed> {
        // INVARIANT: By the type invariant of `Counters`.
        (n < MAX_FIXED && self.fixed & (1 << n) != 0).then_some(Fixed(n as u8))
    }

    /// Returns `MSR_PERF_METRICS`, if there is one.
    #[inline]
    pub fn metrics(&self) -> Option<Metrics> {
        self.metrics
    }

    /// Returns the registers of the general-purpose counters, to be reserved.
    pub fn registers(&self) -> impl Iterator<Item = Register> + Clone + '_ {
        let mut numbers = 0..2 * MAX_GP;
        let register = |n| {
            let counter = self.gp(n / 2)?;
            Some(match n % 2 {
                0 => Register::Counter(Msr::pmc(counter)),
                _ => Register::Select(Msr::perfevtsel(counter)),
            })
        };
        // Other adapters would give functions longer names.
        core::iter::from_fn(move || numbers.find_map(register))
    }
}

/// Returns the bits of `mask` below `limit` for which `exists` returns true.
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
    /// Returns the counter's number, from 0.
    #[inline]
    pub const fn index(self) -> u32 {
        self.0 as u32
    }

    /// Reads the counter of this CPU, in its full width.
    #[inline]
    pub fn rdpmc(self, irqs: &LocalInterruptDisabled) -> u64 {
        // SAFETY: By the type invariant the processor has this counter.
        unsafe { rdpmc(self.index(), irqs) }
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
    /// Returns the counter's number, from 0.
    #[inline]
    pub const fn index(self) -> u32 {
        self.0 as u32
    }

    /// Reads the counter of this CPU, in its full width.
    #[inline]
    pub fn rdpmc(self, irqs: &LocalInterruptDisabled) -> u64 {
        // SAFETY: By the type invariant the processor has this counter. Bit 30 stands for fixed
        // counters.
        unsafe { rdpmc(1 << 30 | self.index(), irqs) }
    }
}

/// `MSR_PERF_METRICS`.
///
/// # Invariants
///
/// The processor has the register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metrics(());

impl Metrics {
    /// Returns the register.
    #[inline]
    pub const fn register(self) -> Msr {
        Msr::MSR_PERF_METRICS
    }

    /// Reads the register of this CPU.
    #[inline]
    pub fn rdpmc(self, irqs: &LocalInterruptDisabled) -> u64 {
        // SAFETY: By the type invariant the processor has the register, whose operand is bit 29
        // alone (SDM volume 2B, RDPMC).
        unsafe { rdpmc(1 << 29, irqs) }
    }
}

/// The registers of counters.
impl Msr {
    /// `IA32_PERFEVTSELn`: the event that a general-purpose counter counts.
    #[inline]
    pub const fn perfevtsel(counter: Gp) -> Self {
        Self::IA32_PERFEVTSEL0.nth(counter.index())
    }

    /// `IA32_PMCn`: the value of a general-purpose counter.
    ///
    /// A write takes the low 32 bits and sign-extends them to the width of the counter.
    #[inline]
    pub const fn pmc(counter: Gp) -> Self {
        Self::IA32_PMC0.nth(counter.index())
    }

    /// `IA32_A_PMCn`: the same value as [`Msr::pmc`], writable in its full width.
    ///
    /// Exists if bit 13 of `IA32_PERF_CAPABILITIES` is set; otherwise accesses fault.
    #[inline]
    pub const fn a_pmc(counter: Gp) -> Self {
        Self::IA32_A_PMC0.nth(counter.index())
    }

    /// `IA32_FIXED_CTRn`: the value of a fixed counter. Writable in its full width.
    #[inline]
    pub const fn fixed_ctr(counter: Fixed) -> Self {
        Self::IA32_FIXED_CTR0.nth(counter.index())
    }
}

/// # Safety
///
/// The processor must have the counter for which `index` stands: `RDPMC` has no exception table
/// entry, so its fault would be an oops.
#[inline]
unsafe fn rdpmc(index: u32, _irqs: &LocalInterruptDisabled) -> u64 {
    // SAFETY: By the function's contract the counter exists; reading it has no side effect.
    unsafe { bindings::rpmu_helper_rdpmc(index) }
}

/// Reads `IA32_PERF_CAPABILITIES`: the counters' capabilities that `CPUID` does not report. Returns
/// 0 if the kernel does not use the register.
///
/// Source: Intel SDM volume 4, table 2-2, register 0x345.
pub fn read_capabilities(irqs: &LocalInterruptDisabled) -> u64 {
    if !Feature::PDCM.present() {
        return 0;
    }
    ReadOnlyMsr::IA32_PERF_CAPABILITIES
        .read_safe(irqs)
        .unwrap_or(0)
}
