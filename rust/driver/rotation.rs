// SPDX-License-Identifier: GPL-2.0

//! Rotation: which groups of a context go first when they do not all fit, after
//! [`logic::turns`](crate::logic::rotation).
//!
//! When an interval is over, the groups that have counted are put behind those that have had less
//! ([`Driver::line_up`]). Other than that the perf core's order decides. When a group is refused and
//! counters are left, those behind it are looked at ([`Driver::let_others_pass`]), and the ones that
//! fit are offered as well, and come first from then on.
//!
//! With `policy=mainline` nothing is done here at all.

use super::{
    cpu::{Cpu, Own},
    Driver,
};
use crate::{
    logic::{
        regs::counter::{CounterId, CounterMask},
        rotation::{look_ahead, requeue, Beside, GroupWants, Waiting, Wants},
        sched::{assign::Policy, extra_register::Demand, limits::Limits},
    },
    perf::{Context, Event, EventId, IntervalEnd, Scheduling, Version, WaitingGroup},
};
use kernel::{cpu::CpuId, prelude::*};

/// How many contexts are known on a CPU.
const KNOWN: usize = 8;
/// After so many changes, or so many intervals since an event has gone, a context is looked at anew.
const LONGEST: u64 = 64;

/// When so many groups were looked at, that is not done again before the interval is over.
const LONG_WALK: u32 = 64;

/// What the groups of a context want.
struct Known {
    version: Version,
    wants: Wants,
    /// Intervals since events have gone that are still in there; 0 if there are none.
    stale: u64,
}

/// What is known of the groups that take turns on a CPU.
pub(super) struct Turns {
    known: KBox<[Option<Known>; KNOWN]>,
    /// The entry that is given up next.
    next: usize,
}

impl Turns {
    /// `ENOMEM`, or nothing yet.
    pub(super) fn new() -> Result<Self> {
        let known = KBox::init(pin_init::init_array_from_fn(|_| None), GFP_KERNEL)?;
        Ok(Self { known, next: 0 })
    }

    /// What the groups of `context` want, if that is known; with what has come since.
    fn known(&mut self, context: &Context<'_, Driver>) -> Option<&mut Known> {
        let version = context.version();
        let mut entries = self.known.iter_mut().flatten();
        let known = entries.find(|it| it.version.is_of_same_context(&version))?;
        let changes = version
            .generation()
            .wrapping_sub(known.version.generation());
        if changes == 0 {
            return Some(known);
        }
        if changes > LONGEST {
            return None;
        }
        let wants = &mut known.wants;
        let mut whole = true;
        let all_there = context.for_each_since(Some(&known.version), |group, is_leader| {
            add(wants, group);
            whole &= is_leader.0;
        });
        // A group that has grown is in there as what it was, too: until the interval is over.
        if !whole {
            known.stale = LONGEST;
        } else if !all_there {
            known.stale = known.stale.max(1);
        }
        known.version = version;
        Some(known)
    }

    /// What the groups of `context` want, at the end of an interval.
    fn look_at(&mut self, context: &Context<'_, Driver>) -> Wants {
        if let Some(known) = self.known(context) {
            if known.stale != 0 {
                known.stale = known.stale.wrapping_add(1);
            }
            if known.stale <= LONGEST {
                return known.wants;
            }
        }
        let version = context.version();
        let mut wants = Wants::NOTHING;
        let _ = context.for_each_since(None, |group, is_leader| {
            if is_leader.0 {
                add(&mut wants, group);
            }
        });
        let is_it = |it: &Option<Known>| {
            it.as_ref()
                .is_some_and(|it| it.version.is_of_same_context(&version))
        };
        let place = self.known.iter().position(is_it).unwrap_or_else(|| {
            self.next = self.next.wrapping_add(1) % KNOWN;
            self.next
        });
        if let Some(slot) = self.known.get_mut(place) {
            *slot = Some(Known {
                version,
                wants,
                stale: 0,
            });
        }
        wants
    }
}

/// Adds what a group wants, whichever of its events are enabled.
fn add(wants: &mut Wants, group: WaitingGroup<'_, Driver>) {
    let mut group_wants = GroupWants::default();
    group.for_each_event(|event, _| group_wants.add(event.data().demand.constraint));
    if !group_wants.is_empty() {
        wants.add(&group_wants, group.is_exclusive());
    }
}

/// A group that waits, on a certain CPU.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    group: WaitingGroup<'a, Driver>,
    cpu: CpuId,
    /// What its events are called: the id of one that is not there any more.
    id: EventId,
}

impl Waiting for Candidate<'_> {
    type Event = EventId;

    fn for_each_event(&self, mut f: impl FnMut(EventId, Demand, Option<CounterId>)) {
        self.group.for_each_member(|member| {
            let data = member.data();
            f(self.id, data.demand, data.last_counter(self.cpu));
        });
    }

    fn is_alone(&self) -> bool {
        self.group.is_exclusive()
    }
}

