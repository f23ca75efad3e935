// SPDX-License-Identifier: GPL-2.0

//! Branch stacks: the branch records of each CPU (LBR), for the events that sample them.
//!
//! | State | Accessed by |
//! |---|---|
//! | [`Branches`] | all; constant |
//! | [`LbrOwn`] | callbacks on the CPU, not the PMI |
//! | [`LbrPmiState::mode`], [`LbrPmiState::select`] | callbacks and the PMI on the CPU, as atomics |
//! | [`LbrPmiState::sampled`] | callbacks and the PMI on the CPU, one at a time |
//! | [`LbrPmiState::mirror`] | callbacks on the CPU |
//! | [`TaskData`] | `sched_task` on the CPU of the task |
//!
//! Branches are recorded while counters run, unless a guest of KVM has the records: the guest
//! records its own branches when it runs. A PMI finds the records [frozen](Mode::freezes), except
//! for a call stack, and on those of AMD's processors that do not support this. It reads them once,
//! if one of the events that it serves wants them.

pub(super) mod records;

use super::hooks::{
    PlanAndShadow,
    Platform,
    Site,
    Unit, //
};
use crate::{
    driver::{
        hw::Hardware,
        pmi::state::PmiState,
        Driver, //
    },
    kern::percpu::CpuCell,
    logic::{
        regs::counter::CounterMask,
        sample::lbr::{
            self,
            state::State,
            Kinds,
            Request, //
        },
        sched::cpu_schedule::CpuSchedule, //
    },
    perf::{
        EventId,
        OnCpu,
        PmuDisabled, //
    },
    x86::builtin::{
        BranchMirror,
        Builtin, //
    },
};
use core::sync::atomic::{
    AtomicU32,
    AtomicU8,
    Ordering::Relaxed, //
};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};
use records::{
    new_sampled,
    Mode,
    Sampled, //
};
pub(in crate::driver) use records::{
    Branches,
    InPmi,
    TaskData, //
};

/// The state of a CPU's branch records that callbacks share with the PMI.
pub(in crate::driver) struct LbrPmiState {
    /// The way in which branches are recorded while counters run, a [`Mode`].
    mode: AtomicU8,
    /// The branches that a PMI has read, or of a PEBS record. [`None`] if the machine has no
    /// records.
    sampled: CpuCell<Option<KBox<Sampled>>>,
    /// The value of LBR_SELECT or LBR_CTL while branches are recorded.
    select: AtomicU32,
    /// Publishes the recording of branches. [`None`] if the built-in driver, whose data others
    /// read, has not initialised.
    mirror: Option<BranchMirror>,
}

impl LbrPmiState {
    /// Publishes the recording of branches: the value of LBR_SELECT, and a set of the kernel's
    /// kinds of branches; [`None`] if branches are not recorded. Must be called before the
    /// recording changes.
    fn publish(&self, recorded: Option<(u32, u32)>, irqs: &LocalInterruptDisabled) {
        if let Some(mirror) = &self.mirror {
            mirror.set(recorded, irqs);
        }
    }

    fn mode(&self) -> Mode {
        Mode(self.mode.load(Relaxed))
    }

    /// Returns whether branches are recorded while counters run.
    #[inline]
    pub(in crate::driver) fn is_used(&self) -> bool {
        self.mode() != Mode::OFF
    }
}

/// The state of a CPU's branch records that callbacks alone use.
#[derive(Default)]
pub(in crate::driver) struct LbrOwn {
    state: State,
    /// Set from [`start`](Unit::start) to the next [`stop`](Unit::stop). A PMI does not change it.
    running: bool,
}

