// SPDX-License-Identifier: GPL-2.0

//! Last branch records (LBR): the registers.
//!
//! Source: Intel SDM volume 3, chapter 18 (architectural LBRs) and sections 19.4 to 19.14.

use crate::x86::{
    branches::Record,
    debugctl::{
        self,
        Bits, //
    },
    msr::Msr, //
};
use kernel::interrupt::LocalInterruptDisabled;

/// The branch records that each CPU has.
///
/// # Invariants
///
/// The processor has the registers for `depth` branches.
#[derive(Clone, Copy)]
pub struct Lbr {
    from: Msr,
    to: Msr,
    info: Option<Msr>,
    depth: u32,
    architectural: bool,
}

/// The place of the records' registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Where Core 2 has them. Mainline: `MSR_LBR_CORE_FROM`.
    Core2,
    /// Where Nehalem has them. Mainline: `MSR_LBR_NHM_FROM`.
    Nehalem,
    /// Architectural LBRs.
    Architectural,
}

impl Lbr {
    /// Finds the registers for `depth` branches on this CPU. Returns [`None`] if one is missing or
    /// does not hold what is written to it: hypervisors may leave them out.
    ///
    /// All registers keep their values, except that the records of architectural LBRs are reset if
    /// branches are not being recorded. All CPUs must be alike. Mainline: `intel_pmu_init()`,
    /// `check_msr()`, `arch/x86/events/intel/core.c`, which also tries all registers;
    /// `from_to_write` corresponds to its `lbr_from_signext_quirk_wr()`.
    pub fn probe(
        depth: u8,
        has_info: bool,
        place: Place,
        from_to_write: impl Fn(u64) -> u64,
        irqs: &LocalInterruptDisabled,
    ) -> Option<Self> {
        let architectural = place == Place::Architectural;
        let (from, to, info) = match place {
            Place::Core2 => (
                Msr::MSR_CORE_LASTBRANCH_0_FROM_IP,
                Msr::MSR_CORE_LASTBRANCH_0_TO_IP,
                Msr::MSR_LBR_INFO_0,
            ),
            Place::Nehalem => (
                Msr::MSR_LASTBRANCH_0_FROM_IP,
                Msr::MSR_LASTBRANCH_0_TO_IP,
                Msr::MSR_LBR_INFO_0,
            ),
            Place::Architectural => (
                Msr::IA32_LBR_0_FROM_IP,
                Msr::IA32_LBR_0_TO_IP,
                Msr::IA32_LBR_0_INFO,
            ),
        };
        let control = if architectural {
            Msr::IA32_LBR_CTL
        } else {
            Msr::MSR_LBR_SELECT
        };
        control.read_safe(irqs).ok()?;
        if !architectural {
            Msr::MSR_LASTBRANCH_TOS.read_safe(irqs).ok()?;
        }
        // While branches are being recorded, the records change by themselves. This proves that
        // they exist.
        let is_recording = if architectural {
            control.read_safe(irqs).ok()? & ENABLE != 0
        } else {
            debugctl::has(Bits::LBR, irqs)
        };
        // Architectural records exist up to the configured depth.
        let depth_before = match architectural && !is_recording {
            true => Some(Msr::IA32_LBR_DEPTH.read_safe(irqs).ok()?),
            false => None,
        };
        if depth_before.is_some() {
            Msr::IA32_LBR_DEPTH.write_safe(depth.into(), irqs).ok()?;
        }
        let exist = (0..depth.into()).all(|n| {
            let hold =
                [(from.nth(n), true), (to.nth(n), false)]
                    .into_iter()
                    .all(|(msr, is_from)| {
                        let adapt = |value| match is_from {
                            true => from_to_write(value),
                            false => value,
                        };
                        let before = msr.read_safe(irqs);
                        before.is_ok_and(|before| is_recording || holds(msr, before, adapt, irqs))
                    });
            hold && (!has_info || info.nth(n).read_safe(irqs).is_ok())
        });
        if let Some(before) = depth_before {
            Msr::IA32_LBR_DEPTH.write_safe(before, irqs).ok()?;
        }
        if !exist {
            return None;
        }
        // INVARIANT: All registers have been read.
        Some(Self {
            from,
            to,
            info: has_info.then_some(info),
            depth: depth.into(),
            architectural,
        })
    }

    /// Returns the number of branches that are recorded.
    #[inline]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the number of the latest branch.
    #[inline]
    pub fn latest(&self, irqs: &LocalInterruptDisabled) -> u32 {
        if self.architectural {
            return 0;
        }
        // CAST: a number below the depth.
        Msr::MSR_LASTBRANCH_TOS.read(irqs) as u32
    }

