// SPDX-License-Identifier: GPL-2.0

//! The reasons why an event does not count all the time: a limit, or the events that hold the
//! counters or registers that it needs.

use crate::logic::model::demand::{
    Demand,
    Key,
    Unshared, //
};
use crate::logic::refusal::Refusal;
use crate::logic::refusal::Shortage;
use crate::logic::regs::counter::{
    CounterId,
    CounterKind,
    CounterMask, //
};
use crate::logic::regs::metrics::TOPDOWN;
use crate::logic::sched::explanation::ONE_GROUP_HAS_SLOTS;
use crate::logic::sched::limits::Limits;
use crate::open::{
    closed,
    fits_under,
    shares_a_core,
    validate, //
};
use crate::plan::{
    Plan,
    Request, //
};
use crate::sharing::{
    distinct,
    forget_unique_keys, //
};
use crate::simulate::{
    is_taken,
    Configuration,
    EventNumber,
    Wait, //
};
use serde::Serialize;
use std::collections::HashMap;
use std::hash::Hash;

/// Largest number of holders that a cause names.
const MAX_HOLDERS: usize = 8;

/// A cause of an event's loss.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// The kind of cause.
    pub kind: Kind,
    /// The share of time for which it is the cause, from 0 to 1.
    pub share: f64,
    /// The counters concerned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<String>,
    /// The events that hold the counters or registers that the event needs, the failed group before
    /// it, or the refused events of its group; only the first ones if there are many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<String>,
    /// The number of events that `holders` omits.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
    /// The cause in words.
    pub text: String,
}

/// `serde` wants a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Joins names, of which only the first ones may be given.
pub(crate) fn joined(names: &[String], more: usize) -> String {
    let names = names.join(", ");
    match more {
        0 => names,
        1 => format!("{names} and another"),
        more => format!("{names} and {more} others"),
    }
}

/// A kind of cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Its counters are taken.
    Counters,
    /// A corrupting event limits the thread's general-purpose counters.
    Limit,
    /// The core's other thread holds the counters or registers that it needs.
    Sibling,
    /// The extra registers hold other values.
    Registers,
    /// The perf core does not try it after a group that failed.
    HeadOfLine,
    /// The driver places other groups first, which have less runtime.
    Turn,
    /// It is exclusive, or another group is.
    Exclusive,
    /// Perf cannot read its group, because an event of it was refused.
    Unreadable,
}

/// Formats a set of counters: `PMC0-3, FIXED1`.
pub fn counter_names(mask: CounterMask) -> String {
    let mut spans: Vec<(CounterId, CounterId)> = Vec::new();
    for counter in mask {
        match spans.last_mut() {
            Some((_, last))
                if last.index() + 1 == counter.index() && last.is_fixed() == counter.is_fixed() =>
            {
                *last = counter;
            }
            _ => spans.push((counter, counter)),
        }
    }
    let number = |counter: CounterId| match counter.kind() {
        CounterKind::Gp(n) | CounterKind::Fixed(n) | CounterKind::Metric(n) => n,
        CounterKind::GuestBranches => 0,
    };
    let span = |(first, last): &(CounterId, CounterId)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{}", number(*last))
        }
    };
    spans.iter().map(span).collect::<Vec<_>>().join(", ")
}

