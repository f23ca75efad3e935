// SPDX-License-Identifier: GPL-2.0

//! The last calls of `perf_event_open()` that were refused, and why: `rpmu/refusals` in debugfs.
//!
//! An errno cannot say more than its name. Who got one finds here what it was about.

use crate::{
    kern::caller::Caller,
    logic::{
        open::attr::{Attributes, EventType},
        sched::explanation::Explanation,
    },
    perf::{trace, NewEvent, Operations},
};
use kernel::{
    cpu::CpuId,
    error::Error,
    fmt, new_mutex,
    prelude::*,
    sync::Mutex,
    time::{Instant, Monotonic},
};

/// So many are kept.
const KEPT: usize = 64;

/// One refusal.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Refused {
    when: Instant<Monotonic>,
    caller: Caller,
    attr: Attributes,
    /// The CPU that the event was to be bound to.
    cpu: Option<CpuId>,
    /// Events of this PMU that were in the group already.
    group: u32,
    explanation: Explanation,
}

impl Refused {
    /// The current task has been refused an event. Process context.
    pub(in crate::driver) fn now<T: Operations>(
        attr: Attributes,
        event: &NewEvent<'_, T>,
        explanation: Explanation,
    ) -> Self {
        let mut group = 0;
        event.for_each_group_member(|_| group += 1);
        Self {
            when: Instant::now(),
            caller: Caller::current(),
            attr,
            cpu: event.cpu(),
            group,
            explanation,
        }
    }

    /// Has who traces know. `event` is the one that is refused.
    pub(in crate::driver) fn trace<T: Operations>(&self, event: &NewEvent<'_, T>) {
        let error = Error::from(self.explanation.refusal);
        trace::refused(event, self.group, error, &self.explanation);
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let age = self.when.elapsed().as_millis();
        let attr = &self.attr;
        // An error's debug output is its symbolic name.
        let error = Error::from(self.explanation.refusal);
        let event_type = match attr.event_type {
            EventType::Hardware => "hardware",
            EventType::HwCache => "hw-cache",
            EventType::Raw => "raw",
            EventType::Other => "other",
        };
        write!(
            f,
            "{:>6}.{:03} {} {error:?} type={event_type} config={:#x}",
            age / 1000,
            age % 1000,
            self.caller,
            attr.config,
        )?;
        if attr.config1 != 0 {
            write!(f, " config1={:#x}", attr.config1)?;
        }
        if attr.sample_period != 0 {
            let name = if attr.freq { "freq" } else { "period" };
            write!(f, " {name}={}", attr.sample_period)?;
        }
        if attr.precise_ip != 0 {
            write!(f, " precise_ip={}", attr.precise_ip)?;
        }
        match self.cpu {
            Some(cpu) => write!(f, " cpu={}", cpu.as_u32())?,
            None => write!(f, " cpu=any")?,
        }
        writeln!(f, " group={}: {}", self.group, self.explanation)
    }
}

/// The last refusals.
///
/// # Invariants
///
/// `next` is below [`KEPT`].
struct Ring {
    slots: [Option<Refused>; KEPT],
    /// Where the next one goes.
    next: usize,
}

/// The last refusals, for everybody.
pub(in crate::driver) struct Refusals(Pin<KBox<Mutex<Ring>>>);

impl Refusals {
    pub(in crate::driver) fn new() -> Result<Self> {
        // In its place at once: it is too large for the stack.
        let ring = new_mutex!(init!(Ring {
            slots <- pin_init::init_array_from_fn(|_| None),
            next: 0,
        }));
        Ok(Self(KBox::pin_init(ring, GFP_KERNEL)?))
    }

    /// Keeps one more, in the place of the oldest. Process context.
    pub(in crate::driver) fn push(&self, refused: Refused) {
        let mut ring = self.0.lock();
        let next = ring.next;
        if let Some(slot) = ring.slots.get_mut(next) {
            *slot = Some(refused);
        }
        // INVARIANT: A remainder.
        ring.next = (next + 1) % KEPT;
    }
}

/// Writes what the lines of [`Refusals`] mean.
pub(super) fn write_header(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "# refused perf_event_open() calls, newest first, at most {KEPT}"
    )?;
    writeln!(f, "# seconds ago, pid, command, errno, event: reason")
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ring = self.0.lock();
        let (newer, older) = ring.slots.split_at(ring.next.min(KEPT));
        let newest_first = Iterator::chain(newer.iter().rev(), older.iter().rev());
        newest_first
            .flatten()
            .try_for_each(|refused| fmt::Display::fmt(refused, f))
    }
}
