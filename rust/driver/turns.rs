// SPDX-License-Identifier: GPL-2.0

//! Whose turn it is: asks [`logic::turns`](crate::logic::turns) when the groups of a context do not
//! all fit, and lets the perf core offer those whose turn it is.
//!
//! The perf core puts a context's groups on a CPU one after the other. As long as all of them fit,
//! nothing is done here. When one does not, those behind it are to be offered as well, and take
//! what is left. With the next turn the context begins to take turns: before its first group is
//! placed, all of them are looked at ([`Driver::take_turns`]), and those whose turn it is not are
//! refused. That is so until all fit again.
//!
//! With `policy=mainline` nothing is done here at all: the perf core's order decides.

use super::{
    cpu::{Cpu, Own},
    event::EventData,
    sharing::{Plain, Refused},
    Driver,
};
use crate::{
    logic::{
        assign::Policy,
        turns::{Queue, Turn},
    },
    perf::{ContextId, Event, EventId, Scheduling, WaitingGroup},
};

/// What is known about the context whose events the perf core is putting on the CPU, until it
/// enables the PMU.
#[derive(Default)]
pub(super) struct Turns {
    /// The context that has been looked at, and whether it takes turns.
    looked_at: Option<(ContextId, bool)>,
    /// The context whose groups are all offered because one did not fit.
    passing: Option<ContextId>,
    /// Groups that have to wait for their turn.
    waiting: u32,
}

impl Turns {
    /// How many groups have to wait for their turn, as was decided since the PMU was disabled.
    pub(super) fn waiting(&self) -> u32 {
        self.waiting
    }
}

impl Driver {
    /// Whether it is the turn of `event`, which is being added.
    pub(super) fn is_turn_of(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut Own,
        (id, event): (EventId, &Event<Self>),
    ) -> bool {
        if self.hardware.policy != Policy::Rpmu || cx.is_of_pinned_group(event) {
            return true;
        }
        let context = cx.context(event);
        let takes_turns = match own.turns.looked_at {
            Some((looked_at, takes_turns)) if looked_at == context => takes_turns,
            _ => {
                let takes_turns = self.take_turns(cx, cpu, own, (id, event));
                own.turns.looked_at = Some((context, takes_turns));
                takes_turns
            }
        };
        !takes_turns || event.data().turn() == Turn::Counts
    }

    /// Has groups behind that of `event`, which does not fit, offered too.
    pub(super) fn let_others_pass(
        &self,
        cx: &Scheduling<'_, Self>,
        own: &mut Own,
        event: &Event<Self>,
    ) {
        let context = cx.context(event);
        let takes_turns = own.turns.looked_at == Some((context, true));
        if self.hardware.policy != Policy::Rpmu || takes_turns || own.turns.passing == Some(context)
        {
            return;
        }
        own.turns.passing = Some(context);
        cx.for_each_group(event, |group| give(group, Turn::Undecided));
    }

    /// Decides which groups of the event's context are to count, none of which does right now.
    /// Returns whether some have to wait; if not, or if nothing had to be decided, each takes what
    /// it finds.
    fn take_turns(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut Own,
        (id, event): (EventId, &Event<Self>),
    ) -> bool {
        let over = cx.is_turn_over() || self.begins_anew(cx, cpu);
        let takes_turns = match event.data().turn() {
            Turn::Counts | Turn::Waits => true,
            Turn::Free | Turn::Undecided => over && someone_waits(cx, event),
        };
        if !takes_turns || cx.has_cgroups(event) {
            return false;
        }

        let mut least = u64::MAX;
        cx.for_each_group(event, |group| {
            with_first(group, |data| {
                let mut had = data.had();
                if over {
                    had.account(group.time_running());
                    data.set_had(had);
                }
                least = least.min(had.weight().unwrap_or(u64::MAX));
            });
        });
        if least == u64::MAX {
            least = 0;
        }
        let mut queue = Queue::new();
        let mut groups = 0;
        cx.for_each_group(event, |group| {
            with_first(group, |data| {
                let mut had = data.had();
                if over && had.weight().is_none() {
                    had.join(least);
                    data.set_had(had);
                }
                let turn = if over { Turn::Waits } else { data.turn() };
                queue.push(turn, had.weight().unwrap_or(least), group);
                groups += 1;
            });
            give(group, Turn::Waits);
        });

        let mut waits = groups > queue.len();
        let mut counting = 0;
        let mut refused = Refused::default();
        let planned = self.plan(cx, cpu, own, Plain::No, None, |roster, limits| {
            let mut verdict = Ok(());
            let mut trial = roster.trial();
            let (mut counts, mut alone) = (false, false);
            for group in queue.iter() {
                if alone || (counts && group.is_exclusive()) {
                    waits = true;
                    continue;
                }
                group.for_each_member(|member| {
                    let data = member.data();
                    trial.push(id, data.demand, data.last_counter(cpu.id));
                });
                match trial.fits(limits) {
                    Ok(()) => {
                        give(group, Turn::Counts);
                        counting += 1;
                        (counts, alone) = (true, group.is_exclusive());
                    }
                    Err(refusal) => {
                        waits = true;
                        refused.push(group, trial.take_wish());
                        if refusal.is_for_the_moment() {
                            verdict = Err(refusal);
                        }
                    }
                }
            }
            verdict
        });
        // Who waits for the core's other thread has been noted down.
        let _ = planned;
        Self::note_waiting(own, &refused);
        // CAST: no more than there are events on a machine.
        let waiting = groups.saturating_sub(counting) as u32;
        own.turns.waiting = own.turns.waiting.saturating_add(waiting);
        if !waits {
            for group in queue.iter() {
                with_first(group, |data| {
                    let mut had = data.had();
                    had.forget();
                    data.set_had(had);
                });
                give(group, Turn::Free);
            }
        }
        waits
    }
}

/// Whether a group of the event's context has found no place, or may have to wait for one: of an
/// exclusive group the perf core sees by itself that it does.
fn someone_waits(cx: &Scheduling<'_, Driver>, event: &Event<Driver>) -> bool {
    let mut waits = false;
    cx.for_each_group(event, |group| {
        with_first(group, |data| waits |= data.turn() != Turn::Free);
        waits |= group.is_exclusive();
    });
    waits
}

/// Calls `f` with what is kept with the group's first event.
fn with_first(group: WaitingGroup<'_, Driver>, f: impl FnOnce(&EventData)) {
    let mut f = Some(f);
    group.for_each_member(|member| {
        if let Some(f) = f.take() {
            f(member.data());
        }
    });
}

/// Says whether it is the group's turn, to its events and to the perf core.
fn give(group: WaitingGroup<'_, Driver>, turn: Turn) {
    group.for_each_member(|member| member.data().set_turn(turn));
    group.offer_always(turn != Turn::Waits);
}
