// SPDX-License-Identifier: GPL-2.0

//! Two threads of a core through random histories, against a complete search.

mod cases;
mod reference;

use cases::cases;
use proptest::prelude::*;
use reference::{fewest_gp, GP};
use rpmu_logic::logic::capabilities::{Capabilities, Cpuid, Leaf};
use rpmu_logic::logic::claim::{Claim, Core, Thread};
use rpmu_logic::logic::constraint::Constraint;
use rpmu_logic::logic::counter::CounterMask;
use rpmu_logic::logic::extra_register::{Demand, ExtraRegister, Requirement};
use rpmu_logic::logic::limits::Limits;
use rpmu_logic::logic::refusal::Refusal;
use rpmu_logic::logic::roster::Roster;

/// Four general-purpose counters, three fixed ones.
const COUNTERS: u32 = 4;
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

/// An event: its counters, and whether it is exclusive.
type Want = (u64, bool);

#[derive(Clone, Debug)]
enum Step {
    /// A group of events, one at least, is to be placed.
    Add(Vec<Want>),
    /// Some event goes.
    Remove(prop::sample::Index),
    /// The PMU is enabled.
    Enable,
    /// All events go, and the CPU with them; or it comes back.
    Hotplug,
}

fn want() -> impl Strategy<Value = Want> {
    prop_oneof![
        (1u64..1 << 4).prop_map(|gp| (gp, true)),
        (0u64..1 << 4, 0u64..1 << 3).prop_map(|(gp, fixed)| (gp | (fixed << 32), false)),
    ]
}

fn step() -> impl Strategy<Value = (bool, Step)> {
    let step = prop_oneof![
        6 => prop::collection::vec(want(), 1..3).prop_map(Step::Add),
        4 => any::<prop::sample::Index>().prop_map(Step::Remove),
        6 => Just(Step::Enable),
        1 => Just(Step::Hotplug),
    ];
    (any::<bool>(), step)
}

/// One thread, as the driver has it, and what is believed of it.
struct Side {
    cpu: u32,
    seat: Option<Thread>,
    roster: Roster<u32>,
    claimed: Claim,
    events: Vec<(u32, Want)>,
    /// What was refused last because of the other thread, unless something has happened here since.
    refused: Option<Vec<Want>>,
}

struct World {
    core: Core,
    sides: [Side; 2],
    next: u32,
}

fn constraint((counters, exclusive): Want) -> Constraint {
    Constraint {
        exclusive,
        ..Constraint::any_of(CounterMask::from_bits(counters))
    }
}

impl Side {
    fn new(core: &mut Core, cpu: u32) -> Self {
        Self {
            cpu,
            seat: core.join(cpu),
            roster: Roster::new(&capabilities()),
            claimed: Claim::default(),
            events: Vec::new(),
            refused: None,
        }
    }

    /// The counters that exclusive events have, and all events, by the entries alone. With
    /// `pending`, those included that the hardware has until the PMU is enabled.
    fn has(&self, pending: bool) -> (u64, u64) {
        let (mut exclusive, mut used) = (0, 0);
        for entry in self.roster.entries() {
            let placed = entry.placed().filter(|_| pending);
            for counter in placed.into_iter().chain(entry.planned()) {
                used |= counter.mask().bits();
                if entry.constraint.exclusive {
                    exclusive |= counter.mask().bits();
                }
            }
        }
        (exclusive, used)
    }
}

impl World {
    fn new() -> Self {
        let mut core = Core::new(COUNTERS);
        let sides = [0, 1].map(|cpu| Side::new(&mut core, cpu));
        Self {
            core,
            sides,
            next: 0,
        }
    }

    /// Whether the events of a side and `more` can be placed, by trying everything. What events
    /// have they may keep.
    fn would_fit(&self, side: usize, more: &[Want], limited: bool) -> bool {
        let (this, other) = (&self.sides[side], &self.sides[1 - side]);
        let beside = limited && other.seat.is_some();
        let (closed, used) = if beside {
            // What the sibling is known to have: more than its entries, until it is enabled.
            let claimed = other.claimed;
            (claimed.exclusive.bits(), claimed.used.bits())
        } else {
            (0, 0)
        };
        let left = |(counters, exclusive): Want| match exclusive {
            true => counters & !closed & !used,
            false => counters & !closed,
        };
        let mut masks: Vec<u64> = this
            .roster
            .entries()
            .zip(&this.events)
            .map(|(entry, (_, want))| left(*want) | entry.planned().unwrap().mask().bits())
            .collect();
        masks.extend(more.iter().map(|want| left(*want)));

        let (_, has) = this.has(false);
        let mut wants = this.events.iter().map(|(_, want)| want).chain(more);
        let halved = beside && (closed != 0 || wants.any(|(_, exclusive)| *exclusive));
        let limit = match halved {
            true => (COUNTERS / 2).max((has & GP).count_ones()),
            false => COUNTERS,
        };
        masks.len() <= CAPACITY && fewest_gp(&masks, 0).is_some_and(|needed| needed <= limit)
    }

