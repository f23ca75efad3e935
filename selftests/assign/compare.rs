// SPDX-License-Identifier: GPL-2.0

//! Test module that compares rpmu's assignment of counters with the kernel's.
//!
//! `perf_assign_events()` and `rust/logic` assign counters to the same pseudo-random sets of
//! events. The module compares the results, and then the numbers of instructions that both need
//! for a few fixed sets. It prints KTAP to the kernel's log, where `selftests/assign.sh` reads it.

use core::hint::black_box;

use kernel::prelude::*;
use logic::capabilities::{
    Capabilities,
    Cpuid, //
};
use logic::model::constraint::Constraint;
use logic::regs::counter::{
    CounterId,
    CounterMask, //
};
use logic::sched::assign::{
    Policy,
    Problem, //
};
use logic::sched::cpu_schedule::CpuSchedule;
use logic::sched::limits::Limits;
use mainline::{
    Want,
    AS_IS,
    MENDED, //
};

#[path = "kernel.rs"]
mod kernel_side;
#[path = "../../rust/logic/mod.rs"]
pub mod logic;
#[path = "../host/tests/reference/mainline.rs"]
pub mod mainline;
#[path = "../host/tests/reference/search.rs"]
pub mod search;
mod sets;

module! {
    type: AssignTest,
    name: "assign_test",
    authors: ["The rpmu developers"],
    description: "Test of rpmu's assignment of counters against the kernel's",
    license: "GPL",
    params: {
        sets: u32 {
            default: 100_000,
            description: "Number of random sets of events",
        },
        seed: u64 {
            default: 1,
            description: "Seed of the pseudo-random numbers",
        },
    },
}

struct AssignTest;

impl kernel::Module for AssignTest {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let mut events = kernel_side::Events::take().ok_or(EBUSY)?;
        let mut tap = Tap::new();
        tap.say(format_args!("KTAP version 1"));
        agreement(&mut tap, &mut events);
        family_15h(&mut tap, &mut events);
        speed(&mut tap, &mut events);
        tap.say(format_args!("1..{}", tap.tests));
        Ok(Self)
    }
}

/// KTAP in the kernel's log.
struct Tap {
    tests: u32,
}

impl Tap {
    const fn new() -> Self {
        Self { tests: 0 }
    }

    fn say(&self, line: core::fmt::Arguments<'_>) {
        pr_info!("{line}\n");
    }

    fn result(&mut self, ok: bool, name: &str) {
        self.tests += 1;
        let verdict = if ok { "ok" } else { "not ok" };
        pr_info!("{verdict} {} {name}\n", self.tests);
    }
}

/// An event as `rust/logic` takes it.
type Event = (Constraint, Option<CounterId>);

fn event(want: &Want, previous: Option<u8>) -> Event {
    let constraint = Constraint {
        overlap: want.overlap,
        pair: want.pair,
        ..Constraint::any_of(CounterMask::from_bits(want.counters))
    };
    let previous = previous.and_then(|index| CounterId::from_index(index.into()));
    (constraint, previous)
}

fn fill(problem: &mut Problem, events: impl Iterator<Item = Event>) {
    for (constraint, previous) in events {
        // There is room: no set has this many events.
        let _ = problem.push(constraint, previous);
    }
}

/// Returns the indices of the events' counters, as the kernel stores them; `None` if the events do
/// not fit.
fn solve(wants: &[Want], gp_limit: u32, policy: Policy) -> Option<[u8; mainline::MAX]> {
    let mut problem = Problem::new(gp_limit).with_policy(policy);
    fill(&mut problem, wants.iter().map(|want| event(want, None)));
    let assignment = problem.solve().ok()?;
    let mut counters = [u8::MAX; mainline::MAX];
    for (slot, counter) in counters.iter_mut().zip(assignment.iter()) {
        *slot = counter.index() as u8;
    }
    Some(counters)
}

/// Returns the schedule of a CPU as it is when the driver checks whether a group fits: the events
/// of `list` that have a counter are scheduled, the others are being added. With `add_all`, all are
/// being added.
// A schedule has 4 KiB, which must not be on the stack of the measured code.
#[inline(never)]
fn about_to_commit(list: &[Event], add_all: bool) -> Option<KBox<CpuSchedule<u8>>> {
    let capabilities = Capabilities::decode(&Cpuid::intel(3, 8, 3), None)?;
    let mut schedule = KBox::new(CpuSchedule::new(&capabilities), GFP_KERNEL).ok()?;
    if add_all {
        schedule.begin();
    }
    for (number, (constraint, had)) in list.iter().enumerate() {
        if had.is_none() {
            schedule.begin();
        }
        // CAST: there are at most as many events as counters.
        let event = number as u8;
        schedule.add(event, *constraint, *had, &Limits::NONE).ok()?;
    }
    Some(schedule)
}

