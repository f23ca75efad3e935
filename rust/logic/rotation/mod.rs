// SPDX-License-Identifier: GPL-2.0

//! Rotation: the order in which groups get counters when not all fit.
//!
//! The perf core offers the groups of a context to the PMU in the order of a tree. At the end of
//! each interval, it moves one group that has counted to the end of the tree
//! (`perf_rotate_context()`, `kernel/events/core.c`). A group that does not fit keeps all groups
//! behind it waiting (`group_can_go_on()`, `core.c`). So a group's time on the counters depends on
//! its neighbours.
//!
//! Here the order of the tree is by runtime: at the end of an interval, each group that has counted
//! goes behind the groups with a smaller runtime ([`place_after_interval`]). The cost grows with
//! the number of groups that have counted, not with the number that wait. When a group does not
//! fit, and counters are left that another group could use ([`Vacancy::is_wanted`]), the groups
//! behind it are tried ([`look_ahead`]). Groups that fit go in front of it, so that the perf core
//! finds them by itself the next time.
//!
//! A group is charged for the time that it has counted ([`turns`]), which may be only a part of an
//! interval: tasks and control groups are switched, and where the threads of a core contend, they
//! make each other schedule again. A group that such a reschedule has taken off its counters is
//! charged while it waits ([`owes_turns`]), if it is near the front of the order: otherwise it
//! would stay in front for ever.
//!
//! Groups that fit, but may not pass ([`Waiting::may_pass`]), go in front of the refused one at the
//! end of an interval, and all groups are offered again. So no group that fits starves: each group
//! in front of it either counts and falls behind, or does not fit, or contends for none of its
//! counters. Groups that fit behind an exclusive group are found when the first group is placed
//! ([`Offered::lets_others_join`]). Where each group is one event, the number of counters in use is
//! the greatest possible, because sets of events that fit on counters are a matroid.
//!
//! # Corrupting events
//!
//! With an event that corrupts the sibling thread's counts, a thread may use only half of its
//! counters. Groups with such events count together ([`Offered::waits_for_its_kind`]), and are
//! charged for the counters that stay unused because of them ([`Wants::charge`]). So they count
//! less often, and all groups together count more. Groups that lag far behind do not wait for their
//! kind.
//!
//! # Facts and plans
//!
//! The driver passes facts about the perf core's groups, as values and iterators, and carries out
//! the plan: a place in the order for each group that has counted, and the groups that go first
//! ([`look_ahead`]). Costly facts have a step of their own: if no group could use the remaining
//! counters or ride on others, the driver neither looks at the groups nor locks the core for its
//! limits.
//!
//! # Turns that end by overflow
//!
//! The cost of ending turns by overflow is limited to a part of the time ([`may_end_turn`]).
//!
//! Context: any; this module works on values only.

mod brought_forward;
mod context_wants;
mod early_end;
mod look_ahead;
mod offer;
mod places;
mod queue;
mod wants;

pub use {
    brought_forward::BroughtForward,
    context_wants::ContextWants,
    early_end::{
        may_end_turn,
        MAX_PERCENT, //
    },
    look_ahead::{
        look_ahead,
        Search,
        Searched,
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
