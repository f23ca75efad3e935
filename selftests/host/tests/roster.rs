// SPDX-License-Identifier: GPL-2.0

//! One CPU's events through random histories, against a list and a complete search.

mod cases;
mod reference;

use cases::cases;
use proptest::prelude::*;
use reference::{fewest_gp, GP};
use rpmu_logic::logic::capabilities::{Capabilities, Cpuid, Leaf};
use rpmu_logic::logic::regs::counter::{CounterId, CounterMask};
use rpmu_logic::logic::sched::constraint::Constraint;
use rpmu_logic::logic::sched::cpu_schedule::{Entry, Roster};
use rpmu_logic::logic::sched::limits::Limits;

/// Four general-purpose counters, three fixed ones.
const CAPACITY: usize = 7;

fn capabilities() -> Capabilities {
    let cpuid = Cpuid {
        leaf_0: Leaf {
            eax: 0xd,
            ..Leaf::default()
        },
        leaf_a: Leaf {
            eax: 0x0730_0403,
            edx: 0x603,
            ..Leaf::default()
        },
        ..Cpuid::default()
    };
    Capabilities::decode(&cpuid, None).unwrap()
}

/// What perf core does to a CPU's events.
#[derive(Clone, Debug)]
enum Step {
    /// A single event with these counters.
    Add(u64),
    /// A group of events with these counters.
    Group(Vec<u64>),
    /// Some event goes.
    Remove(prop::sample::Index),
    /// The PMU is enabled: the plan is programmed.
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

/// A roster, and what it is believed to hold.
struct World {
    roster: Roster<u32>,
    /// Events and their counters, in order.
    events: Vec<(u32, u64)>,
    /// What is programmed: event by counter.
    hardware: [Option<u32>; 64],
    next: u32,
}

type Snapshot = (Vec<Entry<u32>>, bool);

impl World {
    fn new() -> Self {
        Self {
            roster: Roster::new(&capabilities()),
            events: Vec::new(),
            hardware: [None; 64],
            next: 0,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let entries = self.roster.entries().copied().collect();
        (entries, self.roster.in_transaction())
    }

    fn add_to_roster(&mut self, counters: u64) -> (u32, bool) {
        self.next += 1;
        let constraint = Constraint::any_of(CounterMask::from_bits(counters));
        let added = self
            .roster
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
                let (event, added) = self.add_to_roster(*counters);
                prop_assert_eq!(added, expected);
                if added {
                    self.events.push((event, *counters));
                } else {
                    prop_assert_eq!(self.snapshot(), before);
                }
            }
            Step::Group(members) => {
                let expected = self.would_fit(members);
                self.roster.begin();
                let mut added = Vec::new();
                for counters in members {
                    let (event, ok) = self.add_to_roster(*counters);
                    if !ok {
                        break;
                    }
                    added.push((event, *counters));
                }
                let all = added.len() == members.len() && self.roster.commit(&Limits::NONE).is_ok();
                prop_assert_eq!(all, expected);
                if all {
                    self.events.extend(added);
                } else {
                    // Some by del(), the rest by cancel_txn(): either way nothing is left.
                    for (event, _) in added.iter().step_by(2) {
                        let removed = self.roster.remove(*event);
                        prop_assert_eq!(removed.and_then(|entry| entry.placed()), None);
                    }
                    self.roster.cancel();
                    prop_assert_eq!(self.snapshot(), before);
                }
            }
            Step::Remove(index) if !self.events.is_empty() => {
                let (event, _) = self.events.remove(index.index(self.events.len()));
                let removed = self.roster.remove(event).unwrap();
                prop_assert_eq!(removed.event, event);
                if let Some(counter) = removed.placed() {
                    prop_assert_eq!(self.hardware[counter.index()].take(), Some(event));
                }
                // Nobody else is touched.
                let (mut entries, _) = before;
                entries.retain(|entry| entry.event != event);
                prop_assert_eq!(self.snapshot(), (entries, false));
            }
            Step::Remove(_) => {}
            Step::Enable => self.enable()?,
        }
        self.check()
    }

    /// As the driver: everybody who moves leaves first, then the others arrive.
    fn enable(&mut self) -> Result<(), TestCaseError> {
        for (event, counter) in self.roster.leaving() {
            prop_assert_eq!(self.hardware[counter.index()].take(), Some(event));
        }
        for (event, counter) in self.roster.arriving() {
            let slot = &mut self.hardware[counter.index()];
            prop_assert_eq!(slot.replace(event), None, "counter {} is taken", counter);
        }
        self.roster.settle();
        prop_assert_eq!(self.roster.leaving().count(), 0);
        prop_assert_eq!(self.roster.arriving().count(), 0);
        for (event, _) in &self.events {
            let placed = self.roster.get(*event).unwrap().placed().unwrap();
            prop_assert_eq!(self.hardware[placed.index()], Some(*event));
        }
        let programmed = self.hardware.iter().flatten().count();
        prop_assert_eq!(programmed, self.events.len());
        Ok(())
    }

    /// The events and their order are right, and the plan is a valid one.
    fn check(&self) -> Result<(), TestCaseError> {
        let listed: Vec<(u32, u64)> = self
            .roster
            .entries()
            .map(|entry| (entry.event, entry.constraint.counters.bits()))
            .collect();
        prop_assert_eq!(&listed, &self.events);
        prop_assert_eq!(self.roster.len(), listed.len());
        let mut used = 0u64;
        for entry in self.roster.entries() {
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

    /// Everything out and in again, in any order: everybody gets the counter that they had, so
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
                (*event, *mask, world.roster.get(*event).unwrap().planned().unwrap())
            })
            .collect();
        for (event, _, _) in &had {
            world.roster.remove(*event).unwrap();
        }
        for index in order {
            if let Some((event, mask, counter)) = had.get(index) {
                let constraint = Constraint::any_of(CounterMask::from_bits(*mask));
                world.roster.add(*event, constraint, Some(*counter), &Limits::NONE).unwrap();
                let planned = world.roster.get(*event).unwrap().planned();
                prop_assert_eq!(planned, Some(*counter));
            }
        }
    }
}