    fn add(&mut self, side: usize, wants: &[Want]) -> Result<(), TestCaseError> {
        let fits = self.would_fit(side, wants, true);
        let fits_alone = self.would_fit(side, wants, false);
        let room = self.sides[side].events.len() + wants.len() <= CAPACITY;

        let this = &mut self.sides[side];
        let before = this.events.clone();
        let limits = this
            .seat
            .map_or(Limits::NONE, |seat| self.core.limits(seat));
        this.roster.begin();
        let mut planned = Ok(());
        for want in wants {
            self.next += 1;
            planned = planned.and_then(|()| {
                let added = this.roster.add(self.next, constraint(*want), None, &limits);
                this.events.push((self.next, *want));
                added
            });
        }
        planned = planned.and_then(|()| this.roster.commit(&limits));
        match planned {
            Ok(()) => {
                prop_assert!(fits, "{wants:x?} placed");
                if let Some(seat) = this.seat {
                    this.claimed = this.roster.claim().keeping(this.claimed);
                    self.core.claim(seat, this.claimed);
                }
                this.refused = None;
            }
            Err(refusal) => {
                prop_assert!(!fits, "{wants:x?} {refusal:?}");
                let limited = matches!(refusal, Refusal::Limited(_));
                prop_assert_eq!(limited, fits_alone && room, "{:?}", refusal);
                this.roster.cancel();
                this.events = before;
                this.refused = None;
                if let Some(seat) = this.seat.filter(|_| limited) {
                    self.core.wait(seat);
                    this.refused = Some(wants.to_vec());
                }
            }
        }
        Ok(())
    }

    /// As the driver, when it enables the PMU: what is not needed any more is free.
    fn enable(&mut self, side: usize) -> Result<(), TestCaseError> {
        let this = &mut self.sides[side];
        this.roster.settle();
        let claim = this.roster.claim();
        prop_assert_eq!((claim.exclusive.bits(), claim.used.bits()), this.has(false));
        let Some(seat) = this.seat else { return Ok(()) };
        if claim == this.claimed {
            return Ok(());
        }
        this.claimed = claim;
        self.core.claim(seat, claim);
        let woken = self.core.wakes_sibling(seat);
        self.check_woken(side, woken)
    }

    fn hotplug(&mut self, side: usize) -> Result<(), TestCaseError> {
        let cpu = self.sides[side].cpu;
        match self.sides[side].seat.take() {
            Some(seat) => {
                self.sides[side] = Side {
                    seat: None,
                    ..Side::new(&mut Core::new(COUNTERS), cpu)
                };
                self.core.leave(seat);
                let woken = self.core.wakes_sibling(seat);
                self.check_woken(side, woken)?;
            }
            // Without a seat it has no events: nobody opens any on a CPU that is off.
            None => self.sides[side].seat = self.core.join(cpu),
        }
        Ok(())
    }

    /// Who was refused and would fit now has to be told.
    fn check_woken(&mut self, side: usize, woken: Option<u32>) -> Result<(), TestCaseError> {
        let sibling = 1 - side;
        if let Some(wants) = &self.sides[sibling].refused {
            let fits = self.would_fit(sibling, wants, true);
            prop_assert!(woken.is_some() || !fits, "{wants:x?} not told");
        }
        if let Some(cpu) = woken {
            prop_assert_eq!(cpu, self.sides[sibling].cpu);
            self.sides[sibling].refused = None;
        }
        Ok(())
    }

    fn step(&mut self, side: usize, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Add(wants) if self.sides[side].seat.is_some() => self.add(side, wants)?,
            Step::Remove(index) if !self.sides[side].events.is_empty() => {
                let this = &mut self.sides[side];
                let (event, _) = this.events.remove(index.index(this.events.len()));
                this.roster.remove(event).unwrap();
                this.refused = None;
            }
            Step::Add(_) | Step::Remove(_) => {}
            Step::Enable => self.enable(side)?,
            Step::Hotplug => self.hotplug(side)?,
        }
        // Never exclusive next to used, on the hardware or about to be.
        let [(exclusive_0, used_0), (exclusive_1, used_1)] =
            self.sides.each_ref().map(|side| side.has(true));
        prop_assert_eq!(exclusive_0 & used_1, 0);
        prop_assert_eq!(exclusive_1 & used_0, 0);
        // And nothing is believed to be free that is not.
        for side in &self.sides {
            let (exclusive, used) = side.has(true);
            prop_assert_eq!(exclusive & !side.claimed.exclusive.bits(), 0);
            prop_assert_eq!(used & !side.claimed.used.bits(), 0);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(4096))]

    #[test]
    fn histories(steps in prop::collection::vec(step(), 0..60)) {
        let mut world = World::new();
        for (side, step) in &steps {
            world.step(usize::from(*side), step)?;
        }
        // Nothing is left behind: without events, each thread can have what it could at first.
        for side in 0..2 {
            for (event, _) in std::mem::take(&mut world.sides[side].events) {
                world.sides[side].roster.remove(event).unwrap();
            }
            world.sides[side].refused = None;
            world.enable(side)?;
            prop_assert_eq!(world.sides[side].claimed, Claim::default());
        }
    }
}

