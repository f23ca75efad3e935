// SPDX-License-Identifier: GPL-2.0

//! Tests one CPU's events in random histories, against a list and a complete search.

mod cases;
mod reference;

use cases::cases;
use proptest::prelude::*;
use reference::{
    fewest_gp,
    GP, //
};
use rpmu_logic::logic::capabilities::{
    Capabilities,
    Cpuid, //
};
use rpmu_logic::logic::model::constraint::Constraint;
use rpmu_logic::logic::regs::counter::{
    CounterId,
    CounterMask, //
};
use rpmu_logic::logic::sched::cpu_schedule::{
    CpuSchedule,
    Entry, //
};
use rpmu_logic::logic::sched::limits::Limits;

/// Four general-purpose counters, three fixed ones.
const CAPACITY: usize = 7;

fn capabilities() -> Capabilities {
    Capabilities::decode(&Cpuid::intel(3, 4, 3), None).unwrap()
}

/// A step of the perf core on a CPU's events.
#[derive(Clone, Debug)]
enum Step {
    /// Adds an event with these counters.
    Add(u64),
    /// Adds a group of events with these counters.
    Group(Vec<u64>),
    /// Removes an event.
    Remove(prop::sample::Index),
    /// Enables the PMU, which programs the plan.
    Enable,
}

fn mask() -> impl Strategy<Value = u64> {
    (0u64..1 << 4, 0u64..1 << 3).prop_map(|(gp, fixed)| gp | (fixed << 32))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => mask().prop_map(Step::Add),
        2 => prop::collection::vec(mask(), 1..4).prop_map(Step::Group),
        3 => any::<prop::sample::Index>().prop_map(Step::Remove),
        2 => Just(Step::Enable),
    ]
}

/// A schedule, and its expected contents.
struct World {
    schedule: CpuSchedule<u32>,
    /// The events and their allowed counters, in the order in which they were added.
    events: Vec<(u32, u64)>,
    /// The programmed events, by counter.
    hardware: [Option<u32>; 64],
    next: u32,
}

type Snapshot = (Vec<Entry<u32>>, bool);

