// SPDX-License-Identifier: GPL-2.0

//! The hooks of a unit, and the parts of the driver that a unit may use besides its own state.
//!
//! A unit imports this file and the [hardware](crate::driver::hw). It imports neither the state of
//! a CPU nor the list of units, since these import the unit. It names [`Driver`] as the type
//! parameter of events and callbacks.

use super::lbr::records::InPmi;
use crate::{
    driver::{
        hw::Hardware,
        pmi::state::PmiState,
        Driver, //
    },
    logic::{
        regs::{
            counter::CounterMask,
            global::Status,
            shadow::Shadow, //
        },
        sched::cpu_schedule::CpuSchedule, //
    },
    perf::{
        EventId,
        OnCpu,
        PmuDisabled, //
    },
    x86::{
        builtin::Builtin,
        nmi::NmiContext, //
    },
};
use kernel::{
    cpu::CpuId,
    fmt,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// The hardware and the built-in driver, in which units [look](Unit::find) for what they need.
pub(in crate::driver) struct Platform<'a> {
    /// The hardware. The unit clears its capability here if it cannot be used.
    pub(in crate::driver) hardware: &'a mut Hardware,
    /// The built-in driver, if it has initialised.
    pub(in crate::driver) builtin: Option<&'a Builtin>,
}

/// The units' view of this CPU.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Site<'a> {
    pub(in crate::driver) id: CpuId,
    pub(in crate::driver) hardware: &'a Hardware,
    /// The counters that a PMI handles.
    pub(in crate::driver) pmi_state: &'a PmiState,
    pub(in crate::driver) irqs: &'a LocalInterruptDisabled,
}

/// The counters of this CPU: the plan, and the values of their registers. Not available in a PMI.
pub(in crate::driver) struct PlanAndShadow<'a> {
    pub(in crate::driver) schedule: &'a CpuSchedule<EventId>,
    pub(in crate::driver) shadow: &'a mut Shadow,
}

impl PlanAndShadow<'_> {
    /// Lends the counters to one unit after the other.
    #[inline(always)]
    pub(in crate::driver) fn lend(&mut self) -> PlanAndShadow<'_> {
        PlanAndShadow {
            schedule: self.schedule,
            shadow: self.shadow,
        }
    }
}

/// A PMI. The counters are stopped, except on AMD's PMUs before PerfMonV2.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Pmi<'a> {
    pub(in crate::driver) nmi: &'a NmiContext,
    /// The sources of the PMI, as in Intel's status register; none on AMD's PMUs.
    pub(in crate::driver) status: Status,
}

/// A feature with state of its own. [`units!`](super) lists them.
///
/// Each hook gets the unit's own state. The default hooks do nothing and cost nothing, since all
/// calls are static.
pub(in crate::driver) trait Unit: Sized {
    /// The state of a CPU that callbacks alone use.
    type Own: Default;
    /// The state of a CPU that callbacks share with the PMI.
    type PmiState;
    /// The data of a task that has an event with [`Attachment::TaskData`](crate::perf::Attachment).
    type TaskData: Zeroable;

    /// The name under which the kernel allocates [`TaskData`](Self::TaskData), if the unit has any.
    const TASK_DATA: Option<&'static CStr> = None;

    /// The name of the unit's file in debugfs, if it has one.
    const FILE: Option<&'static CStr> = None;

