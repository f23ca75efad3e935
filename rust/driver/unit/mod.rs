// SPDX-License-Identifier: GPL-2.0

//! Units: features with state of their own, per PMU, per core or per CPU.
//!
//! A unit is a type that implements [`Unit`] and has a line in the list below. The list gives the
//! unit its fields in the state of a PMU ([`Units`]), of each CPU ([`UnitsOwn`], [`UnitsPmiState`])
//! and of tasks ([`TaskData`]), and calls its hooks. All calls are static.
//!
//! # What a unit may touch
//!
//! A hook gets the unit's own state, and the parts of this CPU's state that all units need: the
//! hardware, the events that a PMI handles, and, in some callbacks, the plan and the register
//! shadow. A unit does not access another unit's state. A unit with data that several units need
//! offers it to all: `lbr` offers [`InPmi`], the branches that the PMI has read, which any sample
//! may contain. State that CPUs share is in the unit itself, behind a lock ([`northbridge`]) or as
//! an atomic ([`tfa`]).
//!
//! # Order
//!
//! Hooks are called in the order of the list. Each hook has its place among the steps of the
//! counters:
//!
//! ```text
//!  the PMU is disabled    counters stop ─► stop
//!  it is enabled          take ─► counters are programmed ─► prepare ─► start ─► counters run ─► release
//!  a PMI                  counters stop ─► pmi_early ─► branches are read ─► acknowledged ─► pmi
//!                         ─► overflows are served ─► go_on ─► counters run    (AMD: pmi alone)
//!  a reset                counters are cleared, LVTPC is armed ─► reset ─► events start again
//!  the end                counters are cleared ─► restore ─► LVTPC and GLOBAL_CTRL are given back
//! ```
//!
//! The hardware requires this order:
//!
//! - TSX transactions and events must not use counter 3 at the same time: `tfa` takes the counter
//!   before its registers are written, and gives it back when its event select is 0. So `take`
//!   comes before the counters are programmed, `release` after, and in `reset` and `restore`
//!   counters are cleared first.
//! - An overflow of a counter with PEBS writes a record to the buffer. So PEBS_ENABLE and the
//!   threshold are written while counters are stopped (`prepare`), and PEBS_ENABLE is 0 before
//!   GLOBAL_CTRL is given back.
//! - Branches are recorded only while counters count; otherwise this driver's own branches would be
//!   in the stacks. So `start` is the last step before counters run, and `stop` the first step
//!   after they stop. From version 4 on, acknowledging a PMI restarts the recording, so branches
//!   are read before.
//! - A snapshot of the branches, which a BPF program may take in an NMI, restarts the recording as
//!   long as `lbr` publishes that branches are recorded. So `lbr` withdraws this before it stops
//!   the recording.
//! - Another CPU may write a counter of the northbridge as soon as it is released. So only
//!   `release` and `restore`, after the counters are programmed or cleared, release it.
//!
//! The hardware requires no order among the units.

pub(super) mod hooks;
pub(super) mod lbr;
pub(super) mod northbridge;
pub(super) mod pebs;
pub(super) mod tfa;

use super::{
    explain::refusals::Refusals,
    hw::Hardware,
    Driver, //
};
use crate::{
    logic::{
        regs::counter::CounterMask,
        sched::cpu_schedule::CpuSchedule, //
    },
    perf::{
        EventId,
        OnCpu,
        PmuDisabled, //
    },
    x86::builtin::Builtin, //
};
use hooks::{
    PlanAndShadow,
    Platform,
    Pmi,
    Site,
    Unit, //
};
use kernel::{
    cpu::CpuId,
    fmt,
    prelude::*, //
};
use lbr::InPmi;

