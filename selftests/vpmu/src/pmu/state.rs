// SPDX-License-Identifier: GPL-2.0

//! The state of a PMU: the content of its registers, and hidden state.

use std::sync::Arc;

use super::amd::svm::Svm;
use super::pending::Pending;
use super::registers::{
    Registers,
    EN,
    INT,
    OS,
    USR, //
};
use super::totals::Totals;
use super::tsx::Transactions;
use crate::accounting::Accounting;
use crate::defect::Defects;
use crate::inject::Injected;
use crate::model::{
    CoreType,
    Model,
    Pebs, //
};
use crate::profile::Profile;
use crate::shared::{
    Core,
    Thread, //
};

/// The PMU of one logical CPU.
#[derive(Debug)]
pub struct Pmu {
    pub(super) model: &'static Model,
    /// The type of the core, on a hybrid processor.
    pub(super) core_type: Option<&'static CoreType>,
    /// Number of general counters of this thread.
    pub(super) generals: usize,
    pub(super) regs: Registers,
    pub(super) defects: Defects,
    /// Precise sampling, if it is switched on.
    pub(super) pebs: Option<Pebs>,
    /// The rest of the PMU that a hypervisor gives to its guest; `model` has nothing else then.
    pub(super) profile: Option<&'static Profile>,
    /// State shared with the sibling thread.
    pub(super) thread: Thread,
    /// The errors that the guest has injected.
    pub(super) injected: Injected,
    /// The PMI to be delivered.
    pub(super) pending: Pending,
    /// Transactions, with [`Defects::tfa`].
    pub(super) tsx: Transactions,
    /// Virtualization, on AMD's CPUs.
    pub(super) svm: Svm,
    /// The totals that retired so far.
    pub(super) totals: Totals,
    /// Set if the first counter with AnyThread was enabled or the last one disabled since QEMU last
    /// asked.
    pub(super) sibling_must_ask: bool,
    pub(super) accounting: Arc<Accounting>,
    /// Number of calls of [`Pmu::retire`].
    pub(super) told: u64,
    /// The register whose accesses the accounting MSRs report.
    pub(super) accounting_select: u64,
}

impl Pmu {
    /// Creates a PMU in its reset state with the default defects. Its core has no other PMU.
    pub fn new(model: &'static Model, threads_per_core: u32) -> Self {
        let thread = Thread::new(Core::new(threads_per_core), 0);
        Pmu::on(thread, model, model.defects.usual())
    }

    /// Creates the PMU of one thread of a core, in its reset state.
    pub fn on(thread: Thread, model: &'static Model, defects: Defects) -> Self {
        let generals = model.general_counters(thread.per_core());
        let mut pmu = Pmu {
            model,
            core_type: None,
            generals,
            regs: Registers::new(generals, model.counter_mask()),
            defects,
            pebs: None,
            profile: None,
            thread,
            injected: Injected::default(),
            pending: Pending::default(),
            tsx: Transactions::default(),
            svm: Svm::default(),
            totals: Totals::default(),
            sibling_must_ask: false,
            accounting: Arc::default(),
            told: 0,
            accounting_select: 0,
        };
        pmu.leave_running();
        pmu
    }

    /// Makes this a core of a hybrid processor, unless `core_type` is `None`. The type's model is
    /// this PMU's.
    pub fn of_type(self, core_type: Option<&'static CoreType>) -> Self {
        Pmu { core_type, ..self }
    }

    /// Switches precise sampling on, or returns `None` if the hardware does not have it.
    pub fn with_pebs(self) -> Option<Self> {
        let pebs = Some(self.model.pebs?);
        Some(Pmu { pebs, ..self })
    }

    /// Makes this the PMU of a hypervisor's guest, in its reset state.
    pub fn with_profile(self, profile: &'static Profile) -> Self {
        let threads = self.thread.per_core();
        // A CPU lives as long as the emulator.
        let model = Box::leak(Box::new(profile.of(self.model, threads)));
        let mut pmu = Pmu {
            profile: Some(profile),
            ..Pmu::on(self.thread, model, Defects::NONE)
        };
        pmu.reset();
        pmu
    }

    /// Handles RESET. INIT does not change MSRs (SDM vol. 3, 10.1). The accounting continues.
    pub fn reset(&mut self) {
        self.regs = Registers::new(self.generals, self.model.counter_mask());
        let disabled = self.profile.is_some_and(|it| !it.enabled_at_reset);
        if disabled && self.model.amd().is_none() {
            self.regs.global_ctrl = 0;
        }
        self.thread.reset();
        self.injected = Injected::default();
        self.pending = Pending::default();
        self.tsx = Transactions::default();
        self.svm = Svm::default();
        self.totals = Totals::default();
        self.leave_running();
    }

    /// Starts the counter that firmware leaves running ([`Defects::left_running`]).
    fn leave_running(&mut self) {
        const INSTRUCTIONS: u64 = 0xc0;
        if !self.defects.left_running {
            return;
        }
        let select = INSTRUCTIONS | USR | OS | INT | EN;
        let last = self.generals - 1;
        if self.model.amd().is_some() {
            self.write_amd_select(last, select);
        } else {
            self.write_select(last, select);
        }
    }

    /// Returns the accounting, which other host threads may read.
    pub(crate) fn accounting(&self) -> Arc<Accounting> {
        self.accounting.clone()
    }
}