impl Driver {
    /// Puts the groups that have counted behind those that have had less.
    pub(super) fn line_up(&self, cx: &IntervalEnd<'_, Self>) {
        let cpu = self.cpus.this_cpu(cx.irqs());
        let Some(mut own) = cpu.own.borrow(cx.irqs()) else {
            return;
        };
        let own = &mut *own;
        cx.for_each_context(|context| {
            if !context.may_be_ordered() {
                return;
            }
            let wants = own.turns.look_at(&context);
            let latest = context.latest();
            let mut moved = false;
            context.for_each_active(|group| {
                let mut counters = CounterMask::EMPTY;
                let mut corrupting = false;
                group.for_each_member(|member| {
                    let data = member.data();
                    corrupting |= data.demand.constraint.exclusive;
                    if let Some(counter) = data.counter() {
                        counters.insert(counter);
                    }
                });
                if wants.contend_for(counters) {
                    let charge = match corrupting {
                        false => wants.charge(false, 0, &Limits::NONE),
                        true => self.charge(cx, cpu, &wants),
                    };
                    let place = requeue(group.runtime_place(), latest, charge);
                    context.requeue(group, place);
                    // It may not be offered at all for a while, if it is behind one that is refused.
                    group.for_each_member(|member| member.data().wait_for_turn());
                    moved = true;
                }
            });
            // If none has counted, the perf core lets another be the first.
            if moved {
                cx.keep_order(&context);
            }
        });
    }

    /// What an interval costs a group with corrupting events.
    fn charge(&self, cx: &IntervalEnd<'_, Self>, cpu: &Cpu, wants: &Wants) -> u64 {
        let gp = self.hardware.pmu.capabilities.counters.gp().weight();
        wants.charge(true, gp, &self.limits_now(cx, cpu))
    }

    /// Whether `event`, which is being added, has to wait for others of its kind
    /// ([`Wants::waits_for_its_kind`]).
    pub(super) fn waits_for_its_kind(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut Own,
        event: &Event<Self>,
    ) -> bool {
        if !self.shares_a_core || self.hardware.policy != Policy::Rpmu {
            return false;
        }
        let mut corrupting = event.data().demand.constraint.exclusive;
        if !corrupting && !own.roster.any_exclusive()
            || cx.is_of_pinned_group(event)
            || cx.is_offered(event)
        {
            return false;
        }
        let context = cx.context(event);
        let Some(wants) = own.turns.known(&context).map(|known| known.wants) else {
            return false;
        };
        cx.group(event)
            .for_each_member(|member| corrupting |= member.data().demand.constraint.exclusive);
        let mut beside = Beside::default();
        for entry in own.roster.entries().filter(|it| it.planned().is_some()) {
            let other = cx.event(entry.event);
            if other.is_some_and(|it| cx.context(it) == context && !cx.is_of_pinned_group(it)) {
                let count = match entry.constraint.exclusive {
                    true => &mut beside.corrupting,
                    false => &mut beside.others,
                };
                *count = count.wrapping_add(1);
            }
        }
        let gp = self.hardware.pmu.capabilities.counters.gp().weight();
        wants.waits_for_its_kind(corrupting, beside, gp, &self.limits_now(cx, cpu))
    }

    /// Has groups behind that of `event`, which is refused, offered if they fit.
    #[cold]
    pub(super) fn let_others_pass(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut Own,
        event: &Event<Self>,
    ) {
        if self.hardware.policy != Policy::Rpmu || cx.is_of_pinned_group(event) {
            return;
        }
        // The events of the group that is refused are not to be in the way.
        if own.roster.in_transaction() {
            own.roster.cancel();
        }
        let counters = self.hardware.pmu.capabilities.counters;
        let closed = self.transactions.counters();
        let (reach, room) = own.roster.reach(counters, &Limits::NONE.closing(closed));
        if reach.is_empty() || !cx.may_offer() {
            return;
        }
        let over = cx.is_interval_end();
        let context = cx.context(event);
        let generation = context.version().generation();
        if !over && event.data().left() == (reach, generation) {
            return;
        }
        let wants = own.turns.known(&context).map(|known| known.wants);
        let mut active = Wants::NOTHING;
        match &wants {
            Some(wants) if !wants.could_use(&active, reach, room) => return,
            // To find out takes longer than the rest of the interval is worth.
            None if reach.gp().is_empty() => return,
            Some(wants) => {
                context.for_each_active(|group| add(&mut active, group));
                if !wants.could_use(&active, reach, room) {
                    return;
                }
            }
            None => {}
        }
        let Some(id) = EventId::from_index(0) else {
            return;
        };
        let behind = cx.behind(event).map(|group| Candidate {
            group,
            cpu: cpu.id,
            id,
        });
        let limits = self.limits_now(cx, cpu);
        let wants = wants.as_ref().map(|wants| (wants, active));
        let found = look_ahead(&mut own.roster, counters, &limits, wants, behind);
        for candidate in found.groups() {
            cx.offer(candidate.group, event);
        }
        if found.refusal.is_some() {
            self.wait_for_sibling(cx, cpu, own);
        }
        // What was wished for groups that are not offered yet: they say so when it is their turn.
        let _ = own.roster.take_wish();
        // A group that is enabled meanwhile is not seen from here before the interval is over, so
        // that is for many groups only.
        let left = match found.looked_at > LONG_WALK {
            true => found.reach,
            false => CounterMask::EMPTY,
        };
        event.data().set_left(left, generation);
    }
}
