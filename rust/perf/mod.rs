// SPDX-License-Identifier: GPL-2.0

//! Performance monitoring units.
//!
//! A *PMU* (`struct pmu`) is a set of counters that the perf core lends to users. An *event*
//! (`struct perf_event`) is a user's request to count something. The perf core decides which events
//! should count on a CPU now; the PMU's driver decides whether they fit, and programs the counters.
//!
//! C header: [`include/linux/perf_event.h`](srctree/include/linux/perf_event.h)
//!
//! # Life of an event
//!
//! ```text
//!            event_init                  add                     start
//!  open() ────────────► Event ────────────────────► on a CPU ◄────────────► stopped
//!                         │  ◄────────────────────  has an EventId  stop
//!                         ▼               del
//!                   EventData dropped
//! ```
//!
//! A counter that overflows raises an interrupt: the driver hands a sample to the perf core
//! ([`Event::overflow`]), which may stop the event during this call.
//!
//! Events are put on a CPU and removed from it while the PMU is disabled there ([`PmuDisabled`]).
//! The driver's changes take effect when the PMU is enabled again ([`Operations::enable`]). A group
//! of events is added in a txn: [`begin_txn`], `add` for each, [`commit_txn`], which finds out
//! whether all of them fit together; if not, `del` for each and [`cancel_txn`].
//!
//! # Contexts
//!
//! The callbacks in this table, except [`event_init`], run on the CPU that they concern with
//! interrupts off, which [`OnCpu`] proves. Most of them run with the PMU disabled, too, which
//! [`PmuDisabled`] proves. Callbacks that get only [`OnCpu`], except [`disable`], may be called in
//! NMI context. `add` and [`commit_txn`] also run with the locks of the CPU's contexts held, which
//! [`Scheduling`] proves. The other methods of [`Operations`] state their contexts.
//!
//! | Callback | Proof |
//! |---|---|
//! | [`event_init`] | [`NewEvent`]: process context |
//! | `add`, [`commit_txn`] | [`Scheduling`] |
//! | `del`, `start`, `stop`, [`enable`](Operations::enable), [`begin_txn`], [`cancel_txn`], [`sched_task`](Operations::sched_task) | [`PmuDisabled`] |
//! | [`disable`], [`read`](Operations::read), [`start_in_nmi`](Operations::start_in_nmi), [`stop_in_nmi`](Operations::stop_in_nmi) | [`OnCpu`] |
//!
//! # Layers on top
//!
//! A layer that knows more of the perf core can replace callbacks by functions of its own
//! ([`Callbacks`], [`Pmu::with_callbacks`]). For such a layer, the types give access to the
//! kernel's structures (`as_raw`, `from_raw`).
//!
//! [`begin_txn`]: Operations::begin_txn
//! [`cancel_txn`]: Operations::cancel_txn
//! [`commit_txn`]: Operations::commit_txn
//! [`disable`]: Operations::disable
//! [`event_init`]: Operations::event_init

mod attr;
mod callbacks;
mod event;
mod pmu;
mod registration;
mod sample;
mod sample_type;
mod symbols;
mod sysfs;
mod table;
mod task_data;

pub use attr::Attr;
pub use callbacks::Callbacks;
pub use event::{
    for_each_member,
    space_of,
    Event,
    NewEvent,
    Place,
    Placed, //
};
pub use pmu::{
    Attachment,
    OnCpu,
    Operations,
    Pmu,
    PmuDisabled,
    Scheduling, //
};
pub use registration::Registration;
pub use sample::{
    bind_output,
    BranchStack,
    Sample,
    Stopwatch,
    Weight, //
};
pub use symbols::{
    bind_sampling,
    bind_sched_task, //
};
pub use sysfs::{
    Group,
    Groups,
    Setting, //
};
pub use table::{
    EventId,
    MAX_EVENTS, //
};
pub use task_data::TaskDataCache;

/// Types of events: `perf_event_attr.type`, and the type that a PMU is registered for.
pub mod event_type {
    use crate::bindings;

    /// Event codes of the CPU itself. On x86 the type of the core PMU.
    pub const RAW: u32 = bindings::perf_type_id_PERF_TYPE_RAW;
}

/// Checks that the current task may observe all tasks of a CPU (`perf_allow_cpu()`).
///
/// Fails with `EACCES` if `perf_event_paranoid` and the task's capabilities forbid it, or with the
/// error of a security module. Process context.
pub fn allow_cpu() -> kernel::error::Result {
    // SAFETY: The function takes no arguments and examines the current task. It may sleep; only
    // `event_init` callbacks call this, which run in process context.
    kernel::error::to_result(unsafe { crate::bindings::perf_allow_cpu() })
}
