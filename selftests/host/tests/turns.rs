// SPDX-License-Identifier: GPL-2.0

//! Who counts how long, interval by interval, against the best that can be had.

mod cases;
mod reference;

use cases::cases;
use proptest::prelude::*;
use reference::{fits, optimum};
use rpmu_logic::logic::capabilities::{Capabilities, Cpuid, Leaf};
use rpmu_logic::logic::constraint::Constraint;
use rpmu_logic::logic::counter::CounterMask;
use rpmu_logic::logic::limits::Limits;
use rpmu_logic::logic::roster::Roster;
use rpmu_logic::logic::turns::{Had, Queue, Turn};

/// So many turns are looked at, after so many that are not.
const TURNS: u64 = 4000;
const BEFORE: u64 = 500;
/// Length of a turn, in ns.
const TURN: u64 = 4_000_000;

/// Groups of events that take turns on a CPU.
#[derive(Clone, Debug, Default)]
struct Mix {
    gp: u32,
    /// General-purpose counters that may be used when an exclusive event (below) is there.
    gp_with_exclusive: u32,
    /// Counters that are not to be had.
    closed: u64,
    /// The counters of each event of each group.
    groups: Vec<Vec<u64>>,
    /// The groups whose events are exclusive.
    exclusive: Vec<usize>,
}

impl Mix {
    fn of(gp: u32, groups: &[&[u64]]) -> Self {
        Self {
            gp,
            gp_with_exclusive: gp,
            groups: groups.iter().map(|group| group.to_vec()).collect(),
            ..Self::default()
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            gp_with_exclusive: self.gp_with_exclusive,
            ..Limits::NONE.closing(CounterMask::from_bits(self.closed))
        }
    }

    /// Whether this set of groups fits, by a complete search.
    fn fits(&self, set: u32) -> bool {
        let is_in = |group: &usize| (set >> group) & 1 != 0;
        let wants: Vec<u64> = (0..self.groups.len())
            .filter(is_in)
            .flat_map(|group| self.groups[group].iter().map(|it| it & !self.closed))
            .collect();
        let limit = match self.exclusive.iter().any(is_in) {
            true => self.gp_with_exclusive,
            false => self.gp,
        };
        fits(&wants, limit)
    }
}

/// What has come out.
#[derive(Debug)]
struct Outcome {
    shares: Vec<f64>,
    busy: f64,
}

impl Outcome {
    fn smallest(&self) -> f64 {
        self.shares.iter().copied().fold(1.0, f64::min)
    }
}

fn capabilities(gp: u32) -> Capabilities {
    let cpuid = Cpuid {
        leaf_0: Leaf {
            eax: 0xd,
            ..Leaf::default()
        },
        leaf_a: Leaf {
            eax: 0x0730_0003 | (gp << 8),
            edx: 0x603,
            ..Leaf::default()
        },
        ..Cpuid::default()
    };
    Capabilities::decode(&cpuid, None).unwrap()
}

/// As the driver does it, `rust/driver/turns.rs`.
fn take_turns(mix: &Mix) -> Outcome {
    let groups = mix.groups.len();
    let mut roster: Roster<usize> = Roster::new(&capabilities(mix.gp));
    let mut had = vec![Had::NOTHING; groups];
    let mut running = vec![0; groups];
    let mut at_first = running.clone();
    let mut busy = 0;
    for turn in 0..BEFORE + TURNS {
        if turn == BEFORE {
            at_first = running.clone();
            busy = 0;
        }
        for (had, running) in had.iter_mut().zip(&running) {
            had.account(*running);
        }
        let least = had.iter().filter_map(|it| it.weight()).min().unwrap_or(0);
        let mut queue = Queue::new();
        for (group, had) in had.iter_mut().enumerate() {
            if had.weight().is_none() {
                had.join(least);
            }
            queue.push(Turn::Waits, had.weight().unwrap(), group);
        }
        let mut trial = roster.trial();
        for group in queue.iter() {
            for counters in &mix.groups[group] {
                let counters = CounterMask::from_bits(*counters);
                let mut constraint = Constraint::any_of(counters);
                constraint.exclusive = mix.exclusive.contains(&group);
                trial.push(group, constraint, None);
            }
            if trial.fits(&mix.limits()).is_ok() {
                running[group] += TURN;
                busy += mix.groups[group].len();
            }
        }
        drop(trial);
        assert!(roster.is_empty());
    }
    let share = |(now, first): (&u64, &u64)| (now - first) as f64 / (TURNS * TURN) as f64;
    Outcome {
        shares: running.iter().zip(&at_first).map(share).collect(),
        busy: busy as f64 / TURNS as f64,
    }
}

