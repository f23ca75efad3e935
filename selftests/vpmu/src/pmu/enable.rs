// SPDX-License-Identifier: GPL-2.0

//! Which counters there are, and which of them count.

use super::registers::{
    ANY_THREAD, EN, FIXED_ANY_THREAD, FIXED_OS, FIXED_SHIFT, FIXED_USR, OS, USR,
};
use super::state::Pmu;
use crate::order::{self, Ordered};

/// How much of what a CPU retires matters. Mirrors `enum vpmu_counting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Counting {
    /// Nothing.
    Nothing,
    /// Instructions and page walks.
    Instructions,
    /// All of it.
    All,
}

impl Pmu {
    /// The general and the fixed counters that can be accessed.
    pub(super) fn there(&self) -> (usize, usize) {
        if self.ordered.has(Ordered::FEWER.and(Ordered::MISSING)) {
            order::FEW
        } else {
            (self.generals, self.model.fixed)
        }
    }

    /// The bits of IA32_PERF_GLOBAL_CTRL, and of GLOBAL_STATUS as far as it speaks of counters.
    pub(super) fn counter_bits(&self) -> u64 {
        let (generals, fixed) = self.there();
        ((1 << generals) - 1) | (((1 << fixed) - 1) << FIXED_SHIFT)
    }

    /// The same, if none were missing.
    pub(super) fn all_counter_bits(&self) -> u64 {
        ((1 << self.generals) - 1) | (((1 << self.model.fixed) - 1) << FIXED_SHIFT)
    }

    /// A fixed counter's field of IA32_FIXED_CTR_CTRL.
    pub(super) fn fixed_field(&self, index: usize) -> u64 {
        (self.regs.fixed_ctrl >> (4 * index)) & 0xf
    }

    /// The general counters that are switched on for one of these levels ([`USR`], [`OS`]).
    pub(super) fn enabled(&self, levels: u64) -> u64 {
        if self.is_frozen() {
            return 0;
        }
        let general = self.regs.general[..self.generals].iter().zip(0..);
        let enabled = general.filter(|(g, _)| g.select & EN != 0 && g.select & levels != 0);
        enabled.fold(0, |mask, (_, i)| mask | (1 << i)) & self.regs.global_ctrl
    }

    /// The counters that count at this privilege, as bits of IA32_PERF_GLOBAL_CTRL.
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
        self.enabled(level) | fixed & self.regs.global_ctrl
    }

    /// The active counters that count the other thread as well.
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
        counters.fold(0, |mask, i| mask | (1 << i)) & (self.active(false) | self.active(true))
    }

    /// What depends on what is retired?
    pub fn counting(&self) -> Counting {
        let active = self.active(false) | self.active(true);
        let general = self.regs.general[..self.generals].iter().zip(0..);
        let more_than_instructions = general
            .filter(|(_, i)| active & (1 << i) != 0)
            .any(|(general, _)| general.register.is_some() || !general.source.is_of_instructions());
        if more_than_instructions || self.thread.is_wanted() {
            Counting::All
        } else if self.pending.is_any()
            || self.defects.tfa
            || self.accounting.is_watched()
            || active != 0
        {
            Counting::Instructions
        } else {
            Counting::Nothing
        }
    }
}