/// Returns the causes of each group's loss, the most frequent first.
pub fn causes(request: &Request, plan: &Plan) -> Vec<Vec<Cause>> {
    let groups = &plan.opened.groups;
    let mut demands: Vec<Vec<Demand>> = groups
        .iter()
        .map(|group| {
            let members = group.members.iter();
            members
                .filter_map(|event| plan.opened.events[*event].demand)
                .collect()
        })
        .collect();
    forget_unique_keys(&mut demands, request.watchdog());
    let kinds = numbered(&demands);
    let mut losses: Vec<Vec<Loss>> = groups.iter().map(|_| Vec::new()).collect();
    for (configuration, intervals) in plan.simulation.configurations.iter().zip(&plan.intervals) {
        if *intervals <= 0.0 {
            continue;
        }
        let placed = counting(request, plan, configuration);
        let placed: Vec<Demand> = placed.collect();
        // Groups with equal needs wait for the same reason.
        let mut known: HashMap<(usize, Wait), Found> = HashMap::new();
        for (group, wait) in &configuration.waiting {
            let (Some(needs), Some(kind)) = (demands.get(*group), kinds.get(*group)) else {
                continue;
            };
            let new = known
                .entry((*kind, *wait))
                .or_insert_with(|| find(request, plan, (configuration, &placed), needs, *wait));
            merge(&mut losses[*group], new, *intervals);
        }
    }
    let total: f64 = plan.intervals.iter().sum();
    let equal = Equal::new(request, plan);
    let said = losses.into_iter().zip(groups).map(|(mut losses, group)| {
        losses.sort_by(|one, other| other.intervals.total_cmp(&one.intervals));
        let said = losses
            .into_iter()
            .map(|loss| loss.cause(request, plan, (&group.members, &equal), total));
        said.chain(unreadable(plan, &group.refused)).collect()
    });
    said.collect()
}

/// Returns a number for each of these: the same for equal ones only.
fn numbered<T: Eq + Hash>(all: &[T]) -> Vec<usize> {
    let mut known: HashMap<&T, usize> = HashMap::new();
    let number = |it| {
        let next = known.len();
        *known.entry(it).or_insert(next)
    };
    all.iter().map(number).collect()
}

/// Adds a cause for this many intervals to a group's losses.
fn merge(losses: &mut Vec<Loss>, new: &Found, intervals: f64) {
    // The counters that the other thread uses change all the time: merge these causes.
    let by_sibling = |kind, mask: CounterMask| kind == Kind::Sibling && !mask.is_empty();
    let is_it = |known: &Loss| {
        let same = known.kind == new.kind && known.mask == new.mask;
        same || (by_sibling(known.kind, known.mask) && by_sibling(new.kind, new.mask))
    };
    let known = losses.iter().position(is_it).unwrap_or_else(|| {
        losses.push(Loss::new(new));
        losses.len() - 1
    });
    let loss = &mut losses[known];
    loss.mask = loss.mask | new.mask;
    loss.intervals += intervals;
    loss.holders.heads.add(&new.holders.heads);
    loss.holders.riders.add(&new.holders.riders);
}

/// Returns the cause that perf cannot read a group, if events of it were refused.
fn unreadable(plan: &Plan, refused: &[EventNumber]) -> Option<Cause> {
    let names: Vec<String> = refused
        .iter()
        .take(MAX_HOLDERS)
        .map(|event| plan.name(*event).to_owned())
        .collect();
    let more = refused.len() - names.len();
    (!names.is_empty()).then(|| Cause {
        kind: Kind::Unreadable,
        share: 1.0,
        counters: Vec::new(),
        text: format!(
            "perf shows no event of a group with a refused one ({})",
            joined(&names, more)
        ),
        holders: names,
        more,
    })
}

/// A set of events, one bit each.
#[derive(Default)]
struct Events(Vec<u64>);

impl Events {
    fn has(&self, event: EventNumber) -> bool {
        let word = self.0.get(event / 64);
        word.is_some_and(|word| (word >> (event % 64)) & 1 != 0)
    }

    fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn iter(&self) -> impl Iterator<Item = EventNumber> + '_ {
        let words = self.0.iter().enumerate();
        words.flat_map(|(index, word)| {
            let bits = (0..64).filter(move |bit| (word >> bit) & 1 != 0);
            bits.map(move |bit| 64 * index + bit)
        })
    }

    fn add(&mut self, events: &[EventNumber]) {
        for event in events {
            if self.0.len() <= event / 64 {
                self.0.resize(event / 64 + 1, 0);
            }
            self.0[event / 64] |= 1 << (event % 64);
        }
    }
}

/// The events on some counters.
#[derive(Default)]
struct Holders<Events> {
    /// Those that do not ride.
    heads: Events,
    riders: Events,
}

/// A cause in one configuration.
struct Found {
    kind: Kind,
    mask: CounterMask,
    holders: Holders<Vec<EventNumber>>,
    /// The failed group that comes before it.
    before: Option<usize>,
}

impl Found {
    fn new(kind: Kind, mask: CounterMask, holders: Holders<Vec<EventNumber>>) -> Self {
        Self {
            kind,
            mask,
            holders,
            before: None,
        }
    }
}

