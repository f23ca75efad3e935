// SPDX-License-Identifier: GPL-2.0

//! The state of the PMU of one logical CPU.

use std::sync::Arc;

use super::pending::Pending;
use super::registers::Registers;
use super::totals::Totals;
use super::tsx::Transactions;
use crate::accounting::Accounting;
use crate::defect::Defects;
use crate::model::Model;
use crate::order::Ordered;
use crate::shared::{Core, Thread};

/// The PMU of one logical CPU.
#[derive(Debug)]
pub struct Pmu {
    pub(super) model: &'static Model,
    /// General counters of this thread.
    pub(super) generals: usize,
    pub(super) regs: Registers,
    pub(super) defects: Defects,
    /// Its place in its core.
    pub(super) thread: Thread,
    /// What is wrong at present, by order.
    pub(super) ordered: Ordered,
    /// The PMI that is to come.
    pub(super) pending: Pending,
    /// The transactions of the hardware that [`Defects::tfa`] concerns.
    pub(super) tsx: Transactions,
    /// What has retired.
    pub(super) totals: Totals,
    /// Counters with AnyThread have begun or ceased to count, and QEMU has not been told.
    pub(super) sibling_must_ask: bool,
    pub(super) accounting: Arc<Accounting>,
    /// How often [`Pmu::retire`] was called.
    pub(super) told: u64,
    /// The accounting MSRs' selection.
    pub(super) accounting_select: u64,
}

impl Pmu {
    /// A PMU in its reset state, with the usual defects; where its core has two threads, nobody is
    /// on the other one.
    pub fn new(model: &'static Model, threads_per_core: u32) -> Self {
        let thread = Thread::new(Core::new(threads_per_core), 0);
        Pmu::on(thread, model, model.defects.usual())
    }

    /// The PMU of one thread of a core, in its reset state.
    pub fn on(thread: Thread, model: &'static Model, defects: Defects) -> Self {
        let generals = model.general_counters(thread.per_core());
        Pmu {
            model,
            generals,
            regs: Registers::new(generals),
            defects,
            thread,
            ordered: Ordered::default(),
            pending: Pending::default(),
            tsx: Transactions::default(),
            totals: Totals::default(),
            sibling_must_ask: false,
            accounting: Arc::default(),
            told: 0,
            accounting_select: 0,
        }
    }

    /// RESET. INIT leaves all MSRs alone (SDM vol. 3, 10.1).
    pub fn reset(&mut self) {
        self.regs = Registers::new(self.generals);
        self.thread.reset();
        self.ordered = Ordered::default();
        self.pending = Pending::default();
        self.tsx = Transactions::default();
        self.totals = Totals::default();
    }

    /// A handle on the accounting that other threads may use.
    pub fn accounting(&self) -> Arc<Accounting> {
        self.accounting.clone()
    }
}