impl World {
    fn new() -> Self {
        Self {
            schedule: CpuSchedule::new(&capabilities()),
            events: Vec::new(),
            hardware: [None; 64],
            next: 0,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let entries = self.schedule.entries().copied().collect();
        (entries, self.schedule.in_txn())
    }

    fn add_to_schedule(&mut self, counters: u64) -> (u32, bool) {
        self.next += 1;
        let constraint = Constraint::any_of(CounterMask::from_bits(counters));
        let added = self
            .schedule
            .add(self.next, constraint, None, &Limits::NONE)
            .is_ok();
        (self.next, added)
    }

    fn would_fit(&self, more: &[u64]) -> bool {
        let mut masks: Vec<u64> = self.events.iter().map(|(_, mask)| *mask).collect();
        masks.extend(more);
        masks.len() <= CAPACITY && fewest_gp(&masks, 0).is_some()
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let before = self.snapshot();
        match step {
            Step::Add(counters) => {
                let expected = self.would_fit(&[*counters]);
                let (event, added) = self.add_to_schedule(*counters);
                prop_assert_eq!(added, expected);
                if added {
                    self.events.push((event, *counters));
                } else {
                    prop_assert_eq!(self.snapshot(), before);
                }
            }
            Step::Group(members) => {
                let expected = self.would_fit(members);
                self.schedule.begin();
                let mut added = Vec::new();
                for counters in members {
                    let (event, ok) = self.add_to_schedule(*counters);
                    if !ok {
                        break;
                    }
                    added.push((event, *counters));
                }
                let all =
                    added.len() == members.len() && self.schedule.commit(&Limits::NONE).is_ok();
                prop_assert_eq!(all, expected);
                if all {
                    self.events.extend(added);
                } else {
                    // Removes some by del() and the rest by cancel_txn(), as the perf core may.
                    for (event, _) in added.iter().step_by(2) {
                        let removed = self.schedule.remove(*event);
                        prop_assert_eq!(removed.and_then(|entry| entry.placed()), None);
                    }
                    self.schedule.cancel();
                    prop_assert_eq!(self.snapshot(), before);
                }
            }
            Step::Remove(index) if !self.events.is_empty() => {
                let (event, _) = self.events.remove(index.index(self.events.len()));
                let removed = self.schedule.remove(event).unwrap();
                prop_assert_eq!(removed.event, event);
                if let Some(counter) = removed.placed() {
                    prop_assert_eq!(self.hardware[counter.index()].take(), Some(event));
                }
                // The other events stay.
                let (mut entries, _) = before;
                entries.retain(|entry| entry.event != event);
                prop_assert_eq!(self.snapshot(), (entries, false));
            }
            Step::Remove(_) => {}
            Step::Enable => self.enable()?,
        }
        self.check()
    }

    /// Programs the plan like the driver: all moving events leave before one arrives.
    fn enable(&mut self) -> Result<(), TestCaseError> {
        for (event, counter) in self.schedule.leaving() {
            prop_assert_eq!(self.hardware[counter.index()].take(), Some(event));
        }
        for (event, counter) in self.schedule.arriving() {
            let slot = &mut self.hardware[counter.index()];
            prop_assert_eq!(slot.replace(event), None, "counter {} is taken", counter);
        }
        self.schedule.mark_programmed();
        prop_assert_eq!(self.schedule.leaving().count(), 0);
        prop_assert_eq!(self.schedule.arriving().count(), 0);
        for (event, _) in &self.events {
            let placed = self.schedule.get(*event).unwrap().placed().unwrap();
            prop_assert_eq!(self.hardware[placed.index()], Some(*event));
        }
        let programmed = self.hardware.iter().flatten().count();
        prop_assert_eq!(programmed, self.events.len());
        Ok(())
    }

    /// Checks the events and their order, and that the plan is valid.
    fn check(&self) -> Result<(), TestCaseError> {
        let listed: Vec<(u32, u64)> = self
            .schedule
            .entries()
            .map(|entry| (entry.event, entry.constraint.counters.bits()))
            .collect();
        prop_assert_eq!(&listed, &self.events);
        prop_assert_eq!(self.schedule.len(), listed.len());
        let mut used = 0u64;
        for entry in self.schedule.entries() {
            let planned = entry.planned().unwrap();
            prop_assert!(entry.constraint.counters.contains(planned));
            prop_assert_eq!(used & planned.mask().bits(), 0);
            used |= planned.mask().bits();
        }
        prop_assert!((used & GP).count_ones() <= 4);
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(1024))]

    #[test]
    fn histories(steps in prop::collection::vec(step(), 0..40)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step)?;
        }
    }

    /// Removing all events and adding them in any order gives each event its previous counter, so
    /// that nothing needs to be programmed.
    #[test]
    fn a_context_that_comes_back_finds_its_counters(
        wanted in prop::collection::vec(mask(), 0..8),
        order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let mut world = World::new();
        for counters in &wanted {
            world.step(&Step::Add(*counters))?;
        }
        let had: Vec<(u32, u64, CounterId)> = world
            .events
            .iter()
            .map(|(event, mask)| {
                (*event, *mask, world.schedule.get(*event).unwrap().planned().unwrap())
            })
            .collect();
        for (event, _, _) in &had {
            world.schedule.remove(*event).unwrap();
        }
        for index in order {
            if let Some((event, mask, counter)) = had.get(index) {
                let constraint = Constraint::any_of(CounterMask::from_bits(*mask));
                world.schedule.add(*event, constraint, Some(*counter), &Limits::NONE).unwrap();
                let planned = world.schedule.get(*event).unwrap().planned();
                prop_assert_eq!(planned, Some(*counter));
            }
        }
    }
}
