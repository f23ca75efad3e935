// SPDX-License-Identifier: GPL-2.0

//! AMD's performance counters.
//!
//! [`Counters`] is the only source of [`Counter`], the name of a counter, as in
//! [`intel::perfmon`](crate::x86::intel::perfmon): code that holds a [`Counter`] can neither name
//! registers of absent counters nor execute `RDPMC` for these.
//!
//! Without extensions there are four event selects and then four counters, at consecutive
//! addresses. With core performance counter extensions there are six pairs of event select and
//! counter at another address, or with PerfMonV2 as many as CPUID says. The first four are also
//! available at the old addresses.
//!
//! Source: APM volume 2, section 13.2, and appendix A.

use crate::{
    bindings,
    x86::{
        msr::Msr,
        reserve::Register, //
    },
};
use kernel::interrupt::LocalInterruptDisabled;

/// The number of counters without extensions.
const MAX_LEGACY: u32 = 4;
/// The maximum number of counters with PerfMonV2, whose CPUID leaf has four bits for it.
const MAX_CORE: u32 = 16;
/// The number of core counters that RDPMC can read. Higher operands stand for counters of other
/// units (APM volume 3, RDPMC).
const MAX_RDPMC: u32 = 6;

/// The counters that a logical processor has.
///
/// # Invariants
///
/// A bit is set in `mask` only if the processor has the counter. All bits are below [`MAX_LEGACY`],
/// or below [`MAX_CORE`] if `core` is set.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    mask: u32,
    /// Set if the counters are accessed by the registers of the core extensions.
    core: bool,
}

impl Counters {
    /// Returns the counters in `mask` that this CPU has. `core` is set if the processor has core
    /// performance counter extensions.
    ///
    /// All CPUs must be alike. Changes no register. Interrupts off.
    pub fn probe(mask: u32, core: bool, irqs: &LocalInterruptDisabled) -> Self {
        let limit = if core { MAX_CORE } else { MAX_LEGACY };
        let exists = |msr: Msr| msr.read_safe(irqs).is_ok();
        let has = |n: &u32| {
            let counter = Counter { n: *n as u8, core };
            mask & (1 << n) != 0 && exists(counter.value()) && exists(counter.select())
        };
        // INVARIANT: The registers of each counter have been read.
        Self {
            mask: (0..limit).filter(has).fold(0, |mask, n| mask | (1 << n)),
            core,
        }
    }

    /// Returns counter `n`, if there is one.
    #[inline]
    pub fn get(&self, n: u32) -> Option<Counter> {
        // INVARIANT: By the type invariant of `Counters`.
        (n < MAX_CORE && self.mask & (1 << n) != 0).then_some(Counter {
            n: n as u8,
            core: self.core,
        })
    }

    /// Returns the counters' registers, to be reserved.
    pub fn registers(&self) -> impl Iterator<Item = Register> + Clone + '_ {
        let mut numbers = 0..2 * MAX_CORE;
        let register = |n| {
            let counter = self.get(n / 2)?;
            Some(match n % 2 {
                0 => Register::Counter(counter.value()),
                _ => Register::Select(counter.select()),
            })
        };
        // Other adapters would give functions longer names.
        core::iter::from_fn(move || numbers.find_map(register))
    }
}

/// A counter.
///
/// # Invariants
///
/// The processor has this counter, at the registers that `core` selects, and `n` is less than
/// [`MAX_CORE`]. (In [`Counters::probe`], which does not know yet whether the counter exists, only
/// its registers are named.)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter {
    n: u8,
    core: bool,
}

impl Counter {
    /// Returns the event select: PERF_CTLn.
    #[inline]
    pub const fn select(self) -> Msr {
        if self.core {
            Msr::AMD_PERF_CTL0.nth(self.n as u32 * 2)
        } else {
            Msr::AMD_LEGACY_CTL0.nth(self.n as u32)
        }
    }

    /// Returns the counter's value: PERF_CTRn, writable in its full width.
    #[inline]
    pub const fn value(self) -> Msr {
        if self.core {
            Msr::AMD_PERF_CTR0.nth(self.n as u32 * 2)
        } else {
            Msr::AMD_LEGACY_CTR0.nth(self.n as u32)
        }
    }

    /// Reads the counter of this CPU, in its full width.
    #[inline]
    pub fn read(self, irqs: &LocalInterruptDisabled) -> u64 {
        let n = u32::from(self.n);
        if n < MAX_RDPMC {
            // SAFETY: By the type invariant the processor has this counter, and RDPMC accepts its
            // number; reading it has no side effect.
            unsafe { bindings::rpmu_helper_rdpmc(n) }
        } else {
            self.value().read(irqs)
        }
    }
}
