// SPDX-License-Identifier: GPL-2.0

//! The registers of the branch records: Intel's or AMD's.

use crate::{
    logic::sample::lbr::{
        record::Format,
        Lbr, //
    },
    x86::{
        amd,
        branches::Record,
        intel::{
            self,
            lbr::Place, //
        },
    },
};
use kernel::interrupt::LocalInterruptDisabled;

/// The registers of the branch records that each CPU has.
#[derive(Clone, Copy)]
pub(in crate::driver) enum LbrRegisters {
    /// Intel's, architectural ones and others.
    Intel(intel::lbr::Lbr),
    /// AMD's LbrExtV2.
    Amd(amd::lbr::Lbr),
}

impl LbrRegisters {
    /// Finds the registers of `lbr` on this CPU. Returns [`None`] if one is missing. Changes no
    /// register.
    ///
    /// `freezes` is set if a PMI can stop the recording; on Intel's processors it always can.
    pub(super) fn find(lbr: Lbr, freezes: bool, irqs: &LocalInterruptDisabled) -> Option<Self> {
        if let Format::Amd { .. } = lbr.format {
            return amd::lbr::Lbr::probe(lbr.depth, freezes, irqs).map(Self::Amd);
        }
        let place = if lbr.is_architectural() {
            Place::Architectural
        } else if lbr.is_in_core_2_registers() {
            Place::Core2
        } else {
            Place::Nehalem
        };
        let found = intel::lbr::Lbr::probe(
            lbr.depth,
            lbr.format.has_info(),
            place,
            |from| lbr.format.from_to_write(from),
            irqs,
        );
        found.map(Self::Intel)
    }

    /// Returns the number of the latest branch.
    #[inline]
    pub(in crate::driver) fn latest(&self, irqs: &LocalInterruptDisabled) -> u32 {
        match self {
            Self::Intel(it) => it.latest(irqs),
            Self::Amd(_) => 0,
        }
    }

    /// Reads the branch that is `age` branches older than number `latest`, with its further data if
    /// `info` is set. Returns [`None`] if there is no such branch; then there are no older ones
    /// either.
    #[inline]
    pub(in crate::driver) fn read(
        &self,
        latest: u32,
        age: u32,
        info: bool,
        irqs: &LocalInterruptDisabled,
    ) -> Option<Record> {
        match self {
            Self::Intel(it) => it.read(latest, age, info, irqs),
            Self::Amd(it) => it.read(age, irqs),
        }
    }

    /// Resets all records.
    pub(in crate::driver) fn reset(&self, irqs: &LocalInterruptDisabled) {
        match self {
            Self::Intel(it) => it.reset(irqs),
            Self::Amd(it) => it.reset(irqs),
        }
    }

    /// Sets the filter, where [`start`](Self::start) does not. Must not be called while branches
    /// are recorded.
    #[inline]
    pub(in crate::driver) fn set_select(&self, select: u32, irqs: &LocalInterruptDisabled) {
        match self {
            Self::Intel(it) => it.set_select(select, irqs),
            Self::Amd(it) => it.set_select(select, irqs),
        }
    }

    /// Starts recording branches with the filter `select`. If `freeze` is set, the next PMI stops
    /// it; on AMD's processors, if they support this.
    #[inline]
    pub(in crate::driver) fn start(
        &self,
        select: u32,
        freeze: bool,
        irqs: &LocalInterruptDisabled,
    ) {
        match self {
            Self::Intel(it) => it.start(select, freeze, irqs),
            // `freeze` is always set, as there are no call stacks. `set_select()` has set the
            // filter.
            Self::Amd(it) => it.start(irqs),
        }
    }

    /// Stops recording branches.
    #[inline]
    pub(in crate::driver) fn stop(&self, irqs: &LocalInterruptDisabled) {
        match self {
            Self::Intel(it) => it.stop(irqs),
            Self::Amd(it) => it.stop(irqs),
        }
    }

    /// Returns the registers to which a call stack can be written; [`None`] if they cannot hold
    /// one.
    pub(in crate::driver) fn writable(&self) -> Option<&intel::lbr::Lbr> {
        match self {
            Self::Intel(it) => Some(it),
            Self::Amd(_) => None,
        }
    }
}
