// SPDX-License-Identifier: GPL-2.0

//! The last calls of `perf_event_open()` that were refused, and the reasons: `rpmu/refusals` in
//! debugfs.
//!
//! An errno says little about the reason; this file has the details.

use crate::{
    driver::{
        hw::Hardware,
        unit::hooks::{
            Platform,
            Unit, //
        },
    },
    kern::caller::Caller,
    logic::{
        open::attr::{
            Attributes,
            EventType, //
        },
        sched::explanation::Explanation, //
    },
    perf::{
        NewEvent,
        Operations, //
    },
    perf_core::trace,
    x86::builtin::Builtin, //
};
use kernel::{
    cpu::CpuId,
    error::Error,
    fmt, new_mutex,
    prelude::*,
    sync::Mutex,
    time::{
        Instant,
        Monotonic, //
    },
};

/// Number of refusals that the ring keeps.
const KEPT: usize = 64;

/// A refused event.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Refused {
    when: Instant<Monotonic>,
    caller: Caller,
    attr: Attributes,
    /// The requested CPU of the event.
    cpu: Option<CpuId>,
    /// The number of events of this PMU that were already in the group.
    group: u32,
    explanation: Explanation,
}

impl Refused {
    /// Makes the record of a refused `event` that the current task has requested. Process context.
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

    /// Emits the tracepoint for `event`, which was refused.
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
        if attr.config3 != 0 {
            write!(f, " config3={:#x}", attr.config3)?;
        }
        if attr.config4 != 0 {
            write!(f, " config4={:#x}", attr.config4)?;
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

/// A ring of the last refusals.
///
/// # Invariants
///
/// `next` is below [`KEPT`].
struct Ring {
    slots: [Option<Refused>; KEPT],
    /// The slot for the next refusal.
    next: usize,
}

/// The last refusals, of all tasks.
pub(in crate::driver) struct Refusals(Pin<KBox<Mutex<Ring>>>);

impl Refusals {
    /// Makes an empty list. Fails with `ENOMEM`.
    fn new() -> Result<Self> {
        // Initialised in place: the ring is too large for the stack.
        let ring = new_mutex!(init!(Ring {
            slots <- pin_init::init_array_from_fn(|_| None),
            next: 0,
        }));
        Ok(Self(KBox::pin_init(ring, GFP_KERNEL)?))
    }

    /// Records a refusal, in place of the oldest one. Process context.
    pub(in crate::driver) fn push(&self, refused: Refused) {
        let mut ring = self.0.lock();
        let next = ring.next;
        if let Some(slot) = ring.slots.get_mut(next) {
            *slot = Some(refused);
        }
        // INVARIANT: The remainder of a division by `KEPT` is below `KEPT`.
        ring.next = (next + 1) % KEPT;
    }
}

impl Unit for Refusals {
    type Own = ();
    type PmiState = ();
    type TaskData = ();

    const FILE: Option<&'static CStr> = Some(c"refusals");

    fn find(_platform: &mut Platform<'_>) -> Result<Option<Self>> {
        Self::new().map(Some)
    }

    fn pmi_state(_cpu: CpuId, _hardware: &Hardware, _builtin: Option<&Builtin>) -> Result {
        Ok(())
    }

    fn write_header(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# refused perf_event_open() calls, newest first, at most {KEPT}"
        )?;
        writeln!(f, "# seconds ago, pid, command, errno, event: reason")
    }

    fn write<'a>(
        &self,
        _cpus: impl Iterator<Item = &'a ()>,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let ring = self.0.lock();
        let (newer, older) = ring.slots.split_at(ring.next.min(KEPT));
        let newest_first = Iterator::chain(newer.iter().rev(), older.iter().rev());
        newest_first
            .flatten()
            .try_for_each(|refused| fmt::Display::fmt(refused, f))
    }
}
