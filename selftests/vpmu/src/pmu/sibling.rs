// SPDX-License-Identifier: GPL-2.0

//! The other thread.

use std::sync::atomic::AtomicU64;

use super::registers::{OS, USR};
use super::state::Pmu;
use crate::defect;

impl Pmu {
    /// Lets the other thread know which counters are switched on, and whether any of them counts it.
    pub(super) fn publish(&mut self) {
        if self.leaky() {
            self.thread.publish(self.enabled(USR | OS));
        }
        self.sibling_must_ask |= self.thread.want(self.any_thread() != 0);
    }

    /// Do the other thread's counters count what this one retires?
    pub fn sibling_counts(&self) -> bool {
        self.thread.is_wanted()
    }

    /// Must the core's other thread ask [`Pmu::counting`] anew? True once for each time.
    pub fn sibling_must_ask(&mut self) -> bool {
        std::mem::take(&mut self.sibling_must_ask)
    }

    /// MSR_OFFCORE_RSP_0 or _1.
    pub(super) fn offcore_rsp(&self, index: usize) -> &AtomicU64 {
        self.thread.offcore_rsp(self.model.offcore.per_core, index)
    }

    /// Can events leak to and from the other thread ([`Defects::ht_leak`])?
    pub(super) fn leaky(&self) -> bool {
        self.defects.ht_leak && self.thread.per_core() > 1
    }

    /// How many of these events on a general counter the other thread's counter gets instead.
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

    /// Adds what has leaked into counters that are switched on; the rest is gone.
    pub(super) fn take_leaked(&mut self) {
        for i in 0..self.generals {
            let events = self.thread.take_leaked(i);
            if events != 0 && self.enabled(USR | OS) & (1 << i) != 0 {
                self.add(i, events);
            }
        }
    }
}