/// Returns the number of instructions in which the driver assigns counters to `list`: adds either
/// all events or only the new ones, whichever costs more.
fn commit_cost(list: &[Event]) -> Option<u64> {
    let mut worst = 0;
    for add_all in [false, true] {
        // `cost()` calls the function twice: each call gets a fresh schedule.
        let mut fresh = [
            about_to_commit(list, add_all)?,
            about_to_commit(list, add_all)?,
        ];
        let mut call = 0;
        let cost = kernel_side::cost(|| {
            if let Some(schedule) = fresh.get_mut(call) {
                let _ = black_box(schedule.commit(&Limits::NONE));
            }
            call = 1;
        })?;
        worst = worst.max(cost);
    }
    Some(worst)
}

fn agreement(tap: &mut Tap, events: &mut kernel_side::Events) {
    let total = module_parameters::sets.value();
    let mut random = sets::Random::new(module_parameters::seed.value());
    // Numbers of sets: those that the kernel and each policy of rpmu can place, the differences
    // that the kernel's defect explains, and the differences that must not occur.
    let (mut in_kernel, mut in_mainline, mut in_rpmu, mut explained) = (0, 0, 0, 0);
    let (mut unexplained, mut wrong) = (0, 0);

    for _ in 0..total {
        let set = sets::Set::random(&mut random);
        let (wants, limit) = (set.wants(), set.gp_limit);

        events.set(wants, &[]);
        let by_kernel = (events.assign(limit) == 0).then(|| {
            let mut counters = [u8::MAX; mainline::MAX];
            for (slot, counter) in counters.iter_mut().zip(events.counters()) {
                *slot = counter as u8;
            }
            counters
        });
        let mainline = solve(wants, limit, Policy::Mainline);
        let rpmu = solve(wants, limit, Policy::Rpmu);
        in_kernel += u32::from(by_kernel.is_some());
        in_mainline += u32::from(mainline.is_some());
        in_rpmu += u32::from(rpmu.is_some());

        if mainline != by_kernel {
            let defect_alone = mainline::assign_events(wants, limit, AS_IS) == by_kernel
                && mainline::assign_events(wants, limit, MENDED) == mainline;
            explained += u32::from(defect_alone);
            if !defect_alone {
                unexplained += 1;
                if unexplained <= 5 {
                    tap.say(format_args!(
                        "# {wants:x?}, limit {limit}: the kernel and policy=mainline differ"
                    ));
                }
            }
        }
        let right = match &rpmu {
            Some(counters) => search::is_valid(wants, limit, counters),
            None => !search::fits(wants, limit),
        };
        if !right {
            wrong += 1;
            if wrong <= 5 {
                tap.say(format_args!(
                    "# {wants:x?}, limit {limit}: policy=rpmu is wrong"
                ));
            }
        }
    }

    tap.say(format_args!(
        "# {total} sets of events, of which {in_rpmu} have a placement"
    ));
    tap.say(format_args!(
        "# the kernel places {in_kernel}, policy=mainline {in_mainline}, policy=rpmu {in_rpmu}"
    ));
    tap.say(format_args!(
        "# the kernel and policy=mainline differ in {explained} because of nr_gp, and in {unexplained} others"
    ));
    tap.result(total > 0 && unexplained == 0, "mainline_policy_agrees");
    tap.result(total > 0 && wrong == 0, "rpmu_policy_is_exact");
}

/// Assigns the six counters of AMD's family 15h to six events. The kernel discards a choice but
/// still counts the counter of that choice (`nr_gp`), and so reaches the limit too early. With a
/// higher limit, it places all events.
fn family_15h(tap: &mut Tap, events: &mut kernel_side::Events) {
    let [_, low, _, overlapping, any, high] = sets::FAMILY_15H else {
        return tap.result(false, "family_15h_has_six_counters");
    };
    let wants = [*overlapping, *low, *low, *low, *high, *any];
    let mut unassigned = |limit| {
        events.set(&wants, &[]);
        events.assign(limit)
    };
    let by_kernel = [unassigned(6), unassigned(7)];
    let by_policy =
        [Policy::Mainline, Policy::Rpmu].map(|policy| solve(&wants, 6, policy).is_some());
    tap.say(format_args!(
        "# of {} events, the kernel places all but {}, and all but {} with a limit one higher",
        wants.len(),
        by_kernel[0],
        by_kernel[1]
    ));
    let shown = by_kernel[0] > 0 && by_kernel[1] == 0;
    tap.result(
        shown && by_policy == [true, true],
        "family_15h_has_six_counters",
    );
}

