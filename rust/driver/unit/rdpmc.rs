// SPDX-License-Identifier: GPL-2.0

//! Counters that user space reads by itself, with `rdpmc`.
//!
//! That works where the built-in driver has initialised: the kernel code behind it is that driver's
//! ([`x86::builtin`](crate::x86::builtin)). Where it has not, no event says that it can be read so,
//! and the file `rdpmc` is 0 and stays that.

use crate::{
    driver::{cpu::Own, CorePmu, Driver},
    logic::regs::{counter::CounterMask, dirty::Marks},
    perf::Setting,
    x86::builtin::{Builtin, UserRdpmc},
};
use kernel::{
    error::code::ENOTSUPP, interrupt::LocalInterruptDisabled, new_mutex, prelude::*, sync::Mutex,
};

/// Who may read counters.
pub(in crate::driver) struct UserRead {
    pub(in crate::driver) builtin: Option<Builtin>,
    /// Held by who changes it.
    changing: Pin<KBox<Mutex<()>>>,
}

impl UserRead {
    /// `width` is that of the counters. Process context.
    pub(in crate::driver) fn new(width: u8) -> Result<Self> {
        let builtin = Builtin::find(width);
        if let Err(error) = &builtin {
            pr_notice!("user space cannot read counters with rdpmc ({error:?})\n");
        }
        Ok(Self {
            builtin: builtin.ok(),
            changing: KBox::pin_init(new_mutex!(()), GFP_KERNEL)?,
        })
    }

    /// Whether anybody may.
    pub(in crate::driver) fn is_possible(&self) -> bool {
        self.mode() != UserRdpmc::Never
    }

    fn mode(&self) -> UserRdpmc {
        let builtin = self.builtin.as_ref();
        builtin.map_or(UserRdpmc::Never, Builtin::user_rdpmc)
    }

    /// Before the plan is programmed: has the counters that are left now wiped before others may read
    /// them, and takes note of those that were.
    pub(in crate::driver) fn mark_dirty(&self, own: &mut Own, irqs: &LocalInterruptDisabled) {
        let Some(builtin) = &self.builtin else {
            return;
        };
        let before = CounterMask::from_bits(builtin.dirty(irqs));
        let Marks { cleared, marked } = own.dirty.use_counters(own.schedule.taken(), before);
        for counter in cleared {
            own.shadow.forget(counter);
        }
        if marked != before {
            builtin.set_dirty(marked.bits(), irqs);
        }
    }
}

/// `rdpmc` in sysfs.
///
/// Mainline: `set_attr_rdpmc()`, `arch/x86/events/core.c:2670`.
pub(in crate::driver) struct Rdpmc;

impl Setting<Driver> for Rdpmc {
    type Value = u64;
    const MODE: u16 = 0o600;

    fn get(pmu: &CorePmu) -> u64 {
        pmu.ops().user_read.mode() as u64
    }

    fn set(pmu: &CorePmu, value: u64) -> Result {
        let mode = match value {
            0 => UserRdpmc::Never,
            1 => UserRdpmc::Mapped,
            2 => UserRdpmc::Always,
            _ => return Err(EINVAL),
        };
        let UserRead { builtin, changing } = &pmu.ops().user_read;
        // The built-in driver says so where something else is in the way (`attr_rdpmc_broken`).
        let builtin = builtin.as_ref().ok_or(ENOTSUPP)?;
        let _guard = changing.lock();
        builtin.set_user_rdpmc(mode);
        Ok(())
    }
}
