// SPDX-License-Identifier: GPL-2.0

//! Rotation: which groups go first where they outnumber the counters.
//!
//! The perf core offers the groups of a context to the PMU in the order of a tree, and moves one of
//! those that have counted to its end with each interval (`perf_rotate_context()`,
//! `kernel/events/core.c`). So a group that does not fit keeps all behind it waiting
//! (`group_can_go_on()`, `core.c`), and what a group gets depends on its neighbours.
//!
//! Here the order of the tree is by runtime: at the end of an interval each group that has counted
//! goes behind those with a smaller runtime ([`place_after_interval`]). That takes time for the
//! groups that have counted, not for those that wait. When a group does not fit, and counters are
//! left that another could use ([`Vacancy::is_wanted`]), the groups behind it are tried once
//! ([`look_ahead`]). Those that fit go in front of it, so that the perf core finds them by itself
//! the next time.
//!
//! A group is charged for the time that it has counted ([`turns`]). It may count for the last
//! moment of an interval only: tasks and control groups are switched, and where the threads of a
//! core contend, they make each other schedule again. Groups that had to leave their counters
//! because of that are charged while they wait ([`owes_turns`]), if they are among the first: they
//! would come first for ever.
//!
//! Groups that may not pass ([`Waiting::may_pass`]) and fit go in front of the refused one at the
//! end of an interval, and all groups are offered again. So no group starves that fits: those in
//! front of it in the order by runtime fall behind, or do not fit, or contend for nothing. Groups
//! that fit behind an exclusive one are found when the first group is placed
//! ([`Offered::lets_others_join`]). Where each group is one event, the number of counters in use is
//! the greatest possible, because sets of events that fit on counters are a matroid.
//!
//! # Corrupting events
//!
//! With an event that corrupts the sibling thread's counts, a thread may use half of its counters.
//! Groups with such events count together ([`Offered::waits_for_its_kind`]), and are charged for
//! the counters that stay unused because of them ([`Wants::charge`]): they count less often, and
//! all groups together more. Groups that lag far behind do not wait.
//!
//! # Facts and plans
//!
//! The driver passes facts about the perf core's groups, as values and iterators, and carries out
//! the plan: a place in the order for each group that has counted, and the groups that go first
//! ([`Found`]). Costly facts have a step of their own: where no group could use the counters that
//! are left, the driver neither looks at the groups nor locks the core for its limits.
//!
//! # Turns that end by overflow
//!
//! They may take a part of the time only ([`may_end_turn`]).
//!
//! Context: any; nothing but values.

mod context_wants;
mod early_end;
mod look_ahead;
mod offer;
mod places;
mod queue;
mod wants;

pub use {
    context_wants::ContextWants,
    early_end::{
        may_end_turn,
        MAX_PERCENT, //
    },
    look_ahead::{
        look_ahead,
        Found,
        Search,
        Waiting, //
    },
    offer::{
        Offered,
        Vacancy, //
    },
    places::Places,
    queue::{
        lags_far_behind,
        owes_turns,
        place_after_interval,
        requeue,
        turns,
        Counted,
        MOST_DISPLACED,
        MOST_LOOKED_AT, //
    },
    wants::{
        Beside,
        GroupWants,
        OnCounter,
        Wants,
        TURN, //
    },
};