    /// Returns the place of the branch that is `age` branches older than number `latest`.
    #[inline]
    fn place(&self, latest: u32, age: u32) -> u32 {
        if self.architectural {
            age
        } else {
            // The depth is a power of two.
            latest.wrapping_sub(age) & self.depth.wrapping_sub(1)
        }
    }

    /// Reads the branch that is `age` branches older than number `latest`, with its further data if
    /// `info` is set. Returns [`None`] if there is no such branch.
    ///
    /// Branches should not be recorded meanwhile.
    #[inline]
    pub fn read(
        &self,
        latest: u32,
        age: u32,
        info: bool,
        irqs: &LocalInterruptDisabled,
    ) -> Option<Record> {
        if age >= self.depth {
            return None;
        }
        let place = self.place(latest, age);
        let from = self.from.nth(place).read(irqs);
        if from == 0 {
            return None;
        }
        Some(Record {
            from,
            to: self.to.nth(place).read(irqs),
            info: match self.info {
                Some(first) if info => first.nth(place).read(irqs),
                _ => 0,
            },
        })
    }

    /// Returns whether there is a branch with the number `latest`.
    pub fn has(&self, latest: u32, irqs: &LocalInterruptDisabled) -> bool {
        self.from.nth(self.place(latest, 0)).read(irqs) != 0
    }

    /// Writes the branch that is `age` branches older than number `latest`.
    pub fn write(&self, latest: u32, age: u32, record: Record, irqs: &LocalInterruptDisabled) {
        if age >= self.depth {
            return;
        }
        let place = self.place(latest, age);
        self.from.nth(place).write(record.from, irqs);
        self.to.nth(place).write(record.to, irqs);
        if let Some(info) = self.info {
            info.nth(place).write(record.info, irqs);
        }
    }

    /// Sets the number of the latest branch.
    pub fn set_latest(&self, latest: u32, irqs: &LocalInterruptDisabled) {
        if !self.architectural {
            Msr::MSR_LASTBRANCH_TOS.write(latest.into(), irqs);
        }
    }

    /// Resets all records.
    pub fn reset(&self, irqs: &LocalInterruptDisabled) {
        if self.architectural {
            Msr::IA32_LBR_DEPTH.write(self.depth.into(), irqs);
        } else {
            for age in 0..self.depth {
                self.write(0, age, Record::default(), irqs);
            }
        }
    }

    /// Sets the filter, while branches are not recorded. For architectural LBRs,
    /// [`start`](Self::start) sets it.
    #[inline]
    pub fn set_select(&self, select: u32, irqs: &LocalInterruptDisabled) {
        if !self.architectural {
            Msr::MSR_LBR_SELECT.write(select.into(), irqs);
        }
    }

    /// Returns the filter; 0 with architectural LBRs.
    pub fn select(&self, irqs: &LocalInterruptDisabled) -> u32 {
        match self.architectural {
            true => 0,
            // CAST: the bits from 32 on are reserved.
            false => Msr::MSR_LBR_SELECT.read(irqs) as u32,
        }
    }

    /// Starts recording branches with the filter `select`. If `freeze` is set, the next PMI stops
    /// it.
    ///
    /// Mainline: `__intel_pmu_lbr_enable()`, `arch/x86/events/intel/lbr.c`.
    #[inline]
    pub fn start(&self, select: u32, freeze: bool, irqs: &LocalInterruptDisabled) {
        let on = match self.architectural {
            true => Bits::NONE,
            false => Bits::LBR,
        };
        if freeze {
            debugctl::change(Bits::NONE, on.or(Bits::FREEZE_LBRS_ON_PMI), irqs);
        } else {
            debugctl::change(Bits::FREEZE_LBRS_ON_PMI, on, irqs);
        }
        if self.architectural {
            Msr::IA32_LBR_CTL.write(u64::from(select) | ENABLE, irqs);
        }
    }

    /// Stops recording branches.
    #[inline]
    pub fn stop(&self, irqs: &LocalInterruptDisabled) {
        if self.architectural {
            Msr::IA32_LBR_CTL.write(0, irqs);
        } else {
            debugctl::change(Bits::LBR.or(Bits::FREEZE_LBRS_ON_PMI), Bits::NONE, irqs);
        }
    }
}

/// LBREn of IA32_LBR_CTL.
const ENABLE: u64 = 1 << 0;

/// Returns whether `msr`, which now reads as `before`, can hold another value. Restores it.
///
/// `adapt` converts a value that was read to the value to be written for it.
fn holds(msr: Msr, before: u64, adapt: impl Fn(u64) -> u64, irqs: &LocalInterruptDisabled) -> bool {
    const SOME_BITS: u64 = 0xffff;
    let value = adapt(before ^ SOME_BITS);
    let held = msr.write_safe(value, irqs).is_ok()
        && msr.read_safe(irqs).is_ok_and(|after| after == value);
    msr.write_safe(adapt(before), irqs).is_ok() && held
}