    /// Looks for the unit's hardware. [`None`] if the machine does not have it, or if it cannot be
    /// used, which is logged.
    ///
    /// Fails with `ENOMEM`. Process context, at load; changes no register.
    fn find(platform: &mut Platform<'_>) -> Result<Option<Self>>;

    /// Creates the state that callbacks on `cpu` share with the PMI. Called even if the machine
    /// does not have the unit.
    ///
    /// Fails with `ENOMEM`. Process context, at load.
    fn pmi_state(
        cpu: CpuId,
        hardware: &Hardware,
        builtin: Option<&Builtin>,
    ) -> Result<Self::PmiState>;

    /// Logs the features that the unit adds to the PMU. Process context, at load.
    fn announce(&self, _hardware: &Hardware) {}

    /// Brings the unit's registers of this CPU into a known state. They may hold anything, because
    /// another driver has used them, the CPU was off, the machine was suspended, or overflows could
    /// not be acknowledged. Returns whether the unit must be [prepared](Self::prepare) again for
    /// the events of the plan.
    ///
    /// The counters have been reset. No event counts, but the events of the plan will.
    #[inline(always)]
    fn reset(
        &self,
        _own: &mut Self::Own,
        _pmi_state: &Self::PmiState,
        _site: Site<'_>,
        _counters: PlanAndShadow<'_>,
    ) -> bool {
        false
    }

    /// Ends all use of this CPU: it is going offline, the driver is being unloaded, or the machine
    /// shuts down. Leaves the unit's registers as the next driver expects them.
    ///
    /// All counters are off, and the plan is empty. PMIs are ignored.
    #[inline(always)]
    fn restore(&self, _own: &mut Self::Own, _pmi_state: &Self::PmiState, _site: Site<'_>) {}

    /// Stops the part of the unit that runs with the counters. The counters have been stopped.
    #[inline(always)]
    fn stop(&self, _own: &mut Self::Own, _site: Site<'_>) {}

    /// Takes the resources that the changed plan needs. Its counters are programmed next.
    #[inline(always)]
    fn take(&self, _own: &mut Self::Own, _site: Site<'_>, _counters: PlanAndShadow<'_>) {}

    /// Brings the unit in line with the started events, and with the plan if that has `changed`.
    /// Counters are programmed and do not run.
    ///
    /// Not called if no event was started or stopped and the plan is the same. So
    /// [`start`](Self::start) must restore all that [`stop`](Self::stop) has undone.
    #[inline(always)]
    fn prepare(
        &self,
        _own: &mut Self::Own,
        _pmi_state: &Self::PmiState,
        _cx: &PmuDisabled<'_, Driver>,
        _site: Site<'_>,
        _schedule: &CpuSchedule<EventId>,
        _changed: bool,
    ) {
    }

    /// Disconnects the unit from the counters, which are about to be used for other purposes, until
    /// it is [prepared](Self::prepare) again. The PMU is disabled.
    #[inline(always)]
    fn suspend(&self, _pmi_state: &Self::PmiState, _site: Site<'_>) {}

    /// Starts the part of the unit that runs with the counters. The counters run next. A PMI may
    /// already do the same ([`go_on`](Self::go_on)).
    #[inline(always)]
    fn start(&self, _own: &mut Self::Own, _pmi_state: &Self::PmiState, _site: Site<'_>) {}

    /// Gives back the resources that the changed plan does not use. Its counters run.
    #[inline(always)]
    fn release(&self, _own: &mut Self::Own, _site: Site<'_>, _counters: PlanAndShadow<'_>) {}

    /// Restarts the part of the unit that runs with the counters: at the end of a PMI, which has
    /// stopped it, and after counters were stopped to read an event. Counters run next. Not called
    /// on AMD's PMUs.
    #[inline(always)]
    fn go_on(&self, _pmi_state: &Self::PmiState, _site: Site<'_>) {}

    /// Returns the counters whose overflows raise no PMI, since the unit handles them. Any context.
    /// Not called on AMD's PMUs.
    #[inline(always)]
    fn silent(&self, _pmi_state: &Self::PmiState) -> CounterMask {
        CounterMask::EMPTY
    }

    /// Handles the part of a PMI that must come before branch records are read and the PMI is
    /// acknowledged, and removes it from the status. Adds the counters whose events want the
    /// branches. Not called on AMD's PMUs.
    #[inline(always)]
    fn pmi_early(
        &self,
        _pmi_state: &Self::PmiState,
        _cx: &OnCpu<'_, Driver>,
        _site: Site<'_>,
        _pmi: &mut Pmi<'_>,
        _want_branches: &mut CounterMask,
    ) {
    }

    /// Handles the unit's part of a PMI, which has been acknowledged, before the overflows of
    /// counters. Called again for further interrupts that are raised meanwhile.
    #[inline(always)]
    fn pmi(
        &self,
        _pmi_state: &Self::PmiState,
        _cx: &OnCpu<'_, Driver>,
        _site: Site<'_>,
        _pmi: Pmi<'_>,
        _branches: Option<&mut InPmi<'_>>,
    ) {
    }

    /// Follows a switch of tasks: the task with this `data` is switched in if `sched_in` is set,
    /// and switched out otherwise.
    #[inline(always)]
    fn switch(
        &self,
        _state: (&mut Self::Own, &Self::PmiState),
        _cx: &PmuDisabled<'_, Driver>,
        _site: Site<'_>,
        _schedule: &CpuSchedule<EventId>,
        _data: Option<&mut Self::TaskData>,
        _sched_in: bool,
    ) {
    }

    /// Writes the lines at the head of the unit's file. Process context.
    fn write_header(_f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    /// Writes the unit's file, from the unit's state and its PMI states on `cpus`. Process
    /// context.
    fn write<'a>(
        &self,
        _cpus: impl Iterator<Item = &'a Self::PmiState>,
        _f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result
    where
        Self::PmiState: 'a,
    {
        Ok(())
    }
}
