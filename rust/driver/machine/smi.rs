// SPDX-License-Identifier: GPL-2.0

//! Counters that stop in system management mode: `freeze_on_smi` in sysfs.
//!
//! Mainline: `freeze_on_smi_store()`, `arch/x86/events/intel/core.c`. The setting also holds on
//! CPUs that go online later, and for the next driver of the PMU.

use crate::{
    kern::cpu::on_each_cpu,
    x86::{
        builtin::Builtin,
        intel::smi::set_freeze_on_smi, //
    },
};
use kernel::{
    interrupt::LocalInterruptDisabled,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex, //
    },
};

/// The setting `freeze_on_smi`.
pub(in crate::driver) struct Smi {
    /// Set if the machine has the setting: on Intel's processors.
    exists: bool,
    /// Set if counters stop in SMM.
    freeze: Atomic<bool>,
    /// Held while the setting is changed.
    changing: Pin<KBox<Mutex<()>>>,
}

impl Smi {
    /// Takes the setting over from the built-in driver. If that driver has not initialised, its
    /// default holds: counters stop. Fails with `ENOMEM`. Process context.
    pub(in crate::driver) fn new(exists: bool, builtin: Option<&Builtin>) -> Result<Self> {
        Ok(Self {
            exists,
            freeze: Atomic::new(builtin.is_none_or(Builtin::freeze_on_smi)),
            changing: KBox::pin_init(new_mutex!(()), GFP_KERNEL)?,
        })
    }

    /// Applies the setting to this CPU, which is going online, resumes, or is online at load.
    pub(in crate::driver) fn starting(&self, irqs: &LocalInterruptDisabled) {
        if self.exists {
            set_freeze_on_smi(self.freeze.load(Relaxed), irqs);
        }
    }

    /// Returns whether counters stop in SMM.
    pub(in crate::driver) fn freezes(&self) -> bool {
        self.freeze.load(Relaxed)
    }

    /// Sets whether counters stop in SMM, also in the `builtin` driver. Takes effect on all CPUs
    /// before this returns.
    ///
    /// Process context.
    pub(in crate::driver) fn set_freeze(&self, on: bool, builtin: Option<&Builtin>) {
        let _guard = self.changing.lock();
        if self.freeze.xchg(on, Relaxed) == on {
            return;
        }
        if let Some(builtin) = builtin {
            builtin.set_freeze_on_smi(on);
        }
        on_each_cpu(&|irqs| set_freeze_on_smi(on, irqs));
    }
}