/// As perf core does it by itself: in order, and nobody behind one that does not fit; then the
/// first that has counted goes to the end.
fn rotate(mix: &Mix) -> Outcome {
    let mut order: Vec<usize> = (0..mix.groups.len()).collect();
    let mut ran = vec![0u64; order.len()];
    let mut busy = 0;
    for _ in 0..TURNS {
        let mut set = 0;
        for group in &order {
            if !mix.fits(set | (1 << group)) {
                break;
            }
            set |= 1 << group;
            ran[*group] += 1;
            busy += mix.groups[*group].len();
        }
        let first = order.iter().position(|group| (set >> group) & 1 != 0);
        let first = order.remove(first.unwrap_or(0));
        order.push(first);
    }
    Outcome {
        shares: ran.iter().map(|it| *it as f64 / TURNS as f64).collect(),
        busy: busy as f64 / TURNS as f64,
    }
}

fn best(mix: &Mix) -> optimum::Optimum {
    let sizes: Vec<usize> = mix.groups.iter().map(Vec::len).collect();
    optimum::optimum(&sizes, |set| mix.fits(set))
}

const ANY: u64 = 0xf;

/// The mixes by which perf core's own rotation is known to lose.
fn known() -> Vec<(&'static str, Mix)> {
    let (c2, any): (&[u64], &[u64]) = (&[0x4], &[ANY]);
    let (c0, four, any8): (&[u64], &[u64], &[u64]) = (&[0x1], &[ANY; 4], &[0xff]);
    let corrupting = |count: usize, gp: u32| Mix {
        gp_with_exclusive: gp,
        exclusive: (0..count).collect(),
        ..Mix::of(4, &vec![any; count])
    };
    vec![
        (
            "three for counter 2 and five",
            Mix::of(4, &[c2, c2, c2, any, any, any, any, any]),
        ),
        (
            "three for counter 0, four at once, four",
            Mix::of(8, &[c0, c0, c0, four, any8, any8, any8, any8]),
        ),
        ("case 1", Mix::of(4, &[c2, c2])),
        (
            "case 3",
            Mix {
                closed: 0x4,
                ..Mix::of(4, &[any])
            },
        ),
        ("case 4, two threads", corrupting(3, 2)),
        ("case 5, two threads", corrupting(5, 2)),
        ("case 5", corrupting(5, 4)),
        (
            "case 5, transactions",
            Mix {
                closed: 0x8,
                ..corrupting(5, 4)
            },
        ),
        ("case 6", Mix::of(4, &[any; 6])),
        (
            "case 11",
            Mix {
                gp_with_exclusive: 2,
                exclusive: vec![1],
                ..Mix::of(4, &[any; 4])
            },
        ),
    ]
}

#[test]
fn known_mixes_are_shared_as_well_as_can_be() {
    for (name, mix) in known() {
        let (best, outcome) = (best(&mix), take_turns(&mix));
        let core = rotate(&mix);
        println!(
            "{name}: busy {:.3} of {:.3} (core {:.3}), smallest {:.3} of {:.3} (core {:.3})",
            outcome.busy,
            best.busy,
            core.busy,
            outcome.smallest(),
            best.smallest,
            core.smallest()
        );
        assert!(
            outcome.busy >= 0.99 * best.busy,
            "{name}: {outcome:?}, {best:?}"
        );
        assert!(
            outcome.smallest() >= 0.9 * best.smallest,
            "{name}: {outcome:?}, {best:?}"
        );
    }
}

fn mask() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(ANY), 1 => 1u64..16]
}

proptest! {
    #![proptest_config(cases(48))]

    /// Where each group is one event, nothing better can be had.
    #[test]
    fn single_events_are_shared_as_well_as_can_be(masks in prop::collection::vec(mask(), 1..9)) {
        let groups: Vec<&[u64]> = masks.iter().map(core::slice::from_ref).collect();
        let mix = Mix::of(4, &groups);
        let (best, outcome) = (best(&mix), take_turns(&mix));
        prop_assert!(outcome.busy >= 0.99 * best.busy, "{outcome:?}, {best:?}");
        prop_assert!(outcome.smallest() >= 0.9 * best.smallest, "{outcome:?}, {best:?}");
    }

    /// Groups that each could count alone: all do. Not always as much as could be: three events and
    /// two pairs on four counters get half of the time each, where four sevenths are possible.
    #[test]
    fn nobody_starves(
        groups in prop::collection::vec(prop::collection::vec(mask(), 1..5), 1..7)
    ) {
        let groups: Vec<&[u64]> = groups.iter().map(Vec::as_slice).collect();
        let mut mix = Mix::of(4, &groups);
        mix.groups.retain(|group| fits(group, 4));
        prop_assume!(!mix.groups.is_empty());
        let (best, outcome) = (best(&mix), take_turns(&mix));
        prop_assert!(outcome.smallest() >= 0.75 * best.smallest, "{outcome:?}, {best:?}");
    }
}
