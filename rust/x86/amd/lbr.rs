// SPDX-License-Identifier: GPL-2.0

//! Last branch records, version 2 (LbrExtV2): the registers.
//!
//! The latest branch is always in the first register. Source: APM volume 2, section 13.1.1.9, and
//! appendix A.

use crate::{
    bindings,
    x86::{
        branches::Record,
        debugctl::{
            self,
            Bits, //
        },
        msr::{
            Msr,
            ReadOnlyMsr, //
        },
    },
};
use kernel::interrupt::LocalInterruptDisabled;

/// The branch records that each CPU has.
///
/// # Invariants
///
/// The processor has the registers for `depth` branches, and the registers that control the
/// recording.
#[derive(Clone, Copy)]
pub struct Lbr {
    depth: u32,
    /// Set if a PMI can stop the recording.
    freezes: bool,
}

impl Lbr {
    /// Finds the registers for `depth` branches on this CPU. Returns [`None`] if one is missing:
    /// hypervisors may leave them out.
    ///
    /// Changes no register. All CPUs must be alike.
    pub fn probe(depth: u8, freezes: bool, irqs: &LocalInterruptDisabled) -> Option<Self> {
        let this = Self {
            depth: depth.into(),
            freezes,
        };
        let exist = (0..this.depth).all(|n| {
            let (from, to) = (Self::from(n), Self::to(n));
            from.read_safe(irqs).is_ok() && to.read_safe(irqs).is_ok()
        });
        let exist = exist
            && Msr::AMD_LBR_SELECT.read_safe(irqs).is_ok()
            && ReadOnlyMsr::AMD_DBG_EXTN_CFG.read_safe(irqs).is_ok();
        // INVARIANT: All registers have been read.
        exist.then_some(this)
    }

    const fn from(n: u32) -> Msr {
        Msr::AMD_SAMP_BR_FROM.nth(n.wrapping_mul(2))
    }

    const fn to(n: u32) -> Msr {
        Self::from(n).nth(1)
    }

    /// Returns the number of branches that are recorded.
    #[inline]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Reads the branch that is `age` branches older than the latest. Returns [`None`] beyond the
    /// depth.
    ///
    /// Branches should not be recorded meanwhile.
    #[inline]
    pub fn read(&self, age: u32, irqs: &LocalInterruptDisabled) -> Option<Record> {
        (age < self.depth).then(|| Record {
            from: Self::from(age).read(irqs),
            to: Self::to(age).read(irqs),
            info: 0,
        })
    }

    /// Resets all records.
    pub fn reset(&self, irqs: &LocalInterruptDisabled) {
        for n in 0..self.depth {
            Self::from(n).write(0, irqs);
            Self::to(n).write(0, irqs);
        }
    }

    /// Sets the filter, while branches are not recorded.
    #[inline]
    pub fn set_select(&self, select: u32, irqs: &LocalInterruptDisabled) {
        Msr::AMD_LBR_SELECT.write(select.into(), irqs);
    }

    /// Starts recording branches. The next PMI stops it, if the processor supports this.
    ///
    /// Mainline: `amd_pmu_lbr_enable_all()`, `arch/x86/events/amd/lbr.c`.
    #[inline]
    pub fn start(&self, irqs: &LocalInterruptDisabled) {
        if self.freezes {
            debugctl::change(Bits::NONE, Bits::FREEZE_LBRS_ON_PMI, irqs);
        }
        set_recording(true, irqs);
    }

    /// Stops recording branches.
    ///
    /// Mainline: `__amd_pmu_lbr_disable()`, `arch/x86/events/perf_event.h`.
    #[inline]
    pub fn stop(&self, irqs: &LocalInterruptDisabled) {
        set_recording(false, irqs);
        if self.freezes {
            debugctl::change(Bits::FREEZE_LBRS_ON_PMI, Bits::NONE, irqs);
        }
    }
}

/// Sets or clears LBRV2EN of DebugExtnCfg, and keeps the other bits, which belong to other users.
#[inline]
fn set_recording(on: bool, irqs: &LocalInterruptDisabled) {
    /// `DBG_EXTN_CFG_LBRV2EN`.
    const ENABLE: u64 = 1 << 6;
    let register = ReadOnlyMsr::AMD_DBG_EXTN_CFG;
    let before = register.read(irqs);
    let after = if on {
        before | ENABLE
    } else {
        before & !ENABLE
    };
    if after != before {
        // SAFETY: The bit only controls the recording of branches, and the other bits keep their
        // values: the kernel changes them only on processors with BRS, without LbrExtV2
        // (`arch/x86/events/amd/brs.c`). A fault is caught by the accessor's exception table entry.
        unsafe { bindings::rpmu_helper_wrmsrq(register.number(), after) }
    }
}
