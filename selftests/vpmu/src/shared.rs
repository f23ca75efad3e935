// SPDX-License-Identifier: GPL-2.0

//! State that the threads of a core share, and state that the cores of a node share.
//!
//! QEMU runs each thread's PMU on a host thread of its own (or both on one, alternately), so all
//! state here is atomic. No access orders any other: all are relaxed.

use std::sync::atomic::{
    AtomicBool,
    AtomicU64,
    Ordering::Relaxed, //
};
use std::sync::Arc;

use crate::model::MAX_GENERAL;
use crate::retired::{
    Retired,
    COUNTS, //
};

/// The cores around one northbridge, on AMD's CPUs.
#[derive(Debug, Default)]
pub struct Node {
    /// For each counter number, the thread whose counter of that number has last selected an event
    /// of the northbridge; 0 if none has. Threads are numbered from 1.
    owners: [AtomicU64; MAX_GENERAL],
    threads: AtomicU64,
}

/// A core.
#[derive(Debug)]
pub struct Core {
    node: Arc<Node>,
    threads_per_core: u32,
    threads: [Shared; 2],
}

/// The state of one thread that its sibling reads and writes.
#[derive(Debug, Default)]
struct Shared {
    /// Mask of the enabled general counters.
    enabled: AtomicU64,
    /// Events that the sibling's counters have leaked into this thread's, not yet added to them.
    leaked: [AtomicU64; MAX_GENERAL],
    /// MSR_OFFCORE_RSP_0 and _1.
    offcore_rsp: [AtomicU64; 2],
    /// MSR_LBR_SELECT.
    lbr_select: AtomicU64,
    /// Set if a counter of this thread also counts the sibling's events (AnyThread).
    counts_sibling: AtomicBool,
    /// The sibling's counts at CPL 0 and at CPL 1 to 3 that have not been added to these counters
    /// yet.
    received: [[AtomicU64; COUNTS]; 2],
}

impl Core {
    /// Creates a core of one or two threads in a separate node.
    pub fn new(threads_per_core: u32) -> Arc<Self> {
        Core::on(Arc::default(), threads_per_core)
    }

    /// Creates a core of one or two threads in a node.
    pub fn on(node: Arc<Node>, threads_per_core: u32) -> Arc<Self> {
        Arc::new(Core {
            node,
            threads_per_core,
            threads: Default::default(),
        })
    }
}

/// One thread of a core.
#[derive(Debug)]
pub struct Thread {
    core: Arc<Core>,
    index: usize,
    /// Its number in the node.
    number: u64,
}

impl Thread {
    /// Creates thread `index` (0 or 1) of a core, in its reset state.
    pub fn new(core: Arc<Core>, index: usize) -> Self {
        let number = core.node.threads.fetch_add(1, Relaxed) + 1;
        let thread = Thread {
            core,
            index,
            number,
        };
        thread.reset();
        thread
    }

    /// Clears this thread's part of the core's shared state; the first thread's includes the
    /// registers that a core has only once.
    pub(crate) fn reset(&self) {
        let Shared {
            enabled,
            leaked,
            offcore_rsp,
            lbr_select,
            counts_sibling,
            received,
        } = self.own();
        let counts = leaked.iter().chain(received.iter().flatten());
        for register in counts.chain(offcore_rsp).chain([enabled, lbr_select]) {
            register.store(0, Relaxed);
        }
        counts_sibling.store(false, Relaxed);
    }

    /// Makes the northbridge count the event that this thread's counter selects, instead of other
    /// threads' events on that number.
    pub(crate) fn take_northbridge(&self, counter: usize) {
        self.core.node.owners[counter].store(self.number, Relaxed);
    }

    /// Returns whether the northbridge counts the event that this thread's counter selects.
    pub(crate) fn has_northbridge(&self, counter: usize) -> bool {
        self.core.node.owners[counter].load(Relaxed) == self.number
    }

    /// Returns the number of threads of the core.
    pub(crate) fn per_core(&self) -> u32 {
        self.core.threads_per_core
    }

    fn own(&self) -> &Shared {
        &self.core.threads[self.index]
    }

    fn sibling(&self) -> &Shared {
        &self.core.threads[self.index ^ 1]
    }

    /// Publishes the mask of enabled general counters.
    pub(crate) fn publish(&self, enabled: u64) {
        self.own().enabled.store(enabled, Relaxed);
    }

    /// Returns whether the sibling has this general counter enabled.
    pub(crate) fn sibling_has(&self, counter: usize) -> bool {
        self.sibling().enabled.load(Relaxed) & (1 << counter) != 0
    }

    /// Leaks events to the sibling's counter of the same number.
    pub(crate) fn leak(&self, counter: usize, events: u64) {
        self.sibling().leaked[counter].fetch_add(events, Relaxed);
    }

    /// Takes the events that the sibling has leaked into this counter since the last call.
    pub(crate) fn take_leaked(&self, counter: usize) -> u64 {
        let leaked = &self.own().leaked[counter];
        // Nearly always zero, and a load is cheaper than a swap.
        if leaked.load(Relaxed) == 0 {
            return 0;
        }
        leaked.swap(0, Relaxed)
    }

    /// Sets whether this thread's counters count the sibling's events. Returns whether that
    /// changed.
    pub(crate) fn set_counts_sibling(&self, counts: bool) -> bool {
        let changed = self.own().counts_sibling.swap(counts, Relaxed) != counts;
        if changed && counts {
            // Drop what arrived late for counters that have stopped since.
            self.receive(false);
            self.receive(true);
        }
        changed
    }

    /// Returns whether the sibling's counters count this thread's events.
    pub(crate) fn is_counted_by_sibling(&self) -> bool {
        self.sibling().counts_sibling.load(Relaxed)
    }

    /// Sends the counts that this thread retired to the sibling's counters.
    pub(crate) fn send(&self, user: bool, retired: &Retired) {
        let received = &self.sibling().received[usize::from(user)];
        for (sum, &count) in received.iter().zip(retired) {
            sum.fetch_add(count as u64, Relaxed);
        }
    }

    /// Takes the counts that the sibling has sent since the last call.
    pub(crate) fn receive(&self, user: bool) -> Retired {
        let received = &self.own().received[usize::from(user)];
        std::array::from_fn(|kind| received[kind].swap(0, Relaxed) as i64)
    }

    /// Returns MSR_OFFCORE_RSP_0 or _1, the core's or this thread's.
    pub(crate) fn offcore_rsp(&self, per_core: bool, index: usize) -> &AtomicU64 {
        &self.owner(per_core).offcore_rsp[index]
    }

    /// Returns MSR_LBR_SELECT, the core's or this thread's.
    pub(crate) fn lbr_select(&self, per_core: bool) -> &AtomicU64 {
        &self.owner(per_core).lbr_select
    }

    /// Returns the thread that holds the register: this one, or the first if the core has only one
    /// register.
    fn owner(&self, per_core: bool) -> &Shared {
        if per_core {
            &self.core.threads[0]
        } else {
            self.own()
        }
    }
}