/// A set of events for which instructions are counted.
struct Case {
    name: &'static str,
    /// Set if rpmu must be at least as fast.
    judged: bool,
    gp_limit: u32,
    masks: &'static [u64],
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case {
        name: "haswell_4_3",
        judged: true,
        gp_limit: 4,
        masks: &[
            0x2_0000_000f, 0x1_0000_000f, 0x4_0000_0000, // cycles, instructions, ref-cycles
            0xf, 0xf, 0x4, 0xf, // one of them L1D_PEND_MISS.PENDING
        ],
    },
    Case {
        name: "haswell_4_3_any",
        judged: true,
        gp_limit: 4,
        masks: &[0x2_0000_000f, 0x1_0000_000f, 0x4_0000_0000, 0xf, 0xf, 0xf, 0xf],
    },
    Case {
        name: "golden_cove_8_3",
        judged: true,
        gp_limit: 8,
        masks: &[
            0x2_0000_00ff, 0x1_0000_00ff, 0x4_0000_0000,
            0xff, 0xff, 0xff, 0xff, 0x0f, 0x0f, 0x0f, 0x01,
        ],
    },
    Case {
        name: "one",
        judged: false,
        gp_limit: 4,
        masks: &[0xf],
    },
];

fn speed(tap: &mut Tap, events: &mut kernel_side::Events) {
    if kernel_side::instructions().is_none() {
        tap.tests += 1;
        tap.say(format_args!(
            "ok {} speed # SKIP this PMU does not count instructions for tests",
            tap.tests
        ));
        return;
    }
    tap.say(format_args!(
        "# instructions per call: kernel, rpmu as the driver calls it (assignment alone, with its input)"
    ));
    let mut fast = true;
    for case in CASES {
        fast &= compare(tap, events, case).unwrap_or(false);
    }
    tap.result(fast, "not_slower_than_the_kernel");
}

/// Returns whether rpmu needs no more instructions than the kernel, or the case is not judged: from
/// scratch, with one new event, and if all events keep their counters. `None` if it cannot be
/// measured.
fn compare(tap: &mut Tap, events: &mut kernel_side::Events, case: &Case) -> Option<bool> {
    let mut wants = [Want::default(); 16];
    let wants = wants.get_mut(..case.masks.len())?;
    for (want, mask) in wants.iter_mut().zip(case.masks) {
        want.counters = *mask;
    }
    let limit = case.gp_limit;
    let counters = solve(wants, limit, Policy::Rpmu)?;
    let mut all_had = [None; 16];
    for (had, counter) in all_had.iter_mut().zip(counters) {
        *had = Some(counter);
    }

    // All except the newest have counters.
    let mut one_new = all_had;
    *one_new.get_mut(wants.len().checked_sub(1)?)? = None;

    let mut fast = true;
    for (what, previous) in [
        ("from_scratch", &[None; 16]),
        ("one_more", &one_new),
        ("kept", &all_had),
    ] {
        events.set(wants, previous);
        let by_kernel = kernel_side::cost(|| {
            black_box(events.schedule(limit));
        })?;
        let no_event: Event = (Constraint::any_of(CounterMask::EMPTY), None);
        let mut list = [no_event; 16];
        for ((slot, want), previous) in list.iter_mut().zip(&*wants).zip(previous) {
            *slot = event(want, *previous);
        }
        let list = list.get(..wants.len())?;
        let mut problem = Problem::new(limit);
        fill(&mut problem, list.iter().copied());
        let solved = kernel_side::cost(|| {
            let _ = black_box(black_box(&problem).solve());
        })?;
        let anew = kernel_side::cost(|| {
            problem.clear();
            fill(&mut problem, black_box(list).iter().copied());
            let _ = black_box(black_box(&problem).solve());
        })?;
        let called = commit_cost(list)?;
        tap.say(format_args!(
            "# {} {what}: {by_kernel}, {called}: {} % ({solved}, {anew})",
            case.name,
            called * 100 / by_kernel.max(1),
        ));
        fast &= called <= by_kernel || !case.judged;
    }
    Some(fast)
}