/// An event that needs a value in one of two registers: the value, and whether it likes the second.
type Offcore = (u64, bool);

/// A thread of a core whose threads share the extra registers, with lone events.
struct Sharer {
    seat: Thread,
    roster: Roster<usize>,
    claimed: Claim,
    /// All events that it would like to count, in this order.
    wants: Vec<Offcore>,
}

struct SharedCore {
    core: Core,
    sides: [Sharer; 2],
}

fn demand((value, second): Offcore) -> Demand {
    let (first, other) = (
        ExtraRegister::OffcoreResponse0,
        ExtraRegister::OffcoreResponse1,
    );
    let (register, alternative) = if second {
        (other, first)
    } else {
        (first, other)
    };
    Demand {
        constraint: Constraint::any_of(CounterMask::from_bits(0xf)),
        requirement: Some(Requirement {
            value,
            register,
            alternative: Some(alternative),
        }),
    }
}

impl SharedCore {
    fn new(wants: [Vec<Offcore>; 2]) -> Self {
        let mut core = Core::new(COUNTERS).sharing_registers();
        let mut cpu = 0..;
        let sides = wants.map(|wants| Sharer {
            seat: core.join(cpu.next().unwrap()).unwrap(),
            roster: Roster::new(&capabilities()),
            claimed: Claim::default(),
            wants,
        });
        Self { core, sides }
    }

    fn counting(&self, side: usize) -> Vec<usize> {
        let entries = self.sides[side].roster.entries();
        entries.map(|entry| entry.event).collect()
    }

    /// As the driver, when an event comes. Returns whether the other side is woken.
    fn add(&mut self, side: usize, event: usize) -> bool {
        let this = &mut self.sides[side];
        let limits = self.core.limits(this.seat);
        this.roster.begin();
        let demand = demand(this.wants[event]);
        this.roster.add(event, demand, None, &Limits::NONE).unwrap();
        match this.roster.commit(&limits) {
            Ok(()) => {
                this.claimed = this.roster.claim().keeping(this.claimed);
                self.core.claim(this.seat, this.claimed);
                self.core.wakes_sibling(this.seat).is_some()
            }
            Err(refusal) => {
                this.roster.cancel();
                if matches!(refusal, Refusal::Limited(_)) {
                    self.core.wait(this.seat);
                }
                false
            }
        }
    }

    /// All events go and come again, within one section in which the PMU is disabled. What was
    /// counting counts again, though the other side does the same at every moment with
    /// `interleaved`. Returns whether each side is woken.
    fn reschedule(&mut self, side: usize, interleaved: bool) -> Result<[bool; 2], TestCaseError> {
        let before = self.counting(side);
        let mut woken = [false; 2];
        for event in &before {
            self.sides[side].roster.remove(*event).unwrap();
        }
        for event in 0..self.sides[side].wants.len() {
            woken[1 - side] |= self.add(side, event);
            if interleaved {
                let [first, second] = self.reschedule(1 - side, false)?;
                woken = [woken[0] | first, woken[1] | second];
            }
        }
        let this = &mut self.sides[side];
        this.roster.settle();
        this.claimed = this.roster.claim();
        self.core.claim(this.seat, this.claimed);
        woken[1 - side] |= self.core.wakes_sibling(this.seat).is_some();

        let after = self.counting(side);
        let lost = before.iter().find(|event| !after.contains(event));
        prop_assert!(lost.is_none(), "{before:?} before, {after:?} after");
        Ok(woken)
    }
}

fn offcore_events() -> impl Strategy<Value = Vec<Offcore>> {
    prop::collection::vec((0u64..4, any::<bool>()), 1..5)
}

proptest! {
    #![proptest_config(cases(4096))]

    #[test]
    fn registers_stay_with_who_reschedules(
        first in offcore_events(),
        second in offcore_events(),
        turns in prop::collection::vec(any::<bool>(), 1..8),
    ) {
        let mut core = SharedCore::new([first, second]);
        for side in turns {
            let mut woken = core.reschedule(usize::from(side), true)?;
            // Who is woken reschedules, and that comes to rest.
            for _ in 0..8 {
                let Some(side) = woken.iter().position(|woken| *woken) else { break };
                woken[side] = false;
                let [first, second] = core.reschedule(side, false)?;
                woken = [woken[0] | first, woken[1] | second];
            }
            prop_assert_eq!(woken, [false; 2]);
        }
    }
}
