// SPDX-License-Identifier: GPL-2.0

//! Counters that user space reads with `rdpmc`.
//!
//! The kernel's code for this belongs to the built-in driver
//! ([`x86::builtin`](crate::x86::builtin)). If the built-in driver cannot be found, no event's page
//! has an index for `rdpmc`, and the file `rdpmc` in sysfs is always 0.

use super::super::Driver;
use crate::{
    logic::{
        capabilities::{
            Capabilities,
            Interface, //
        },
        cores::PerType,
        regs::{
            counter::CounterMask,
            dirty::{
                Dirty,
                Marks, //
            },
            shadow::Shadow, //
        },
        user_read::{
            Mappings,
            Readers, //
        },
    },
    perf::{
        self,
        space_of,
        Event, //
    },
    x86::builtin::{
        Builtin,
        CounterSet,
        Layout,
        RegisterSet,
        UserRdpmc, //
    },
};
use core::{
    ops::BitOr,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{
            Relaxed,
            SeqCst, //
        },
    },
};
use kernel::{
    error::code::ENOTSUPP,
    interrupt::LocalInterruptDisabled,
    mm::Mm,
    new_mutex,
    prelude::*,
    sync::Mutex, //
};

/// The readers of an event's mmap page.
pub(in crate::driver) struct Page {
    readers: Readers,
    /// The members of [`Mappings`]: `space`, `own` and `others`. Accessed with
    /// [`UserRead::mapping`] held.
    space: AtomicU64,
    own: AtomicU32,
    others: AtomicU32,
    /// [`Mappings::reader`]. Read in any context, on the event's CPU.
    reader: AtomicU64,
}

impl Page {
    fn new(readers: Readers) -> Self {
        Self {
            readers,
            space: AtomicU64::new(0),
            own: AtomicU32::new(0),
            others: AtomicU32::new(0),
            reader: AtomicU64::new(0),
        }
    }

    /// Returns whether this page, which belongs to `event`, gets an index. Any context.
    ///
    /// With the built-in driver, each page gets an index (`x86_pmu_event_idx()`,
    /// `arch/x86/events/core.c`).
    pub(in crate::driver) fn has_index(&self, event: &Event<Driver>) -> bool {
        match self.readers {
            Readers::None => false,
            Readers::All => true,
            Readers::OwnProcess => {
                let reader = self.reader.load(Relaxed);
                // A task that has executed another program has a new address space.
                reader != 0 && reader == event.task_space()
            }
        }
    }

    /// Changes the mappings. Returns whether the reading address space has changed.
    ///
    /// [`UserRead::mapping`] is held.
    fn change(&self, f: impl FnOnce(&mut Mappings)) -> bool {
        let mut mappings = Mappings {
            space: self.space.load(Relaxed),
            own: self.own.load(Relaxed),
            others: self.others.load(Relaxed),
        };
        f(&mut mappings);
        self.space.store(mappings.space, Relaxed);
        self.own.store(mappings.own, Relaxed);
        self.others.store(mappings.others, Relaxed);
        let new = mappings.reader();
        self.reader.swap(new, SeqCst) != new
    }
}

/// User space's access to counters.
pub(in crate::driver) struct UserRead {
    builtin: Option<Builtin>,
    /// The counters that users can read.
    counters: CounterSet,
    /// Set if the pages of events can have an index.
    has_indices: bool,
    /// Held while the mode is changed.
    changing: Pin<KBox<Mutex<()>>>,
    /// Held while the mappings of an event change.
    mapping: Pin<KBox<Mutex<()>>>,
}

impl UserRead {
    /// Looks for the built-in driver. `pmus` has the capabilities of each PMU, and `layout` the
    /// offsets of the built-in driver's members. `has_indices` is set if the pages of events can
    /// have an index.
    ///
    /// Fails with `ENODEV` if there are no PMUs, or with `ENOMEM`. Process context.
    #[inline(never)]
    pub(in crate::driver) fn new(
        pmus: &PerType<&Capabilities>,
        layout: Option<Layout>,
        has_indices: bool,
    ) -> Result<Self> {
        let counters = counters(pmus).ok_or(ENODEV)?;
        let builtin = layout
            .ok_or(ENOENT)
            .and_then(|layout| Builtin::find(&counters, layout));
        if let Err(error) = &builtin {
            pr_notice!("user space cannot read counters with rdpmc ({error:?})\n");
        }
        Ok(Self {
            builtin: builtin.ok(),
            counters,
            has_indices,
            changing: KBox::pin_init(new_mutex!(()), GFP_KERNEL)?,
            mapping: KBox::pin_init(new_mutex!(()), GFP_KERNEL)?,
        })
    }

