// SPDX-License-Identifier: GPL-2.0

//! Counters that user space reads with `rdpmc`.
//!
//! This works only if the built-in driver has initialised, whose code in the kernel it uses
//! ([`x86::builtin`](crate::x86::builtin)). Otherwise no event's page says that it can be read so, and the
//! file `rdpmc` is always 0.

use crate::{
    logic::regs::{
        counter::CounterMask,
        dirty::{Dirty, Marks},
        shadow::Shadow,
    },
    x86::builtin::{Builtin, Layout, UserRdpmc},
};
use kernel::{
    error::code::ENOTSUPP, interrupt::LocalInterruptDisabled, new_mutex, prelude::*, sync::Mutex,
};

/// User space's access to counters.
pub(in crate::driver) struct UserRead {
    pub(in crate::driver) builtin: Option<Builtin>,
    /// Held while the mode is changed.
    changing: Pin<KBox<Mutex<()>>>,
}

impl UserRead {
    /// Looks for the built-in driver. `width` is that of the counters, `layout` the places of the
    /// built-in driver's members.
    ///
    /// Fails with `ENOMEM`. Process context.
    pub(in crate::driver) fn new(width: u8, layout: Option<Layout>) -> Result<Self> {
        let builtin = layout
            .ok_or(ENOENT)
            .and_then(|layout| Builtin::find(width, layout));
        if let Err(error) = &builtin {
            pr_notice!("user space cannot read counters with rdpmc ({error:?})\n");
        }
        Ok(Self {
            builtin: builtin.ok(),
            changing: KBox::pin_init(new_mutex!(()), GFP_KERNEL)?,
        })
    }

    /// Returns whether any task may read counters.
    pub(in crate::driver) fn is_possible(&self) -> bool {
        self.mode() != UserRdpmc::Never
    }

    /// Returns the tasks that may read counters.
    pub(in crate::driver) fn mode(&self) -> UserRdpmc {
        let builtin = self.builtin.as_ref();
        builtin.map_or(UserRdpmc::Never, Builtin::user_rdpmc)
    }

    /// Sets the tasks that may read counters, on all CPUs when this returns.
    ///
    /// Fails with `EINVAL` if there is no such `mode`, with `ENOTSUPP` if the built-in driver has not
    /// initialised. Process context.
    pub(in crate::driver) fn set_mode(&self, mode: u64) -> Result {
        let mode = match mode {
            0 => UserRdpmc::Never,
            1 => UserRdpmc::Mapped,
            2 => UserRdpmc::Always,
            _ => return Err(EINVAL),
        };
        // The built-in driver returns this errno if `rdpmc` cannot work (`attr_rdpmc_broken`).
        let builtin = self.builtin.as_ref().ok_or(ENOTSUPP)?;
        let _guard = self.changing.lock();
        builtin.set_user_rdpmc(mode);
        Ok(())
    }

    /// Marks the counters of this CPU that events leave as dirty, so that the kernel sets them to 0 before
    /// another task may read them. Tells the shadow of those that the kernel has set to 0 since. Called
    /// before the `planned` counters are programmed.
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
