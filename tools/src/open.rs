// SPDX-License-Identifier: GPL-2.0

//! The results of perf_event_open, and how perf stat treats them.
//!
//! The driver's own logic configures and validates each event, as `rust/driver/event_init.rs` does.
//! If a member is refused, the rest of its group counts without it, but perf stat reads the group
//! as a whole, misses the member's value and shows none of the group (`evsel__process_group_data()`
//! in `tools/perf/util/evsel.c`).

use crate::logic::model::demand::{
    Demand,
    Unshared, //
};
use crate::logic::open::attr::{
    Leader,
    LOAD_LATENCY_AUXILIARY, //
};
use crate::logic::open::topdown::SLOTS;
use crate::logic::refusal::{
    Errno,
    Refusal, //
};
use crate::logic::regs::counter::{
    CounterId,
    CounterMask, //
};
use crate::logic::regs::event_select::EventSelect;
use crate::logic::sched::assign::Policy;
use crate::logic::sched::group::Group as Validated;
use crate::logic::sched::limits::Limits;
use crate::machine::Machine;
use crate::names::{
    Kind,
    Wanted,
    WantedEvent, //
};
use crate::regroup::must_be_in_group;
use std::fmt;

/// A sample period that no model considers too short.
const SOME_PERIOD: u64 = 1 << 20;

/// The outcome of opening a list of events.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// All requested events, in the order of the list.
    pub events: Vec<Event>,
    /// The groups, in the order in which they were opened.
    pub groups: Vec<Group>,
    /// By event: the number of the group of which it is an open member.
    group_of: Vec<Option<usize>>,
}

/// A requested event.
#[derive(Clone, Debug)]
pub struct Event {
    /// The name that perf shows: the value of the term `name=`, or else the event as written in the
    /// list.
    pub name: String,
    /// The counters and registers that it needs; `None` for a software event, for an event of
    /// another PMU, and for an event that was refused before this was known.
    pub demand: Option<Demand>,
    /// The event select; `None` in the same cases as `demand`.
    pub select: Option<EventSelect>,
    /// Set if another PMU than the core's counts it, and not the kernel itself.
    pub is_elsewhere: bool,
    /// The reason why it was refused.
    pub refused: Option<Why>,
}

/// A group, or a single event.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Indices of its open events, the leader first.
    pub members: Vec<usize>,
    /// Indices of its refused events.
    pub refused: Vec<usize>,
    /// Set if it is pinned.
    pub pinned: bool,
    /// Set if it is exclusive (`:e`).
    pub exclusive: bool,
}

/// The reason why an event is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The driver refused it.
    Driver(Refusal),
    /// The perf core refused it: only a group's leader can be pinned or exclusive.
    OnlyLeader,
    /// Perf did not open it, because its group has no leader.
    NoLeader,
}

impl Why {
    /// Returns the errno.
    pub const fn errno(&self) -> &'static str {
        match self {
            Self::Driver(refusal) => refusal.errno().name(),
            Self::OnlyLeader | Self::NoLeader => Errno::Invalid.name(),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver(refusal) => refusal.fmt(f),
            Self::OnlyLeader => f.write_str("only a group's leader can be pinned or exclusive"),
            Self::NoLeader => f.write_str("its group's leader was refused"),
        }
    }
}

impl Group {
    /// Adds the event with this number; `wanted` is the request, and `event` has the result of
    /// perf_event_open.
    fn add(&mut self, number: usize, wanted: &WantedEvent, event: &Event) {
        if self.members.is_empty() && self.refused.is_empty() {
            (self.pinned, self.exclusive) = (wanted.pinned, wanted.exclusive);
        }
        match event.refused {
            None => self.members.push(number),
            Some(_) => self.refused.push(number),
        }
    }
}

impl Opened {
    /// Returns the number of the group that an event is a member of.
    pub fn number_of_group(&self, event: usize) -> Option<usize> {
        *self.group_of.get(event)?
    }

