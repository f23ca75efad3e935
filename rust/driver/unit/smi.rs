// SPDX-License-Identifier: GPL-2.0

//! Counters that stop while firmware runs: `freeze_on_smi` in sysfs.
//!
//! Mainline: `freeze_on_smi_store()`, `arch/x86/events/intel/core.c:7135`. It is in force on a CPU that
//! comes, too, and after the PMU has changed hands.

use crate::{
    kern::cpu::on_each_cpu,
    x86::{builtin::Builtin, intel::smi::set_freeze_on_smi},
};
use kernel::{
    interrupt::LocalInterruptDisabled,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Mutex,
    },
};

/// Whether counters stop in SMM.
pub(in crate::driver) struct Smi {
    freeze: Atomic<bool>,
    /// Held by who changes it.
    changing: Pin<KBox<Mutex<()>>>,
}

impl Smi {
    /// As the built-in driver has it, or would have if it were there: what firmware does is nobody's
    /// business, unless root says so. Process context.
    pub(in crate::driver) fn new(builtin: Option<&Builtin>) -> Result<Self> {
        Ok(Self {
            freeze: Atomic::new(builtin.is_none_or(Builtin::freeze_on_smi)),
            changing: KBox::pin_init(new_mutex!(()), GFP_KERNEL)?,
        })
    }

    /// This CPU has come up.
    pub(in crate::driver) fn starting(&self, irqs: &LocalInterruptDisabled) {
        set_freeze_on_smi(self.freeze.load(Relaxed), irqs);
    }

    /// Returns whether they do.
    pub(in crate::driver) fn freezes(&self) -> bool {
        self.freeze.load(Relaxed)
    }

    /// Says whether they do: on all CPUs when this returns, and to the `builtin` driver.
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