/// A cause in all configurations in which a group waits for it.
struct Loss {
    kind: Kind,
    mask: CounterMask,
    holders: Holders<Events>,
    /// The failed group that comes before it in the first of these configurations.
    before: Option<usize>,
    /// How long the group waits for it.
    intervals: f64,
}

impl Loss {
    fn new(found: &Found) -> Self {
        Self {
            kind: found.kind,
            mask: found.mask,
            holders: Holders::default(),
            before: found.before,
            intervals: 0.0,
        }
    }
}

/// Returns the events that have a counter of `mask` in a configuration.
fn holders(now: &Configuration, mask: CounterMask) -> Holders<Vec<EventNumber>> {
    let held = |counter: u8| {
        CounterId::from_index(usize::from(counter)).is_some_and(|it| mask.contains(it))
    };
    let heads = now.heads().filter(|(counter, _)| held(*counter));
    let riders = now.riders().filter(|(counter, ..)| held(*counter));
    Holders {
        heads: heads.map(|(_, event)| event).collect(),
        riders: riders.map(|(_, event, _)| event).collect(),
    }
}

fn find(
    request: &Request,
    plan: &Plan,
    (now, placed): (&Configuration, &[Demand]),
    demands: &[Demand],
    wait: Wait,
) -> Found {
    // Events that can ride need no counter.
    let would_ride = |demand: &Demand| placed.iter().any(|it| demand.can_ride_on(it));
    let others = demands.iter().filter(|demand| !would_ride(demand));
    let demands = &others.copied().collect::<Vec<_>>()[..];
    let wanted = demands.iter().fold(CounterMask::EMPTY, |mask, demand| {
        mask | demand.constraint.counters
    });
    let slots_are_taken = wanted.contains(CounterId::SLOTS)
        && placed
            .iter()
            .any(|its| its.constraint.counters.contains(CounterId::SLOTS));
    let refusal = match wait {
        Wait::Behind(_) | Wait::Turn | Wait::Refused(_) if slots_are_taken => {
            return Found::new(Kind::Counters, wanted & TOPDOWN, holders(now, TOPDOWN));
        }
        // This decides most cases and is much faster than a trial.
        Wait::Behind(_) | Wait::Turn if want_what_is_taken(request, demands, placed) => {
            let wanted_here = wanted.without(closed(&request.machine));
            return Found::new(Kind::Counters, wanted_here, holders(now, wanted));
        }
        // It was not tried: would it have fitted?
        Wait::Behind(_) | Wait::Turn => match (fits_beside(request, plan, now, demands), wait) {
            (Err(refusal), _) => refusal,
            (Ok(()), Wait::Behind(before)) => {
                return Found {
                    before: Some(before),
                    ..Found::new(Kind::HeadOfLine, CounterMask::EMPTY, Holders::default())
                };
            }
            (Ok(()), _) => return Found::new(Kind::Turn, CounterMask::EMPTY, Holders::default()),
        },
        Wait::Exclusive => {
            return Found::new(
                Kind::Exclusive,
                CounterMask::EMPTY,
                holders(now, CounterMask::ALL),
            )
        }
        Wait::Refused(refusal) => plan.simulation.refusals[refusal],
    };
    explain(refusal, request, plan, now, demands, wanted)
}

