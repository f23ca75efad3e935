// SPDX-License-Identifier: GPL-2.0

//! Enabling counters by one register for all: IA32_PERF_GLOBAL_CTRL.
//!
//! A counter whose bit is 0 does not count, whatever its event select or its field of
//! IA32_FIXED_CTR_CTRL is. So switching all events out costs one write.

use super::{
    counter::CounterMask,
    event_select::EventSelect,
    register::{
        set,
        Register,
        RegisterWrite, //
    },
};

/// The places where an event counts: in virtual machines, outside of them, or both. GLOBAL_CTRL has
/// a value for each of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountsIn {
    /// Outside of virtual machines: not `attr.exclude_host`.
    pub host: bool,
    /// In virtual machines: not `attr.exclude_guest`.
    pub guest: bool,
}

impl CountsIn {
    /// In and outside of virtual machines.
    pub const EVERYWHERE: Self = Self {
        host: true,
        guest: true,
    };
}

/// A value of IA32_PERF_GLOBAL_STATUS, with the causes of a PMI.
///
/// The bits of the counters are those of IA32_PERF_GLOBAL_CTRL; other units have bits from 55 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status(u64);

impl Status {
    /// Trace_ToPA_PMI: Intel PT has filled a region of its output. SDM volume 3, figure 20-4.
    const TRACE_TOPA_PMI: u64 = 1 << 55;

    /// OvfBuffer: the PEBS records have reached the threshold for a PMI. SDM volume 3, figure 20-4.
    const OVF_BUFFER: u64 = 1 << 62;

    /// LBR_Frz: a PMI has stopped the recording of branches. SDM volume 3, figure 20-13.
    const LBR_FROZEN: u64 = 1 << 58;

    /// Returns the status with these bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the bits. Writing them to OVF_CTRL clears them.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the `present` counters that have overflowed.
    #[inline]
    pub fn overflowed(self, present: CounterMask) -> CounterMask {
        CounterMask::from_bits(self.0 & present.bits())
    }

    /// Returns whether a PMI has stopped the recording of branches, from version 4 on.
    /// Acknowledging the bit starts the recording again.
    #[inline]
    pub const fn has_frozen_branches(self) -> bool {
        self.0 & Self::LBR_FROZEN != 0
    }

    /// Returns whether the PEBS records have reached the threshold for a PMI.
    #[inline]
    pub const fn has_records(self) -> bool {
        self.0 & Self::OVF_BUFFER != 0
    }

    /// Returns the status without the bit for PEBS records.
    #[inline]
    pub const fn without_records(self) -> Self {
        Self(self.0 & !Self::OVF_BUFFER)
    }

    /// Returns whether Intel PT has filled a region of its output.
    #[inline]
    pub const fn is_trace(self) -> bool {
        self.0 & Self::TRACE_TOPA_PMI != 0
    }
}

/// The known values of GLOBAL_CTRL and FIXED_CTR_CTRL, and the wanted value of the latter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Global {
    /// Set if there are fixed counters. Without them, FIXED_CTR_CTRL may not exist.
    has_fixed: bool,
    /// The value of FIXED_CTR_CTRL, if it is known.
    fixed_control: Option<u64>,
    /// The running counters, valid after [`reset`](Self::reset): the value of GLOBAL_CTRL that a
    /// callback set last.
    running: CounterMask,
    /// The value for FIXED_CTR_CTRL when counting resumes.
    wanted_fixed_control: u64,
}

impl Global {
    /// Makes the state before a [`reset`](Self::reset), which has to come first.
    pub(super) const fn new(present: CounterMask) -> Self {
        Self {
            has_fixed: !present.fixed().is_empty(),
            fixed_control: None,
            running: CounterMask::EMPTY,
            wanted_fixed_control: 0,
        }
    }

    /// Stops all counters and clears both registers, whatever their values.
    pub(super) fn reset(&mut self, write: &mut impl FnMut(RegisterWrite)) {
        *self = Self {
            fixed_control: None,
            running: CounterMask::EMPTY,
            wanted_fixed_control: 0,
            ..*self
        };
        write_global_control(self.running, write);
        self.set_fixed_control(write);
    }

    /// Records that all counters are stopped. Returns whether the caller has to stop them.
    #[inline]
    pub(super) fn stop(&mut self) -> bool {
        !core::mem::replace(&mut self.running, CounterMask::EMPTY).is_empty()
    }

    /// Records that only `counters` run. Returns them if the caller has to let them run.
    #[inline]
    pub(super) fn run(&mut self, counters: CounterMask) -> Option<CounterMask> {
        let changed = core::mem::replace(&mut self.running, counters) != counters;
        changed.then_some(counters)
    }

    /// Plans the field of fixed counter `n`, for the event `select`.
    #[inline]
    pub(super) fn want_fixed(&mut self, n: u8, select: EventSelect) {
        let shift = u32::from(n) * 4;
        self.wanted_fixed_control &= !EventSelect::FIXED_CONTROL.wrapping_shl(shift);
        self.wanted_fixed_control |= select.fixed_control().wrapping_shl(shift);
    }

    /// Programs the planned fields.
    #[inline]
    pub(super) fn set_fixed_control(&mut self, write: &mut impl FnMut(RegisterWrite)) {
        if self.has_fixed {
            let value = self.wanted_fixed_control;
            set(
                &mut self.fixed_control,
                Register::FixedControl,
                value,
                write,
            );
        }
    }

    /// Lets `counters` run for a moment. No counter may be running when this is called.
    pub(super) fn pulse(&self, counters: CounterMask, write: &mut impl FnMut(RegisterWrite)) {
        write_global_control(counters, write);
        write_global_control(self.running, write);
    }
}

fn write_global_control(counters: CounterMask, write: &mut impl FnMut(RegisterWrite)) {
    write(RegisterWrite {
        register: Register::GlobalControl,
        value: counters.bits(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_separates_counters_from_other_units() {
        let present = CounterMask::first_gp(4) | CounterMask::first_fixed(3);
        const PT: u64 = 1 << 55;
        const FIXED_2: u64 = 1 << 34;
        let cases = [
            // Status, overflowed, PT
            (0, 0, false),
            (FIXED_2 | 1, FIXED_2 | 1, false),
            // An absent counter; metrics; frozen LBR and counters, and others.
            (1 << 4, 0, false),
            (1 << 48, 0, false),
            (0xff << 56, 0, false),
            (PT, 0, true),
            (PT | 8, 8, true),
        ];
        for (bits, overflowed, trace) in cases {
            let status = Status::from_bits(bits);
            assert_eq!(status.overflowed(present).bits(), overflowed, "{bits:#x}");
            assert_eq!(status.is_trace(), trace, "{bits:#x}");
            assert_eq!(status.has_records(), (bits >> 62) & 1 != 0, "{bits:#x}");
            assert_eq!(status.bits(), bits);
        }
    }
}