    /// Returns the group that an event is a member of.
    pub fn group_of(&self, event: usize) -> Option<&Group> {
        self.groups.get(self.number_of_group(event)?)
    }

    /// Returns whether any event of the group needs a counter. The perf core treats other groups as
    /// software groups.
    pub fn needs_counters(&self, group: &Group) -> bool {
        group
            .members
            .iter()
            .any(|event| self.events[*event].demand.is_some())
    }

    /// Makes the events share no counters, as with `share=0`.
    pub fn share_nothing(&mut self) {
        let demands = self.events.iter_mut().filter_map(|it| it.demand.as_mut());
        demands.for_each(|demand| demand.key = demand.key.unshared(Unshared::Off));
    }

    /// Adds events that were opened after these. Their numbers, and those of their groups, continue
    /// after the last ones.
    pub fn append(&mut self, other: Self) {
        let (events, groups) = (self.events.len(), self.groups.len());
        self.events.extend(other.events);
        self.groups
            .extend(other.groups.into_iter().map(|mut group| {
                let numbers = group.members.iter_mut().chain(&mut group.refused);
                numbers.for_each(|number| *number += events);
                group
            }));
        let group_of = other.group_of.into_iter();
        self.group_of
            .extend(group_of.map(|group| Some(group? + groups)));
    }

    /// Returns whether perf can read the event: all events of its group are open.
    pub fn is_readable(&self, event: usize) -> bool {
        self.group_of(event)
            .is_some_and(|group| group.refused.is_empty())
    }
}

/// Returns the counters that no event can use on the machine.
pub fn closed(machine: &Machine) -> CounterMask {
    match CounterId::gp(3) {
        Some(counter) if machine.no_force_abort => counter.mask(),
        _ => CounterMask::EMPTY,
    }
}

/// Opens events like perf stat, in the order of the list. If a weak group does not fit, its members
/// are opened again at the end: slots and topdown metrics together, the others as single events.
pub fn open(wanted: &[Wanted], machine: &Machine, policy: Policy) -> Opened {
    let mut opened = Opened::default();
    let mut again: Vec<Vec<usize>> = Vec::new();
    let mut asked: Vec<&WantedEvent> = Vec::new();
    for group in wanted {
        let start = opened.events.len();
        let mut result = Group::default();
        for (index, event) in group.events.iter().enumerate() {
            asked.push(event);
            let new = open_event(event, index, &result, &opened, machine, policy);
            result.add(start + index, event, &new);
            opened.events.push(new);
        }
        let dissolve = group.weak
            && result.refused.iter().any(|event| {
                let why = opened.events[*event].refused;
                *event != start && why.is_some_and(|why| why.errno() == "EINVAL")
            });
        if dissolve {
            // Perf leaves topdown events with the leader (`evsel__remove_from_group()`).
            let stays =
                |number: &usize| *number == start || must_be_in_group(asked[*number], machine);
            let (stay, leave): (Vec<usize>, _) = (start..opened.events.len()).partition(stays);
            again.push(stay);
            again.extend(leave.into_iter().map(|number: usize| vec![number]));
        } else {
            opened.groups.push(result);
        }
    }
    for numbers in again {
        let mut result = Group::default();
        for (index, number) in numbers.into_iter().enumerate() {
            let event = asked[number];
            let new = open_event(event, index, &result, &opened, machine, policy);
            result.add(number, event, &new);
            opened.events[number] = new;
        }
        opened.groups.push(result);
    }
    opened.group_of = vec![None; opened.events.len()];
    for (number, group) in opened.groups.iter().enumerate() {
        for member in &group.members {
            opened.group_of[*member] = Some(number);
        }
    }
    opened
}

