// SPDX-License-Identifier: GPL-2.0

//! What the threads of a core share, and tell each other.
//!
//! Each thread's PMU is run by a host thread of its own (or both by one, in turns), so all of this is
//! atomics. None of them orders anything else: they are relaxed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use crate::model::MAX_GENERAL;
use crate::retired::{self, Retired};

/// A core.
#[derive(Debug)]
pub struct Core {
    threads_per_core: u32,
    threads: [Shared; 2],
}

/// What one thread lets the other one see.
#[derive(Debug, Default)]
struct Shared {
    /// The general counters that are switched on, as a mask.
    enabled: AtomicU64,
    /// What the other thread's counters have leaked into those of this one, to be added to them.
    leaked: [AtomicU64; MAX_GENERAL],
    /// MSR_OFFCORE_RSP_0 and _1.
    offcore_rsp: [AtomicU64; 2],
    /// Counters of this thread count what the other one retires (AnyThread) …
    wants: AtomicBool,
    /// … which puts it here, at CPL 0 and above it.
    received: [[AtomicU64; retired::COUNTS]; 2],
}

impl Core {
    /// A core of one thread or two.
    pub fn new(threads_per_core: u32) -> Arc<Self> {
        Arc::new(Core {
            threads_per_core,
            threads: Default::default(),
        })
    }
}

/// One thread's place in its core.
#[derive(Debug)]
pub struct Thread {
    core: Arc<Core>,
    index: usize,
}

impl Thread {
    /// Thread `index`, 0 or 1, of a core; in its reset state.
    pub fn new(core: Arc<Core>, index: usize) -> Self {
        let thread = Thread { core, index };
        thread.reset();
        thread
    }

    /// Clears what is this thread's.
    pub fn reset(&self) {
        let Shared {
            enabled,
            leaked,
            offcore_rsp,
            wants,
            received,
        } = self.own();
        let counts = leaked.iter().chain(received.iter().flatten());
        for register in counts.chain(offcore_rsp).chain([enabled]) {
            register.store(0, Relaxed);
        }
        wants.store(false, Relaxed);
    }

    /// How many threads its core has.
    pub fn per_core(&self) -> u32 {
        self.core.threads_per_core
    }

    fn own(&self) -> &Shared {
        &self.core.threads[self.index]
    }

    fn sibling(&self) -> &Shared {
        &self.core.threads[self.index ^ 1]
    }

    /// Says which general counters are switched on.
    pub fn publish(&self, enabled: u64) {
        self.own().enabled.store(enabled, Relaxed);
    }

    /// Is this general counter switched on in the other thread?
    pub fn sibling_has(&self, counter: usize) -> bool {
        self.sibling().enabled.load(Relaxed) & (1 << counter) != 0
    }

    /// Sends counts to the other thread's counter.
    pub fn leak(&self, counter: usize, events: u64) {
        self.sibling().leaked[counter].fetch_add(events, Relaxed);
    }

    /// What the other thread has leaked into this counter since the last time.
    pub fn take_leaked(&self, counter: usize) -> u64 {
        let leaked = &self.own().leaked[counter];
        // Nearly always there is nothing, and a load is cheaper.
        if leaked.load(Relaxed) == 0 {
            return 0;
        }
        leaked.swap(0, Relaxed)
    }

    /// Says whether this thread's counters count what the other one retires. True if that is new.
    pub fn want(&self, wants: bool) -> bool {
        let changed = self.own().wants.swap(wants, Relaxed) != wants;
        if changed && wants {
            // What has come late for those that counted it before.
            self.receive(false);
            self.receive(true);
        }
        changed
    }

    /// Do the other thread's counters count what this one retires?
    pub fn is_wanted(&self) -> bool {
        self.sibling().wants.load(Relaxed)
    }

    /// Lets the other thread's counters have what this one retired.
    pub fn send(&self, user: bool, retired: &Retired) {
        let received = &self.sibling().received[usize::from(user)];
        for (sum, &count) in received.iter().zip(retired) {
            sum.fetch_add(count as u64, Relaxed);
        }
    }

    /// What the other thread has sent since the last time.
    pub fn receive(&self, user: bool) -> Retired {
        let received = &self.own().received[usize::from(user)];
        std::array::from_fn(|kind| received[kind].swap(0, Relaxed) as i64)
    }

    /// MSR_OFFCORE_RSP_0 or _1: the core's or this thread's.
    pub fn offcore_rsp(&self, of_core: bool, index: usize) -> &AtomicU64 {
        let owner = if of_core {
            &self.core.threads[0]
        } else {
            self.own()
        };
        &owner.offcore_rsp[index]
    }
}