impl Branches {
    /// Reads the branch records in a PMI, if an event on one of the counters that have `overflowed`
    /// wants them. Must be called before the PMI is acknowledged, since that may restart the
    /// recording.
    #[inline]
    pub(in crate::driver) fn read_in_pmi<'a>(
        &'a self,
        pmi_state: &'a LbrPmiState,
        cx: &'a OnCpu<'_, Driver>,
        pmi: &PmiState,
        overflowed: CounterMask,
    ) -> Option<InPmi<'a>> {
        match pmi_state.is_used() {
            true => self.read_used(pmi_state, cx, pmi, overflowed),
            false => None,
        }
    }

    #[inline(never)]
    fn read_used<'a>(
        &'a self,
        pmi_state: &'a LbrPmiState,
        cx: &'a OnCpu<'_, Driver>,
        pmi: &PmiState,
        overflowed: CounterMask,
    ) -> Option<InPmi<'a>> {
        let wants = |counter| {
            let event = pmi.active_event(counter).and_then(|id| cx.event(id));
            event.is_some_and(|event| event.data().branches.is_some())
        };
        if !overflowed.into_iter().any(wants) {
            return None;
        }
        let mut sampled = pmi_state.sampled.borrow(cx.irqs())?;
        self.read(sampled.as_mut()?, pmi_state.mode(), cx.irqs());
        Some(InPmi {
            sampled,
            branches: self,
        })
    }

    /// Returns the buffer for branches from PEBS records. [`None`] if no branches are recorded, or
    /// while another part of the driver uses the buffer.
    pub(in crate::driver) fn recorded<'a>(
        &'a self,
        pmi_state: &'a LbrPmiState,
        irqs: &'a LocalInterruptDisabled,
    ) -> Option<InPmi<'a>> {
        if !pmi_state.is_used() {
            return None;
        }
        let sampled = pmi_state.sampled.borrow(irqs)?;
        Some(InPmi {
            sampled,
            branches: self,
        })
    }

    #[inline(never)]
    fn prepare_changed(
        &self,
        own: &mut LbrOwn,
        pmi_state: &LbrPmiState,
        cx: &PmuDisabled<'_, Driver>,
        schedule: &CpuSchedule<EventId>,
        wanted: Option<u32>,
    ) {
        let mode = match wanted {
            // A guest records branches when it runs.
            None | Some(lbr::GUEST) => Mode::OFF,
            Some(select) => {
                let requests = || {
                    let events = schedule.entries().filter_map(|it| cx.event(it.event));
                    events.filter_map(|event| event.data().branches)
                };
                let info = requests().any(|request: Request| !request.bare);
                let kinds = requests().fold(Kinds::NONE, |all, it| all.or(it.kinds));
                pmi_state.publish(Some((select, kinds.bits())), cx.irqs());
                pmi_state.select.store(select, Relaxed);
                Mode::of(self.lbr.is_call_stack(select), info)
            }
        };
        if mode == Mode::OFF {
            pmi_state.publish(None, cx.irqs());
            // A snapshot since the PMU was disabled may have restarted the recording.
            self.registers.stop(cx.irqs());
        }
        // After `publish()`: a snapshot in an NMI writes LBR_SELECT, too.
        let steps = own.state.prepare(wanted);
        self.carry_out(steps, None, cx.irqs());
        pmi_state.mode.store(mode.0, Relaxed);
    }

    #[inline(never)]
    fn record(&self, pmi_state: &LbrPmiState, irqs: &LocalInterruptDisabled) {
        let select = pmi_state.select.load(Relaxed);
        let freeze = pmi_state.mode().freezes();
        self.registers.start(select, freeze, irqs);
    }
}

impl Unit for Branches {
    type Own = LbrOwn;
    type PmiState = LbrPmiState;
    type TaskData = TaskData;

    const TASK_DATA: Option<&'static CStr> = Some(c"rpmu_lbr");

    fn find(platform: &mut Platform<'_>) -> Result<Option<Self>> {
        let branches = Self::find_usable(platform.hardware);
        if branches.is_none() {
            platform.hardware.pmu.lbr = None;
        }
        Ok(branches)
    }

    fn pmi_state(
        cpu: CpuId,
        hardware: &Hardware,
        builtin: Option<&Builtin>,
    ) -> Result<LbrPmiState> {
        let lbr = hardware.pmu.lbr;
        let amd = hardware.amd().is_some();
        Ok(LbrPmiState {
            mode: AtomicU8::new(Mode::OFF.0),
            sampled: CpuCell::new(cpu, lbr.map(|_| new_sampled()).transpose()?),
            select: AtomicU32::new(0),
            mirror: builtin.map(|builtin| builtin.branch_mirror(cpu, amd)),
        })
    }