/// Returns the cause behind a refusal, with the holders of the counters or registers that the
/// group's `demands` need. `wanted` has all counters that these demands can use.
fn explain(
    refusal: Refusal,
    request: &Request,
    plan: &Plan,
    now: &Configuration,
    demands: &[Demand],
    wanted: CounterMask,
) -> Found {
    match refusal {
        Refusal::ExtraRegisterTaken => {
            let all = holders(now, CounterMask::ALL);
            let has_register = |event: &EventNumber| {
                let event = plan.opened.events.get(*event);
                event
                    .and_then(|event| event.demand)
                    .is_some_and(|demand| demand.needs_register())
            };
            Found::new(
                Kind::Registers,
                CounterMask::EMPTY,
                Holders {
                    heads: all.heads.into_iter().filter(has_register).collect(),
                    riders: Vec::new(),
                },
            )
        }
        Refusal::ExtraRegisterLimited => {
            Found::new(Kind::Sibling, CounterMask::EMPTY, Holders::default())
        }
        Refusal::Limited(Shortage::GpLimit { .. })
        | Refusal::DoesNotFit(Shortage::GpLimit { .. }) => Found::new(
            Kind::Limit,
            wanted.gp(),
            holders(now, CounterMask::ALL.gp()),
        ),
        Refusal::Limited(_) if now.sibling & wanted.bits() != 0 => {
            // An event that is not corrupting may use counters that are closed only to corrupting
            // events.
            let corrupts = |demand: &Demand| demand.constraint.corrupting;
            let theirs = match demands.iter().any(corrupts) {
                true => now.sibling,
                false => now.closed,
            };
            let theirs = CounterMask::from_bits(theirs) & wanted;
            Found::new(Kind::Sibling, theirs, holders(now, wanted))
        }
        _ => Found::new(
            Kind::Counters,
            wanted.without(closed(&request.machine)),
            holders(now, wanted),
        ),
    }
}

/// Returns the needs of an event, which may be the watchdog's. [`None`] if it needs no counter of
/// the core.
fn demand_of(request: &Request, plan: &Plan, event: EventNumber) -> Option<Demand> {
    match plan.opened.events.get(event) {
        Some(event) => event.demand,
        None => request.watchdog(),
    }
}

/// Returns the needs of the events that count in a configuration, without riders. An event on whose
/// counter a sampled one rides is marked as sampled, since no other sampled event can ride there.
fn counting<'a>(
    request: &'a Request,
    plan: &'a Plan,
    now: &'a Configuration,
) -> impl Iterator<Item = Demand> + 'a {
    now.by_counter().filter_map(|events| {
        let events = events.iter();
        let mut demands = events.filter_map(|(_, event)| demand_of(request, plan, *event));
        let mut head = demands.next()?;
        let samples = head.key.samples() || demands.any(|it| it.key.samples());
        head.key = head.key.with_samples(samples);
        Some(head)
    })
}

/// Returns whether one of these events can only use counters that are all held by events which can
/// use no others, and no other limit applies.
fn want_what_is_taken(request: &Request, demands: &[Demand], placed: &[Demand]) -> bool {
    let plain = demands
        .iter()
        .all(|demand| !demand.needs_register() && !demand.constraint.corrupting);
    let shares = shares_a_core(&request.machine) && request.machine.pmu.model.ht_erratum.is_some();
    let placed = placed.iter().map(|demand| demand.constraint.counters);
    let placed: Vec<CounterMask> = placed.collect();
    let taken = |demand: &Demand| is_taken(demand.constraint.counters, &placed);
    plain && !shares && demands.iter().any(taken)
}

/// Checks whether these events would fit beside those that count now.
fn fits_beside(
    request: &Request,
    plan: &Plan,
    now: &Configuration,
    demands: &[Demand],
) -> Result<(), Refusal> {
    let together = counting(request, plan, now).chain(demands.iter().copied());
    let together = distinct(together);
    validate(&together, &request.machine, request.policy)?;
    // Does it fit within the limits that the core's other thread imposes now?
    let limits = Limits {
        closed: CounterMask::from_bits(now.closed),
        closed_to_sharing: CounterMask::from_bits(now.sibling),
        gp: now.gp,
        ..Limits::NONE
    };
    let fits = fits_under(limits, &together, &request.machine, request.policy);
    fits.map_err(|refusal| match refusal {
        // The current limits leave the event no counter.
        Refusal::NoCounter => Refusal::Limited(Shortage::Contended {
            events: 1,
            counters: CounterMask::EMPTY,
        }),
        refusal => refusal.for_the_moment(),
    })
}

/// The events that count each thing, whether they share counters or not.
struct Equal(HashMap<Key, Vec<EventNumber>>);

impl Equal {
    fn new(request: &Request, plan: &Plan) -> Self {
        let mut equal: HashMap<Key, Vec<EventNumber>> = HashMap::new();
        // The last one is the watchdog's.
        for event in 0..=plan.opened.events.len() {
            if let Some(demand) = demand_of(request, plan, event) {
                equal.entry(Self::index(&demand)).or_default().push(event);
            }
        }
        Self(equal)
    }

