// SPDX-License-Identifier: GPL-2.0

//! A software PMU on `rust/perf`, without the rest of rpmu: an example of a small driver.
//!
//! It counts marks. Each CPU has a counter, and a task that writes a number to
//! `/sys/bus/event_source/devices/tally/mark` adds it to the counter of the CPU on which it runs.

#![deny(unsafe_code)]

use core::sync::atomic::{
    AtomicU64,
    Ordering::Relaxed, //
};
use kernel::{
    interrupt::local_interrupt_disable,
    prelude::*,
    sync::Arc, //
};
use perf::{
    Event,
    EventId,
    Group,
    Groups,
    NewEvent,
    OnCpu,
    Operations,
    Place,
    Placed,
    Pmu,
    PmuDisabled,
    Registration,
    Scheduling,
    Setting, //
};

// This PMU uses only a part of these modules.
#[allow(unsafe_code)]
#[path = "../../rust/bindings/mod.rs"]
mod bindings;
#[allow(dead_code, unreachable_pub, unsafe_code)]
#[path = "../../rust/kern/mod.rs"]
mod kern;
#[allow(dead_code, unreachable_pub, unsafe_code, unused_imports)]
#[path = "../../rust/perf/mod.rs"]
mod perf;

module! {
    type: TallyModule,
    name: "tally",
    authors: ["The rpmu developers"],
    description: "PMU that counts what is written to a file",
    license: "GPL",
}

/// The driver.
struct Tally;

impl Tally {
    /// Begins to count from the CPU's current value.
    fn begin(cx: &OnCpu<'_, Self>, event: &Event<Self>) {
        event.data().store(cx.data().load(Relaxed), Relaxed);
    }
}

#[vtable]
impl Operations for Tally {
    /// The value of the CPU's counter when the event's count was last updated.
    type EventData = AtomicU64;
    type TaskData = ();
    /// The CPU's counter of marks.
    type CpuData = AtomicU64;

    const IS_SOFTWARE: bool = true;
    const CAN_SAMPLE: bool = false;

    fn event_init(&self, event: &NewEvent<'_, Self>) -> Result<Placed<Self>> {
        if !event.is_of_own_type() {
            return Err(ENOENT);
        }
        if event.attr().config() != 0 {
            return Err(EINVAL);
        }
        Ok(Place::new()?.fill(AtomicU64::new(0)))
    }

    fn add(&self, cx: &Scheduling<'_, Self>, _id: EventId, event: &Event<Self>) -> Result {
        Self::begin(cx, event);
        Ok(())
    }

    fn del(&self, cx: &PmuDisabled<'_, Self>, _id: EventId, event: &Event<Self>) {
        self.read(cx, event);
    }

    fn start(&self, cx: &PmuDisabled<'_, Self>, _id: EventId, event: &Event<Self>) {
        Self::begin(cx, event);
        event.set_started(cx);
    }

    fn stop(&self, cx: &PmuDisabled<'_, Self>, event: &Event<Self>) {
        self.read(cx, event);
    }

    fn read(&self, cx: &OnCpu<'_, Self>, event: &Event<Self>) {
        if !event.is_stopped() {
            let now = cx.data().load(Relaxed);
            event.add_count(now.wrapping_sub(event.data().swap(now, Relaxed)));
        }
    }
}

/// `mark`: adds marks when written; reads as the marks of all CPUs.
struct Mark;

impl Setting<Tally> for Mark {
    type Value = u64;
    const MODE: u16 = 0o600;

    fn get(pmu: &Pmu<Tally>) -> u64 {
        let marks = pmu.data_of_cpus().map(|marks| marks.load(Relaxed));
        marks.fold(0, u64::wrapping_add)
    }

    fn set(pmu: &Pmu<Tally>, marks: u64) -> Result {
        let irqs = local_interrupt_disable();
        pmu.on_cpu(&irqs).data().fetch_add(marks, Relaxed);
        Ok(())
    }
}

/// The registration of the loaded module.
struct TallyModule {
    _registration: Registration<Tally>,
}

impl kernel::Module for TallyModule {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let mut format = Group::new(c"format");
        format.file(fmt!("event"), fmt!("config:0-63\n"))?;
        let mut events = Group::new(c"events");
        events.file(fmt!("marks"), fmt!("event=0x0\n"))?;
        let mut top = Group::top();
        top.setting::<Tally, Mark>(fmt!("mark"))?;
        let mut groups = KVec::new();
        for group in [format, events, top] {
            groups.push(group, GFP_KERNEL)?;
        }
        let pmu: Arc<Pmu<Tally>> = Pmu::new(Ok(Tally), Groups::new(groups)?)?;
        Ok(Self {
            _registration: Registration::new(pmu, c"tally", None)?,
        })
    }
}
