// SPDX-License-Identifier: GPL-2.0

//! Counters that user space reads by itself, with `rdpmc`.
//!
//! That works where the built-in driver has initialised: the kernel code behind it is that driver's
//! ([`x86::builtin`](crate::x86::builtin)). Where it has not, no event says that it can be read so,
//! and the file `rdpmc` is 0 and stays that.

use crate::{
    logic::regs::{
        counter::CounterMask,
        dirty::{Dirty, Marks},
        shadow::Shadow,
    },
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

    pub(in crate::driver) fn mode(&self) -> UserRdpmc {
        let builtin = self.builtin.as_ref();
        builtin.map_or(UserRdpmc::Never, Builtin::user_rdpmc)
    }

    /// Says who may: on all CPUs when this returns.
    ///
    /// `EINVAL` if `mode` is no mode, `ENOTSUPP` where the built-in driver has not initialised. Process
    /// context.
    pub(in crate::driver) fn set_mode(&self, mode: u64) -> Result {
        let mode = match mode {
            0 => UserRdpmc::Never,
            1 => UserRdpmc::Mapped,
            2 => UserRdpmc::Always,
            _ => return Err(EINVAL),
        };
        // The built-in driver says so where something else is in the way (`attr_rdpmc_broken`).
        let builtin = self.builtin.as_ref().ok_or(ENOTSUPP)?;
        let _guard = self.changing.lock();
        builtin.set_user_rdpmc(mode);
        Ok(())
    }

    /// Marks the counters of this CPU that are left now, before those that are `planned` are programmed:
    /// the kernel wipes them before another task may read them. Takes note of those that it has wiped.
    pub(in crate::driver) fn mark_dirty(
        &self,
        dirty: &mut Dirty,
        planned: CounterMask,
        shadow: &mut Shadow,
        irqs: &LocalInterruptDisabled,
    ) {
        let Some(builtin) = &self.builtin else {
            return;
        };
        let before = CounterMask::from_bits(builtin.dirty(irqs));
        let Marks { cleared, marked } = dirty.use_counters(planned, before);
        for counter in cleared {
            shadow.forget(counter);
        }
        if marked != before {
            builtin.set_dirty(marked.bits(), irqs);
        }
    }
}
