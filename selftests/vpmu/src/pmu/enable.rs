// SPDX-License-Identifier: GPL-2.0

//! The counters that exist and those that count.

use super::metrics::METRICS;
use super::registers::{
    ANY_THREAD,
    EN,
    FIXED_ANY_THREAD,
    FIXED_OS,
    FIXED_SHIFT,
    FIXED_USR,
    OS,
    USR, //
};
use super::state::Pmu;
use crate::inject::{
    self,
    Injected, //
};

/// The occurrences that QEMU must count for the PMU. Mirrors `enum vpmu_counting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Counting {
    /// Nothing.
    Nothing,
    /// Instructions, page walks and interrupts.
    Instructions,
    /// Everything.
    All,
    /// Everything, one instruction at a time, so that each can be sampled.
    Each,
}

impl Pmu {
    /// Returns the number of general and of fixed counters that exist.
    pub(super) fn existing(&self) -> (usize, usize) {
        if self.injected.has(Injected::FEWER.and(Injected::MISSING)) {
            let (generals, fixed) = inject::FEW;
            (generals, fixed.min(self.model.fixed))
        } else {
            (self.generals, self.model.fixed)
        }
    }

    /// Returns the counters that exist and MSR_PERF_METRICS, as bits of IA32_PERF_GLOBAL_CTRL.
    pub(super) fn counter_bits(&self) -> u64 {
        let (generals, fixed) = self.existing();
        bits(generals, fixed, self.metrics())
    }

    /// Returns the model's counters and MSR_PERF_METRICS, as bits of IA32_PERF_GLOBAL_CTRL.
    pub(super) fn all_counter_bits(&self) -> u64 {
        bits(self.generals, self.model.fixed, self.model.metrics)
    }

    /// Returns a fixed counter's field of IA32_FIXED_CTR_CTRL.
    pub(super) fn fixed_field(&self, index: usize) -> u64 {
        (self.regs.fixed_ctrl >> (4 * index)) & 0xf
    }

    /// Returns the general counters that count at any of these levels ([`USR`], [`OS`]).
    pub(super) fn enabled(&self, levels: u64) -> u64 {
        if self.is_frozen() {
            return 0;
        }
        let general = self.regs.general[..self.generals].iter().zip(0..);
        let enabled = general.filter(|(g, _)| {
            g.select & EN != 0 && g.select & levels != 0 && self.svm.counts(g.select)
        });
        enabled.fold(0, |mask, (_, i)| mask | (1 << i)) & self.regs.global_ctrl
    }

    /// Returns the counters that count at CPL 0 or, if `user`, above, and MSR_PERF_METRICS if it
    /// does, as bits of IA32_PERF_GLOBAL_CTRL.
    pub(super) fn active(&self, user: bool) -> u64 {
        let (level, fixed_level) = if user {
            (USR, FIXED_USR)
        } else {
            (OS, FIXED_OS)
        };
        if self.is_frozen() {
            return 0;
        }
        let fixed = (0..self.model.fixed).filter(|&i| self.fixed_field(i) & fixed_level != 0);
        let fixed = fixed.fold(0, |mask, i| mask | (1 << (FIXED_SHIFT + i)));
        let fixed = fixed & self.regs.global_ctrl;
        self.enabled(level) | fixed | self.metrics_active(fixed)
    }

    /// Returns the active counters that count the sibling as well.
    pub(super) fn any_thread(&self) -> u64 {
        if self.thread.per_core() < 2 {
            return 0;
        }
        let general = self.regs.general[..self.generals].iter().zip(0..);
        let general = general.filter(|(general, _)| general.select & ANY_THREAD != 0);
        let fixed = (0..self.model.fixed).filter(|&i| self.fixed_field(i) & FIXED_ANY_THREAD != 0);
        let counters = general
            .map(|(_, i)| i)
            .chain(fixed.map(|i| FIXED_SHIFT + i));
        match counters.fold(0, |mask, i| mask | (1 << i)) {
            // The usual case.
            0 => 0,
            counters => counters & (self.active(false) | self.active(true)),
        }
    }

    /// Returns the occurrences that QEMU must count.
    pub fn counting(&self) -> Counting {
        if self.is_precise() {
            return Counting::Each;
        }
        let active = self.active(false) | self.active(true);
        let general = self.regs.general[..self.generals].iter().zip(0..);
        let more_than_instructions = general
            .filter(|(_, i)| active & (1 << i) != 0)
            .any(|(general, _)| general.register.is_some() || !general.source.is_of_instructions());
        // The shares differ between loads, branches and other instructions.
        let more_than_instructions = more_than_instructions || active & METRICS != 0;
        if more_than_instructions || self.thread.is_counted_by_sibling() {
            Counting::All
        } else if self.pending.is_any()
            || self.defects.tfa
            || self.accounting.is_watched()
            || self.records_branches()
            || active != 0
        {
            Counting::Instructions
        } else {
            Counting::Nothing
        }
    }
}

/// Returns this many general and fixed counters and, if it has shares, MSR_PERF_METRICS, as bits of
/// IA32_PERF_GLOBAL_CTRL.
fn bits(generals: usize, fixed: usize, metrics: usize) -> u64 {
    let metrics = if metrics == 0 { 0 } else { METRICS };
    ((1 << generals) - 1) | (((1 << fixed) - 1) << FIXED_SHIFT) | metrics
}