    fn announce(&self, hardware: &Hardware) {
        pr_info!(
            "{}samples can have the last {} branches\n",
            format_args!("{}", hardware.pmu.prefix()),
            self.lbr.depth
        );
    }

    /// Stops the recording of branches.
    fn reset(
        &self,
        own: &mut LbrOwn,
        pmi_state: &LbrPmiState,
        site: Site<'_>,
        _counters: PlanAndShadow<'_>,
    ) -> bool {
        own.running = false;
        // Events that stay and want branches must be prepared again.
        let changed = pmi_state.is_used() || own.state.filter().is_some();
        own.state.forget();
        self.registers.stop(site.irqs);
        changed
    }

    fn restore(&self, own: &mut LbrOwn, pmi_state: &LbrPmiState, site: Site<'_>) {
        // First, so that no snapshot restarts the recording.
        pmi_state.publish(None, site.irqs);
        self.registers.stop(site.irqs);
        if pmi_state.is_used() {
            // Not LBR_SELECT, which threads may share: each driver writes it before it records.
            self.registers.reset(site.irqs);
        }
        pmi_state.mode.store(Mode::OFF.0, Relaxed);
        own.running = false;
        own.state.forget();
    }

    /// Stops the recording of branches.
    #[inline(always)]
    fn stop(&self, own: &mut LbrOwn, site: Site<'_>) {
        if own.running {
            own.running = false;
            self.registers.stop(site.irqs);
        }
        if self.shares_select {
            own.state.forget_select();
        }
    }

    /// Brings the branch records in line with the schedule.
    #[inline(always)]
    fn prepare(
        &self,
        own: &mut LbrOwn,
        pmi_state: &LbrPmiState,
        cx: &PmuDisabled<'_, Driver>,
        _site: Site<'_>,
        schedule: &CpuSchedule<EventId>,
        changed: bool,
    ) {
        if changed {
            let wanted = schedule.lbr_select();
            if wanted.is_some() || own.state.filter().is_some() || pmi_state.is_used() {
                self.prepare_changed(own, pmi_state, cx, schedule, wanted);
            }
        }
    }

    /// Starts the recording of branches, if an event wants them.
    #[inline(always)]
    fn start(&self, own: &mut LbrOwn, pmi_state: &LbrPmiState, site: Site<'_>) {
        if pmi_state.is_used() {
            own.running = true;
            self.record(pmi_state, site.irqs);
        }
    }

    /// Restarts the recording of branches, unless acknowledging the PMI has done so.
    #[inline(always)]
    fn go_on(&self, pmi_state: &LbrPmiState, site: Site<'_>) {
        if pmi_state.is_used() && !self.thaws_by_acknowledging {
            self.record(pmi_state, site.irqs);
        }
    }

    /// Saves the call stack of a task that is switched out, and resets or restores the records for
    /// a task that is switched in.
    #[inline(never)]
    fn switch(
        &self,
        (own, _pmi_state): (&mut LbrOwn, &LbrPmiState),
        _cx: &PmuDisabled<'_, Driver>,
        site: Site<'_>,
        schedule: &CpuSchedule<EventId>,
        mut data: Option<&mut TaskData>,
        sched_in: bool,
    ) {
        let state = &mut own.state;
        let keeps = |select: &u32| self.lbr.keeps(*select);
        if sched_in {
            let wanted = schedule.lbr_select();
            let kept = wanted.as_ref().is_some_and(keeps);
            let saved = data.as_ref().filter(|_| kept);
            let saved = saved.and_then(|data| data.saved(site.id));
            let steps = state.switch_in(wanted, saved);
            self.carry_out(steps, data.as_deref(), site.irqs);
            if let Some(data) = &mut data {
                data.save = 0;
            }
        } else if let Some(data) = data {
            data.save = 0;
            if let Some(select) = state.filter().filter(keeps) {
                data.save = state.save();
                data.saved_on = site.id.as_u32();
                self.save(data, select, site.irqs);
            }
        }
    }
}