/// Opens one event as member `index` of a group.
fn open_event(
    event: &WantedEvent,
    index: usize,
    group: &Group,
    opened: &Opened,
    machine: &Machine,
    policy: Policy,
) -> Event {
    let members = || group.members.iter().map(|member| &opened.events[*member]);
    let mut new = Event {
        name: event.label.clone().unwrap_or_else(|| event.name.clone()),
        demand: None,
        select: None,
        is_elsewhere: matches!(event.kind, Kind::Other(_)),
        refused: None,
    };
    if let Kind::Hardware(attr) = &event.kind {
        let mut attr = *attr;
        attr.is_member = index > 0;
        attr.pinned = event.pinned;
        attr.has_auxiliary = members()
            .filter_map(|member| member.select)
            .any(|select| select.code() == LOAD_LATENCY_AUXILIARY);
        // Perf stat cannot count a precise event, so it is one of perf record, which samples it
        // with some period.
        if attr.precise_ip > 0 && attr.sample_period == 0 {
            attr.sample_period = SOME_PERIOD;
        }
        attr.leader = match members().next().and_then(|leader| leader.select) {
            Some(select) if select.code() == SLOTS => Leader::Slots,
            _ => Leader::Other,
        };
        match machine.configure(&attr) {
            Ok(configured) => {
                let select = configured.select;
                let constraint = configured.constraint(&machine.pmu);
                if configured.precise.is_some() && constraint.counters.is_empty() {
                    new.refused = Some(Why::Driver(Refusal::NeverPrecise));
                }
                let is_alone = match index {
                    0 => event.exclusive,
                    _ => group.exclusive,
                };
                let key = configured.key(constraint, attr.is_sampling());
                let key = match policy {
                    Policy::Mainline => key.unshared(Unshared::Off),
                    Policy::Rpmu if is_alone => key.unshared(Unshared::Exclusive),
                    Policy::Rpmu => key,
                };
                new.select = Some(select);
                new.demand = Some(Demand {
                    constraint,
                    requirement: configured.requirement,
                    lbr_select: None,
                    key,
                });
            }
            Err(refusal) => new.refused = Some(Why::Driver(refusal)),
        }
    }
    if index > 0 && group.members.is_empty() {
        new.refused = Some(Why::NoLeader);
    } else if index > 0 && (event.pinned || event.exclusive) {
        new.refused = new.refused.or(Some(Why::OnlyLeader));
    } else if let (None, Some(demand)) = (new.refused, new.demand) {
        let together = members().filter_map(|member| member.demand).chain([demand]);
        let together: Vec<Demand> = together.collect();
        let verdict = validate(&together, machine, policy);
        new.refused = verdict.err().map(Why::Driver);
    }
    new
}

/// Checks whether a group could ever count, as `event_init()` in `rust/driver/event_init.rs` does.
pub fn validate(members: &[Demand], machine: &Machine, policy: Policy) -> Result<(), Refusal> {
    let corrupting = members.iter().any(|demand| demand.constraint.corrupting);
    let limits = if corrupting && shares_a_core(machine) {
        Limits::beside_sibling(machine.pmu.capabilities.gp())
    } else {
        Limits::NONE
    };
    fits_under(limits, members, machine, policy)
}

/// Checks whether these events fit together under `limits`.
pub fn fits_under(
    limits: Limits,
    members: &[Demand],
    machine: &Machine,
    policy: Policy,
) -> Result<(), Refusal> {
    let limits = limits.closing(closed(machine));
    let mut group = Validated::new(&machine.pmu.capabilities, &limits).with_policy(policy);
    for demand in members {
        group.push(*demand)?;
    }
    group.validate()
}