/// Defines the states of units, and calls their hooks in the order of the list.
macro_rules! units {
    ($($(#[$doc:meta])* $name:ident: $unit:ty,)*) => {
        /// The units of a PMU. [`None`] for units that the machine does not have.
        pub(super) struct Units {
            $($(#[$doc])* pub(super) $name: Option<$unit>,)*
        }

        /// The state of the units of a CPU that callbacks use, and the PMI does not.
        #[derive(Default)]
        pub(super) struct UnitsOwn {
            $(pub(super) $name: <$unit as Unit>::Own,)*
        }

        /// The state of the units of a CPU that callbacks share with the PMI.
        pub(super) struct UnitsPmiState {
            $(pub(super) $name: <$unit as Unit>::PmiState,)*
        }

        /// The units' data of a task.
        #[derive(Zeroable)]
        pub(crate) struct TaskData {
            $($name: <$unit as Unit>::TaskData,)*
        }

        impl Units {
            /// See [`Unit::FILE`].
            pub(super) const FILES: &[Option<&CStr>] = &[$(<$unit as Unit>::FILE),*];

            /// Looks for the units of a machine. See [`Unit::find`].
            pub(super) fn find<'a>(mut platform: Platform<'a>) -> impl Init<Self, Error> + use<'a> {
                try_init!(Self {
                    $($name: Unit::find(&mut platform)?,)*
                }? Error)
            }

            /// See [`Unit::TASK_DATA`].
            pub(super) fn task_data_name(&self) -> Option<&'static CStr> {
                $(if let (Some(_), Some(name)) = (&self.$name, <$unit as Unit>::TASK_DATA) {
                    return Some(name);
                })*
                None
            }

            /// See [`Unit::announce`].
            pub(super) fn announce(&self, hardware: &Hardware) {
                $(if let Some(unit) = &self.$name {
                    unit.announce(hardware);
                })*
            }

            /// See [`Unit::reset`].
            pub(super) fn reset(
                &self,
                own: &mut UnitsOwn,
                pmi_state: &UnitsPmiState,
                site: Site<'_>,
                mut counters: PlanAndShadow<'_>,
            ) -> bool {
                let mut changed = false;
                $(if let Some(unit) = &self.$name {
                    changed |= unit.reset(&mut own.$name, &pmi_state.$name, site, counters.lend());
                })*
                changed
            }

            /// See [`Unit::restore`].
            pub(super) fn restore(
                &self,
                own: &mut UnitsOwn,
                pmi_state: &UnitsPmiState,
                site: Site<'_>,
            ) {
                $(if let Some(unit) = &self.$name {
                    unit.restore(&mut own.$name, &pmi_state.$name, site);
                })*
            }

            /// See [`Unit::stop`].
            #[inline(always)]
            pub(super) fn stop(&self, own: &mut UnitsOwn, site: Site<'_>) {
                $(if let Some(unit) = &self.$name {
                    unit.stop(&mut own.$name, site);
                })*
            }

            /// See [`Unit::take`].
            #[inline(always)]
            pub(super) fn take(
                &self,
                own: &mut UnitsOwn,
                site: Site<'_>,
                mut counters: PlanAndShadow<'_>,
            ) {
                $(if let Some(unit) = &self.$name {
                    unit.take(&mut own.$name, site, counters.lend());
                })*
            }

            /// See [`Unit::prepare`].
            #[inline(always)]
            pub(super) fn prepare(
                &self,
                own: &mut UnitsOwn,
                pmi_state: &UnitsPmiState,
                cx: &PmuDisabled<'_, Driver>,
                site: Site<'_>,
                schedule: &CpuSchedule<EventId>,
                changed: bool,
            ) {
                $(if let Some(unit) = &self.$name {
                    unit.prepare(&mut own.$name, &pmi_state.$name, cx, site, schedule, changed);
                })*
            }

            /// See [`Unit::suspend`].
            #[inline(always)]
            pub(super) fn suspend(&self, pmi_state: &UnitsPmiState, site: Site<'_>) {
                $(if let Some(unit) = &self.$name {
                    unit.suspend(&pmi_state.$name, site);
                })*
            }

            /// See [`Unit::start`].
            #[inline(always)]
            pub(super) fn start(
                &self,
                own: &mut UnitsOwn,
                pmi_state: &UnitsPmiState,
                site: Site<'_>,
            ) {
                $(if let Some(unit) = &self.$name {
                    unit.start(&mut own.$name, &pmi_state.$name, site);
                })*
            }

            /// See [`Unit::release`].
            #[inline(always)]
            pub(super) fn release(
                &self,
                own: &mut UnitsOwn,
                site: Site<'_>,
                mut counters: PlanAndShadow<'_>,
            ) {
                $(if let Some(unit) = &self.$name {
                    unit.release(&mut own.$name, site, counters.lend());
                })*
            }

            /// See [`Unit::go_on`].
            #[inline(always)]
            pub(super) fn go_on(&self, pmi_state: &UnitsPmiState, site: Site<'_>) {
                $(if let Some(unit) = &self.$name {
                    unit.go_on(&pmi_state.$name, site);
                })*
            }

            /// See [`Unit::silent`].
            #[inline(always)]
            pub(super) fn silent(&self, pmi_state: &UnitsPmiState) -> CounterMask {
                let mut silent = CounterMask::EMPTY;
                $(if let Some(unit) = &self.$name {
                    silent = silent | unit.silent(&pmi_state.$name);
                })*
                silent
            }

            /// See [`Unit::pmi_early`].
            #[inline(always)]
            pub(super) fn pmi_early(
                &self,
                pmi_state: &UnitsPmiState,
                cx: &OnCpu<'_, Driver>,
                site: Site<'_>,
                pmi: &mut Pmi<'_>,
                want_branches: &mut CounterMask,
            ) {
                $(if let Some(unit) = &self.$name {
                    unit.pmi_early(&pmi_state.$name, cx, site, pmi, want_branches);
                })*
            }

            /// See [`Unit::pmi`].
            #[inline(always)]
            pub(super) fn pmi(
                &self,
                pmi_state: &UnitsPmiState,
                cx: &OnCpu<'_, Driver>,
                site: Site<'_>,
                pmi: Pmi<'_>,
                mut branches: Option<&mut InPmi<'_>>,
            ) {
                $(if let Some(unit) = &self.$name {
                    unit.pmi(&pmi_state.$name, cx, site, pmi, branches.as_deref_mut());
                })*
            }

            /// See [`Unit::switch`].
            #[inline(always)]
            pub(super) fn switch(
                &self,
                (own, pmi_state): (&mut UnitsOwn, &UnitsPmiState),
                cx: &PmuDisabled<'_, Driver>,
                site: Site<'_>,
                schedule: &CpuSchedule<EventId>,
                mut data: Option<&mut TaskData>,
                sched_in: bool,
            ) {
                $(if let Some(unit) = &self.$name {
                    let data = data.as_deref_mut().map(|data| &mut data.$name);
                    let state = (&mut own.$name, &pmi_state.$name);
                    unit.switch(state, cx, site, schedule, data, sched_in);
                })*
            }
        }

        impl Units {
            /// Writes the head of the file with this index among [`FILES`](Self::FILES).
            pub(super) fn write_header(file: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut files = 0..;
                $(if files.next() == Some(file) {
                    return <$unit as Unit>::write_header(f);
                })*
                Ok(())
            }

            /// Writes the file with this index among [`FILES`](Self::FILES). See [`Unit::write`].
            pub(super) fn write<'a>(
                &self,
                file: usize,
                cpus: impl Iterator<Item = &'a UnitsPmiState>,
                f: &mut fmt::Formatter<'_>,
            ) -> fmt::Result {
                let mut files = 0..;
                $(if files.next() == Some(file) {
                    return match &self.$name {
                        Some(unit) => unit.write(cpus.map(|cpu| &cpu.$name), f),
                        None => Ok(()),
                    };
                })*
                Ok(())
            }
        }

        impl UnitsPmiState {
            /// See [`Unit::pmi_state`].
            pub(super) fn new<'a>(
                cpu: CpuId,
                hardware: &'a Hardware,
                builtin: Option<&'a Builtin>,
            ) -> impl Init<Self, Error> + use<'a> {
                try_init!(Self {
                    $($name: <$unit as Unit>::pmi_state(cpu, hardware, builtin)?,)*
                }? Error)
            }
        }
    };
}

// The units' lines in the log are in this order too.
units! {
    /// Counter 3, if TSX transactions use it too.
    tfa: tfa::Tfa,
    /// The branch records, if events can sample them.
    lbr: lbr::Branches,
    /// PEBS, if events can be precise.
    pebs: pebs::Pebs,
    /// The counters of AMD's northbridge, if the CPUs of a node must agree on them.
    northbridge: northbridge::Northbridges,
    /// The last events that were refused, and why.
    refusals: Refusals,
}
