// SPDX-License-Identifier: GPL-2.0

//! Interaction between the threads of a core: AnyThread, errata BJ122, BV98 and HSD29 (leaking
//! events), shared offcore registers.

use std::sync::atomic::AtomicU64;

use super::registers::{
    OS,
    USR, //
};
use super::state::Pmu;
use crate::defect;

impl Pmu {
    /// Publishes to the sibling the counters that are enabled, if events leak, and whether any
    /// counter also counts the sibling's events.
    pub(super) fn publish(&mut self) {
        if self.leaky() {
            self.thread.publish(self.enabled(USR | OS));
        }
        self.sibling_must_ask |= self.thread.set_counts_sibling(self.any_thread() != 0);
    }

    /// Returns whether the sibling's counters count this thread's events.
    pub fn sibling_counts(&self) -> bool {
        self.thread.is_counted_by_sibling()
    }

    /// Returns whether QEMU has to ask the sibling's [`Pmu::counting`] again; true once per change.
    pub fn sibling_must_ask(&mut self) -> bool {
        std::mem::take(&mut self.sibling_must_ask)
    }

    /// Returns MSR_OFFCORE_RSP_0 or _1.
    pub(super) fn offcore_rsp(&self, index: usize) -> &AtomicU64 {
        self.thread.offcore_rsp(self.model.offcore.per_core, index)
    }

    /// Returns whether events leak between the threads ([`defect::Defects::ht_leak`]).
    pub(super) fn leaky(&self) -> bool {
        self.defects.ht_leak && self.thread.per_core() > 1
    }

    /// Leaks a share of the events of a general counter to the sibling. Returns how many leaked.
    pub(super) fn leak(&mut self, index: usize, events: u64) -> u64 {
        match &mut self.regs.general[index].leak {
            Some(since) if self.thread.sibling_has(index) => {
                let sum = *since + events;
                *since = sum % defect::LEAK;
                self.thread.leak(index, sum / defect::LEAK);
                sum / defect::LEAK
            }
            _ => 0,
        }
    }

    /// Adds the events that the sibling leaked to enabled counters. Those for other counters are
    /// lost.
    pub(super) fn take_leaked(&mut self) {
        for i in 0..self.generals {
            let events = self.thread.take_leaked(i);
            if events != 0 && self.enabled(USR | OS) & (1 << i) != 0 {
                self.add(i, events);
            }
        }
    }
}