    /// Returns the built-in driver if it was found.
    pub(in crate::driver) fn builtin(&self) -> Option<&Builtin> {
        self.builtin.as_ref()
    }

    /// Returns the built-in driver if it has initialised.
    pub(in crate::driver) fn initialised(&self) -> Option<&Builtin> {
        let builtin = self.builtin.as_ref();
        builtin.filter(|builtin| builtin.has_initialised())
    }

    /// Prepares reading counters by `rdpmc` until `self` is dropped, unless the built-in driver has
    /// prepared it. Process context.
    pub(in crate::driver) fn prepare(&self) {
        if let Some(builtin) = &self.builtin {
            builtin.lend(&self.counters);
        }
    }

    /// Returns the state of the mmap page of an event that is being opened.
    pub(in crate::driver) fn page(&self, event: &perf::NewEvent<'_, Driver>) -> Page {
        if !self.has_indices {
            return Page::new(Readers::None);
        }
        let always = self.mode() == UserRdpmc::Always;
        Page::new(Readers::of(
            event.counts_cpu(),
            event.attr().inherit(),
            always,
        ))
    }

    /// Lets the tasks of `mm` read counters as long as `event` is mapped there. Process context,
    /// the lock of `mm` held for writing.
    pub(in crate::driver) fn mapped(&self, event: &Event<Driver>, mm: &Mm) {
        let own = event.is_of_current_process();
        self.remap(event, |mappings| mappings.map(space_of(mm), own));
        if let Some(builtin) = &self.builtin {
            builtin.allow(mm);
        }
    }

    /// Reverts [`mapped`](Self::mapped). Process context.
    pub(in crate::driver) fn unmapped(&self, event: &Event<Driver>, mm: &Mm) {
        self.remap(event, |mappings| mappings.unmap(space_of(mm)));
        if let Some(builtin) = &self.builtin {
            builtin.disallow(mm);
        }
    }

    /// Changes the mappings of `event`, and updates its page if the page gets or loses its index.
    fn remap(&self, event: &Event<Driver>, f: impl FnOnce(&mut Mappings)) {
        let _guard = self.mapping.lock();
        // The perf core has updated the page before it called `mapped`.
        if event.data().page.change(f) {
            event.update_userpage_on_its_cpu();
        }
    }

    /// Returns whether any task may read counters of events.
    pub(in crate::driver) fn is_possible(&self) -> bool {
        self.has_indices && self.mode() != UserRdpmc::Never
    }

    /// Returns the tasks that may read counters.
    pub(in crate::driver) fn mode(&self) -> UserRdpmc {
        let builtin = self.builtin.as_ref();
        builtin.map_or(UserRdpmc::Never, Builtin::user_rdpmc)
    }

    /// Sets the tasks that may read counters. Takes effect on all CPUs before this returns.
    ///
    /// Fails with `EINVAL` if there is no such `mode`, and with `ENOTSUPP` if the built-in driver
    /// was not found. Process context.
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

    /// Marks the counters of this CPU that events leave as dirty, so that the kernel sets them to 0
    /// before another task may read them. Brings the shadow up to date with counters that the
    /// kernel has set to 0 meanwhile. Called before the `planned` counters are programmed.
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

/// Returns the counters of all PMUs in the form that [`x86::builtin`](crate::x86::builtin) uses.
/// All types of cores have the same interface and the same width of counters.
fn counters(pmus: &PerType<&Capabilities>) -> Option<CounterSet> {
    let one = pmus.get(0)?;
    let all = pmus.iter().map(|pmu| pmu.counters);
    Some(CounterSet {
        registers: match one.interface {
            Interface::ArchPerfmon => RegisterSet::Intel,
            Interface::AmdLegacy => RegisterSet::AmdLegacy,
            Interface::AmdCore | Interface::AmdV2 => RegisterSet::AmdCore,
        },
        width: one.width.bits(),
        mask: all.fold(CounterMask::EMPTY, BitOr::bitor).bits(),
    })
}