/// Returns whether the threads of a core must coordinate their events (`rust/driver/smt.rs`).
pub fn shares_a_core(machine: &Machine) -> bool {
    use crate::logic::model::Scope;

    let model = machine.pmu.model;
    machine.has_sibling() && (model.ht_erratum.is_some() || model.offcore_scope == Scope::Core)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Smt;
    use crate::names::{
        parse,
        parse_for, //
    };
    use crate::terms::Tool;

    fn verdicts(model: &str, smt: Smt, events: &str) -> Vec<&'static str> {
        let machine = Machine::new(model, smt, false).unwrap();
        let wanted = parse(events, &machine).unwrap();
        let opened = open(&wanted, &machine, Policy::Rpmu);
        let verdict = |event: &Event| event.refused.map_or("ok", |why| why.errno());
        opened.events.iter().map(verdict).collect()
    }

    const SIX: &str = "{r108,r208,r408,r149,r249,r449}";

    #[test]
    fn precise_events_have_counters_of_their_own() {
        let counters = |model: &str, events: &str| -> Vec<Option<u64>> {
            let machine = Machine::new(model, Smt::On, false).unwrap();
            let wanted = parse(events, &machine).unwrap();
            let opened = open(&wanted, &machine, Policy::Rpmu);
            let counters = |event: &Event| {
                let demand = event.demand.filter(|_| event.refused.is_none())?;
                Some(demand.constraint.counters.bits())
            };
            opened.events.iter().map(counters).collect()
        };
        let events = "instructions,instructions:p,instructions:ppp,cycles:ppp";
        assert_eq!(
            counters("skylake", events),
            [Some(0x1_0000_000f), Some(0xf), Some(0xf), Some(0x2)]
        );
        assert_eq!(
            counters("sapphirerapids", events),
            [
                Some(0x1_0000_00ff),
                Some(0xfe),
                Some(0x1_0000_0000),
                Some(0x1)
            ]
        );
        assert_eq!(
            verdicts("nehalem", Smt::On, "cycles:pp,cycles:ppp"),
            ["ok", "EOPNOTSUPP"]
        );
        assert_eq!(
            verdicts("nehalem", Smt::On, "r0151:p,r00c4:p"),
            ["EINVAL", "ok"]
        );
        assert_eq!(verdicts("zen4", Smt::On, "cycles:p"), ["EOPNOTSUPP"]);
    }

    #[test]
    fn random_periods_are_for_sampling() {
        let verdicts = |terms: &str| verdicts("hsw", Smt::On, &format!("cpu/event=0xc4,{terms}/"));
        assert_eq!(verdicts("period=5000,rand_mask=0xfff"), ["ok"]);
        assert_eq!(verdicts("period=4095,rand_mask=0xfff"), ["EINVAL"]);
        assert_eq!(verdicts("rand_mask=0xfff"), ["EINVAL"]);
        let machine = Machine::new("hsw", Smt::On, false).unwrap();
        let wanted = parse_for("cpu/event=0xc4,rand_mask=0xfff/", &machine, Tool::Record);
        let opened = open(&wanted.unwrap(), &machine, Policy::Rpmu);
        let refused = opened.events[0].refused;
        assert_eq!(refused, Some(Why::Driver(Refusal::RandomFrequency)));
    }

    #[test]
    fn events_have_the_name_that_their_terms_give() {
        let machine = Machine::new("hsw", Smt::On, false).unwrap();
        let wanted = parse("cpu/cycles,name=turns/u,cycles:u", &machine).unwrap();
        let opened = open(&wanted, &machine, Policy::Rpmu);
        let names: Vec<&str> = opened
            .events
            .iter()
            .map(|event| event.name.as_str())
            .collect();
        assert_eq!(names, ["turns", "cycles:u"]);
    }

    #[test]
    fn leaders_end_turns() {
        let verdicts = |events: &str| verdicts("hsw", Smt::On, events);
        let leader = "cpu/event=0xc0,period=5000,switch/";
        assert_eq!(verdicts(&format!("{{{leader},r4c4}}")), ["ok"; 2]);
        assert_eq!(verdicts(&format!("{{r4c4,{leader}}}")), ["ok", "EINVAL"]);
        assert_eq!(verdicts(&format!("{leader}D")), ["EINVAL"]);
        assert_eq!(verdicts("cpu/event=0xc0,switch=1/"), ["EINVAL"]);
    }

    #[test]
    fn a_group_is_cut_where_it_stops_fitting() {
        let cut = ["ok", "ok", "ok", "ok", "EINVAL", "EINVAL"];
        assert_eq!(verdicts("hsw", Smt::On, SIX), cut);
        assert_eq!(verdicts("hsw", Smt::Off, SIX), ["ok"; 6]);
    }

    #[test]
    fn a_weak_group_is_dissolved() {
        assert_eq!(verdicts("hsw", Smt::On, &format!("{SIX}:W")), ["ok"; 6]);
        let machine = Machine::new("hsw", Smt::On, false).unwrap();
        let wanted = parse(&format!("{SIX}:W,r1c4"), &machine).unwrap();
        let opened = open(&wanted, &machine, Policy::Rpmu);
        let groups: Vec<_> = opened.groups.iter().map(|group| group.members[0]).collect();
        // Opened again, and therefore after all others.
        assert_eq!(groups, [6, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn members_without_a_leader_are_not_opened() {
        let verdicts = verdicts("nhm", Smt::On, "{cycles:ppp,instructions,faults}");
        assert_eq!(verdicts, ["EOPNOTSUPP", "EINVAL", "EINVAL"]);
    }

    #[test]
    fn only_leaders_are_pinned() {
        let verdicts = verdicts("hsw", Smt::On, "{cycles,instructions:D},{faults,cycles}:D");
        assert_eq!(verdicts, ["ok", "EINVAL", "ok", "ok"]);
    }

    #[test]
    fn topdown_metrics_follow_their_slots() {
        let level_1 = "topdown-retiring,topdown-bad-spec,topdown-fe-bound,topdown-be-bound";
        for model in ["icx", "spr", "gnr"] {
            let verdicts = |events: &str| verdicts(model, Smt::On, events);
            assert_eq!(verdicts(&format!("{{slots,{level_1}}}")), ["ok"; 5]);
            // Perf adds slots, and puts them first.
            assert_eq!(verdicts(level_1), ["ok"; 5]);
            assert_eq!(verdicts("{cycles,slots,topdown-retiring}"), ["ok"; 3]);
            let apart = "slots:X,topdown-retiring:X,topdown-bad-spec:X";
            assert_eq!(verdicts(apart), ["ok", "EINVAL", "EINVAL"]);
            let twice = "{slots,topdown-retiring},{slots,topdown-bad-spec}";
            assert_eq!(verdicts(twice), ["ok", "EINVAL", "ok", "ok"]);
        }
        // The second level came with Golden Cove.
        let level_2 = "{slots,topdown-retiring,topdown-heavy-ops}";
        assert_eq!(verdicts("spr", Smt::On, level_2), ["ok"; 3]);
        let machine = Machine::new("icx", Smt::On, false).unwrap();
        assert!(parse(level_2, &machine).is_err());
    }

    #[test]
    fn topdown_metrics_stay_in_a_dissolved_group() {
        let machine = Machine::new("icx", Smt::On, false).unwrap();
        let general = (1..=9).map(|umask| format!("r{umask}c4"));
        let events = general.collect::<Vec<_>>().join(",");
        let events = format!("{{slots,topdown-retiring,{events}}}:W,cycles");
        let opened = open(&parse(&events, &machine).unwrap(), &machine, Policy::Rpmu);
        let groups: Vec<&[usize]> = opened.groups.iter().map(|it| &it.members[..]).collect();
        assert_eq!(groups[..3], [&[11][..], &[0, 1], &[2]]);
        assert!(opened.events.iter().all(|event| event.refused.is_none()));
    }

    #[test]
    fn a_corrupting_event_leaves_half_of_the_counters() {
        let three = "{mem_uops_retired.all_loads,r108,r208}";
        assert_eq!(verdicts("hsw", Smt::On, three), ["ok", "ok", "EINVAL"]);
        assert_eq!(verdicts("hsw", Smt::Offline, three), ["ok"; 3]);
        assert_eq!(verdicts("bdw", Smt::On, three), ["ok"; 3]);
    }
}