    /// Returns a key that tells only what is counted.
    fn index(demand: &Demand) -> Key {
        demand.key.unshared(Unshared::Off)
    }

    /// Returns the first of `holders` that counts the same as one of these `members`, and why the
    /// two do not share a counter.
    fn would_share(
        &self,
        request: &Request,
        plan: &Plan,
        members: &[EventNumber],
        holders: &Holders<Events>,
    ) -> Option<(EventNumber, Unshared)> {
        let demand = |event| demand_of(request, plan, event);
        let mut members = members.iter().filter_map(|member| demand(*member));
        members.find_map(|member| {
            let equal = self.0.get(&Self::index(&member))?;
            let first = |holders: &Events| {
                let mut equal = equal.iter().filter(|event| holders.has(**event));
                equal.find_map(|event| Some((*event, member.why_unshared(&demand(*event)?)?)))
            };
            first(&holders.heads).or_else(|| first(&holders.riders))
        })
    }
}

impl Loss {
    fn cause(
        self,
        request: &Request,
        plan: &Plan,
        (members, equal): (&[EventNumber], &Equal),
        total: f64,
    ) -> Cause {
        let names: Vec<String> = self
            .holders
            .heads
            .iter()
            .take(MAX_HOLDERS)
            .map(|event| {
                let group = plan.opened.group_of(event);
                let pinned =
                    group.is_some_and(|group| group.pinned) || event >= plan.opened.events.len();
                let name = plan.name(event);
                if pinned {
                    format!("{name} (pinned)")
                } else {
                    name.to_owned()
                }
            })
            .collect();
        let more = self.holders.heads.len() - names.len();
        let holders = joined(&names, more);
        let counters = counter_names(self.mask);
        let hold = if names.len() == 1 { "holds" } else { "hold" };
        let text = match self.kind {
            Kind::Counters if self.mask.contains(CounterId::SLOTS) => {
                format!("{ONE_GROUP_HAS_SLOTS}, and {holders} {hold} them")
            }
            Kind::Counters if self.mask.weight() == 1 => {
                let in_turn = if names.len() == 1 { "" } else { " in turn" };
                format!("only {counters} can count it, and {holders} {hold} it{in_turn}")
            }
            Kind::Counters => {
                format!("only {counters} can count it, and {holders} {hold} them")
            }
            Kind::Limit => {
                let erratum = request.machine.pmu.model.ht_erratum.unwrap_or("an erratum");
                let half = request.machine.pmu.capabilities.gp() / 2;
                format!(
                    "a thread with an event that corrupts its sibling's counts ({erratum}) may use {half} \
                     general-purpose counters, and {holders} {hold} them"
                )
            }
            Kind::Sibling if self.mask.is_empty() => {
                "the core's other thread uses the extra register with another value".to_owned()
            }
            Kind::Sibling => format!("the core's other thread uses {counters}"),
            Kind::Registers => {
                format!("it needs another value in an offcore response register, and {holders} {hold} them")
            }
            Kind::HeadOfLine => {
                let before = self
                    .before
                    .map_or(String::new(), |group| plan.group_name(group));
                format!("the perf core tries no group after one that failed, here {before}")
            }
            Kind::Turn => "others have had less runtime and go first".to_owned(),
            Kind::Exclusive => {
                format!("an exclusive group (:e) does not share the PMU, and {holders} {hold} it")
            }
            Kind::Unreadable => String::new(),
        };
        let shared = match self.kind {
            Kind::Counters | Kind::Limit => {
                equal.would_share(request, plan, members, &self.holders)
            }
            _ => None,
        };
        let text = match shared {
            Some((with, but)) => {
                format!("{text}; it would share with {}, but {but}", plan.name(with))
            }
            None => text,
        };
        let before = self.before.map(|group| plan.group_name(group));
        Cause {
            kind: self.kind,
            share: self.intervals / total,
            counters: self
                .mask
                .iter()
                .map(|counter| counter.to_string())
                .collect(),
            holders: before.into_iter().chain(names).collect(),
            more,
            text,
        }
    }
}
