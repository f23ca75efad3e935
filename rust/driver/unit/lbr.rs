// SPDX-License-Identifier: GPL-2.0

//! Branch stacks: the branch records of each CPU (LBR), for the events that sample them.
//!
//! | State | Accessed by |
//! |---|---|
//! | [`Branches`] | all; constant |
//! | [`Own`] | callbacks on the CPU, not the PMI |
//! | [`Shared::mode`] | callbacks and the PMI on the CPU, as an atomic |
//! | [`Shared::sampled`] | the PMI on the CPU |
//! | [`Shared::mirror`] | callbacks on the CPU |
//! | [`TaskData`] | `sched_task` on the CPU of the task |
//!
//! Branches are recorded while counters run, unless a guest of KVM has the records: it records its own when it
//! runs. A PMI finds them [frozen](Mode::freezes), but for a call stack, and reads them once, if one of the events
//! that it serves wants them.

use super::hooks::{Counters, Found, Site, Unit};
use crate::{
    driver::{
        facilities,
        hw::{Hardware, LbrRegisters},
        pmi::shared::Shared as PmiState,
        Driver,
    },
    kern::percpu::{CpuCell, CpuCellGuard},
    logic::{
        model::{Quirk, Scope},
        regs::counter::CounterMask,
        sample::lbr::{
            self,
            record::{Flags, Format, Record},
            stack::Branches as Recorded,
            state::{Records, State, Steps},
            Kinds, Request, MAX_BRANCHES,
        },
        sched::cpu_schedule::CpuSchedule,
        tried::Feature,
    },
    perf::{self, BranchStack, EventId, OnCpu, PmuDisabled, Sample},
    x86::{
        branches::{self as registers, Functions, NoTracers},
        builtin::{BranchMirror, Builtin},
    },
};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering::Relaxed};
use kernel::{cpu::CpuId, interrupt::LocalInterruptDisabled, prelude::*};

/// The branch records of the machine.
pub(in crate::driver) struct Branches {
    lbr: lbr::Lbr,
    registers: LbrRegisters,
    functions: Functions,
    /// Set if acknowledging a PMI lets branches be recorded again: from version 4 of architectural
    /// performance monitoring on.
    thaws_by_acknowledging: bool,
    /// Set if aborts of TSX transactions are recorded twice.
    abort_twice: bool,
    /// Set if LBR_SELECT is the core's, so that the other thread may write it.
    shares_select: bool,
}

impl Branches {
    /// Finds the branch records of `hardware`'s machine and binds the kernel's functions for them. [`None`] if
    /// there are none or they cannot be used, which is logged.
    ///
    /// Process context.
    #[inline(never)]
    fn find_usable(hardware: &Hardware) -> Option<Self> {
        let lbr = hardware.pmu.lbr?;
        let registers = hardware.lbr_registers()?;
        if !facilities::was_tried(Feature::BranchStacks) {
            return None;
        }
        let functions = perf::bind_sched_task().and_then(|()| Functions::bind());
        let functions = functions.inspect_err(|error| {
            pr_notice!(
                "perf_sched_cb_inc(), x86_add_exclusive() or branch_type() is out of reach ({error:?}): \
                 no branch stacks\n"
            );
        });
        Some(Self {
            lbr,
            registers,
            functions: functions.ok()?,
            thaws_by_acknowledging: hardware.pmu.capabilities.version >= 4,
            abort_twice: hardware.pmu.model.has(Quirk::AbortRecordedTwice),
            shares_select: hardware.pmu.model.offcore_scope == Scope::Core,
        })
    }

    /// Excludes Intel PT and BTS as long as an event with a branch stack is open. Fails with `EBUSY` if one of
    /// them is in use. AMD's processors have neither. Process context.
    pub(in crate::driver) fn exclude_tracers(&self) -> Result<Option<NoTracers>> {
        if self.is_amd() {
            return Ok(None);
        }
        self.functions.exclude_tracers().map(Some)
    }

    fn is_amd(&self) -> bool {
        matches!(self.lbr.format, Format::Amd { .. })
    }

    /// Takes `steps` before branches are recorded. `data` is that of the task which has come.
    fn take(&self, steps: Steps, data: Option<&TaskData>, irqs: &LocalInterruptDisabled) {
        if let Some(select) = steps.select {
            let select = match (select, steps.records) {
                (lbr::GUEST, Records::Restore | Records::RestoreIfLost) => {
                    data.map_or(0, |data| data.select)
                }
                (lbr::GUEST, _) => 0,
                _ => select,
            };
            self.registers.set_select(select, irqs);
        }
        match (steps.records, data) {
            (Records::Keep, _) => {}
            (Records::Restore, Some(data)) => self.restore(data, irqs),
            (Records::RestoreIfLost, Some(data)) => {
                if !self.holds(data, irqs) {
                    self.restore(data, irqs);
                }
            }
            _ => self.registers.reset(irqs),
        }
    }

    /// Returns whether the registers still hold a call stack that has been saved: deep sleep may reset them.
    fn holds(&self, data: &TaskData, irqs: &LocalInterruptDisabled) -> bool {
        let registers = self.registers.writable();
        registers.is_some_and(|it| it.has(data.latest, irqs))
    }

    /// Saves the records with the filter `select` to `data`.
    fn save(&self, data: &mut TaskData, select: u32, irqs: &LocalInterruptDisabled) {
        data.select = match self.registers.writable() {
            Some(registers) if select == lbr::GUEST => registers.select(irqs),
            _ => 0,
        };
        data.latest = self.registers.latest(irqs);
        data.len = 0;
        for (age, slot) in (0..).zip(&mut data.records) {
            let Some(record) = self.registers.read(data.latest, age, true, irqs) else {
                break;
            };
            *slot = record;
            data.len = data.len.wrapping_add(1);
        }
    }

    /// Restores the records that `data` has, and resets the others.
    fn restore(&self, data: &TaskData, irqs: &LocalInterruptDisabled) {
        let Some(registers) = self.registers.writable() else {
            return;
        };
        let TaskData { latest, len, .. } = *data;
        if self.lbr.is_architectural() && len < registers.depth() {
            registers.reset(irqs);
        }
        let format = self.lbr.format;
        for (age, slot) in (0..registers.depth()).zip(&data.records) {
            let record = if age < len {
                registers::Record {
                    from: format.from_to_write(slot.from),
                    ..*slot
                }
            } else if self.lbr.is_architectural() {
                break;
            } else {
                registers::Record::default()
            };
            registers.write(latest, age, record, irqs);
        }
        registers.set_latest(latest, irqs);
    }

    /// Reads the records into `sampled`. Branches are not recorded, or only those of a call stack.
    fn read(&self, sampled: &mut Sampled, mode: Mode, irqs: &LocalInterruptDisabled) {
        let latest = self.registers.latest(irqs);
        sampled.latest = self.lbr.latest_branch(latest);
        sampled.recorded.clear();
        // Architectural LBRs have the types of branches there, which software filters go by.
        let info = mode.needs_info() || self.lbr.is_architectural();
        for age in 0..self.registers.depth() {
            let Some(record) = self.registers.read(latest, age, info, irqs) else {
                break;
            };
            let registers::Record { from, to, info } = record;
            let Some(mut branch) = self.lbr.format.decode(Record { from, to, info }) else {
                continue;
            };
            if self.is_amd() {
                let (kind, offset) = self.functions.fused_kind(branch.from, branch.to, irqs);
                branch.from = branch.from.wrapping_add(offset);
                sampled
                    .recorded
                    .push_classified(branch, Kinds::from_bits(kind));
                continue;
            }
            if self.abort_twice && branch.flags.has(Flags::ABORT) {
                // The one before is the same abort, recorded again after it.
                sampled.recorded.pop();
            }
            sampled.recorded.push(branch);
        }
    }
}

/// How the branches of a CPU are recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mode(u8);

impl Mode {
    /// Not at all.
    const OFF: Self = Self(0);
    const ON: u8 = 1 << 0;
    const CALL_STACK: u8 = 1 << 1;
    const INFO: u8 = 1 << 2;

    fn of(call_stack: bool, info: bool) -> Self {
        let call_stack = if call_stack { Self::CALL_STACK } else { 0 };
        let info = if info { Self::INFO } else { 0 };
        Self(Self::ON | call_stack | info)
    }

    /// Returns whether a PMI is to stop the recording: not that of a call stack, whose depth a call or return close
    /// to the PMI may change (`__intel_pmu_lbr_enable()`, `arch/x86/events/intel/lbr.c:136`).
    fn freezes(self) -> bool {
        self.0 & Self::CALL_STACK == 0
    }

    /// Returns whether an event wants flags or cycles.
    fn needs_info(self) -> bool {
        self.0 & Self::INFO != 0
    }
}

/// The state of a CPU's branch records that callbacks share with the PMI.
pub(in crate::driver) struct Shared {
    /// How branches are recorded while counters run, a [`Mode`].
    mode: AtomicU8,
    /// The branches of a PMI. [`None`] if the machine has no records.
    sampled: CpuCell<Option<KBox<Sampled>>>,
    /// The value of LBR_SELECT or LBR_CTL while branches are recorded.
    select: AtomicU32,
    /// Tells others how branches are recorded. [`None`] if the built-in driver, which they ask, has not
    /// initialised.
    mirror: Option<BranchMirror>,
}

/// The branches that a PMI has found.
struct Sampled {
    recorded: Recorded,
    /// The number of the latest, see [`BranchStack::fill`].
    latest: u64,
    /// Those that the event which is being served has asked for.
    stack: BranchStack,
}

impl Shared {
    /// Tells others how branches are recorded: the value of LBR_SELECT, and a set of the kernel's kinds of
    /// branches. [`None`]: not at all. To be called before they are.
    fn tell(&self, recorded: Option<(u32, u32)>, irqs: &LocalInterruptDisabled) {
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

// It passes through the stack: not much else may be there then.
#[inline(never)]
fn new_sampled() -> Result<KBox<Sampled>> {
    let sampled = Sampled {
        recorded: Recorded::NONE,
        latest: 0,
        stack: BranchStack::EMPTY,
    };
    Ok(KBox::new(sampled, GFP_KERNEL)?)
}

/// The state of a CPU's branch records that callbacks alone use.
#[derive(Default)]
pub(in crate::driver) struct Own {
    state: State,
    /// Set while branches are being recorded, as far as the callbacks know.
    running: bool,
}

/// The records of a call stack that a task has left.
#[derive(Zeroable)]
pub(crate) struct TaskData {
    /// The number of the save; 0 if there is none.
    save: u64,
    /// The number of the CPU that it was saved on.
    saved_on: u32,
    /// The number of the latest branch.
    latest: u32,
    /// The number of records.
    len: u32,
    /// The value of LBR_SELECT, of a guest.
    select: u32,
    records: [registers::Record; MAX_BRANCHES],
}

impl TaskData {
    /// Returns the number of the saved call stack; [`None`] if there is none. No save of `cpu` has the number if the
    /// stack was saved on another CPU.
    fn saved(&self, cpu: CpuId) -> Option<u64> {
        match self.save {
            0 => None,
            save if self.saved_on == cpu.as_u32() => Some(save),
            _ => Some(0),
        }
    }
}

/// The branches that a PMI has read, for the samples of its events.
pub(in crate::driver) struct InPmi<'a> {
    sampled: CpuCellGuard<'a, Option<KBox<Sampled>>>,
    branches: &'a Branches,
}

impl InPmi<'_> {
    /// Returns the latest branch: its address and that of its target.
    pub(in crate::driver) fn latest(&self) -> Option<(u64, u64)> {
        self.sampled.as_ref()?.recorded.latest()
    }

    /// Replaces the branches by those of a PEBS record: words of FROM, TO and INFO each, the latest first. The record
    /// lacks the number of the latest branch: it is read from the register if `latest`, and unknown otherwise.
    ///
    /// Mainline: `intel_pmu_store_pebs_lbrs()`, `arch/x86/events/intel/lbr.c:1288`.
    pub(in crate::driver) fn take_recorded(
        &mut self,
        words: &[AtomicU64],
        latest: bool,
        irqs: &LocalInterruptDisabled,
    ) {
        let Branches { lbr, registers, .. } = self.branches;
        let Some(sampled) = self.sampled.as_mut() else {
            return;
        };
        sampled.latest = match latest {
            true => lbr.latest_branch(registers.latest(irqs)),
            false => u64::MAX,
        };
        sampled.recorded.clear();
        for branch in words.chunks_exact(3) {
            let [from, to, info] = branch else { break };
            let [from, to, info] = [from, to, info].map(|word| word.load(Relaxed));
            if from == 0 {
                break;
            }
            let record = Record { from, to, info };
            if let Some(branch) = lbr.format.decode(record) {
                sampled.recorded.push(branch);
            }
        }
    }

    /// Adds the branches that `event` has asked for to its `sample`. In the PMI.
    pub(in crate::driver) fn add_to<'s>(
        &'s mut self,
        sample: &mut Sample<'s>,
        event: &perf::Event<Driver>,
        irqs: &LocalInterruptDisabled,
    ) {
        let Some(request) = &event.data().branches else {
            return;
        };
        let Some(sampled) = self.sampled.as_mut() else {
            return;
        };
        let Sampled {
            recorded,
            latest,
            stack,
        } = &mut **sampled;
        let functions = &self.branches.functions;
        let asked_for = recorded.select(request, |branch| {
            let aborts = branch.flags.has(Flags::ABORT);
            let kind = functions.kind(branch.from, branch.to, aborts, irqs);
            Kinds::from_bits(kind)
        });
        stack.fill(*latest, asked_for.map(|it| (it.from, it.to, it.flags)));
        sample.add_branches(event, stack);
    }
}

impl Branches {
    /// Reads the branch records in a PMI, if an event on one of the counters that have `overflowed` wants them.
    /// Before the PMI is acknowledged, since that may let branches be recorded again.
    #[inline]
    pub(in crate::driver) fn read_in_pmi<'a>(
        &'a self,
        shared: &'a Shared,
        cx: &'a OnCpu<'_, Driver>,
        pmi: &PmiState,
        overflowed: CounterMask,
    ) -> Option<InPmi<'a>> {
        match shared.is_used() {
            true => self.read_used(shared, cx, pmi, overflowed),
            false => None,
        }
    }

    #[inline(never)]
    fn read_used<'a>(
        &'a self,
        shared: &'a Shared,
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
        let mut sampled = shared.sampled.borrow(cx.irqs())?;
        self.read(sampled.as_mut()?, shared.mode(), cx.irqs());
        Some(InPmi {
            sampled,
            branches: self,
        })
    }

    /// Prepares for branches from PEBS records. [`None`] without branch records, or while others use the branches.
    pub(in crate::driver) fn recorded<'a>(
        &'a self,
        shared: &'a Shared,
        irqs: &'a LocalInterruptDisabled,
    ) -> Option<InPmi<'a>> {
        if !shared.is_used() {
            return None;
        }
        let sampled = shared.sampled.borrow(irqs)?;
        Some(InPmi {
            sampled,
            branches: self,
        })
    }

    #[inline(never)]
    fn prepare_changed(
        &self,
        own: &mut Own,
        shared: &Shared,
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
                shared.tell(Some((select, kinds.bits())), cx.irqs());
                shared.select.store(select, Relaxed);
                Mode::of(self.lbr.is_call_stack(select), info)
            }
        };
        if mode == Mode::OFF {
            shared.tell(None, cx.irqs());
            // A snapshot since the PMU was disabled may have started the recording again.
            self.registers.stop(cx.irqs());
        }
        // After others have been told: a snapshot in an NMI writes LBR_SELECT, too.
        let steps = own.state.prepare(wanted);
        self.take(steps, None, cx.irqs());
        shared.mode.store(mode.0, Relaxed);
    }

    #[inline(never)]
    fn record(&self, shared: &Shared, irqs: &LocalInterruptDisabled) {
        let select = shared.select.load(Relaxed);
        let freeze = shared.mode().freezes();
        self.registers.start(select, freeze, irqs);
    }
}

impl Unit for Branches {
    type Own = Own;
    type Shared = Shared;
    type TaskData = TaskData;

    fn find(found: &mut Found<'_>) -> Result<Option<Self>> {
        let branches = Self::find_usable(found.hardware);
        if branches.is_none() {
            found.hardware.pmu.lbr = None;
        }
        Ok(branches)
    }

    fn shared(cpu: CpuId, hardware: &Hardware, builtin: Option<&Builtin>) -> Result<Shared> {
        let lbr = hardware.pmu.lbr;
        let amd = hardware.amd().is_some();
        Ok(Shared {
            mode: AtomicU8::new(Mode::OFF.0),
            sampled: CpuCell::new(cpu, lbr.map(|_| new_sampled()).transpose()?),
            select: AtomicU32::new(0),
            mirror: builtin.map(|builtin| builtin.branch_mirror(cpu, amd)),
        })
    }

    /// Branches are not recorded any more.
    fn reset(
        &self,
        own: &mut Own,
        shared: &Shared,
        site: Site<'_>,
        _counters: Counters<'_>,
    ) -> bool {
        own.running = false;
        // Those of events that stay are to be prepared anew.
        let changed = shared.is_used() || own.state.filter().is_some();
        own.state.forget();
        self.registers.stop(site.irqs);
        changed
    }

    fn restore(&self, own: &mut Own, shared: &Shared, site: Site<'_>) {
        // First, so that no snapshot starts the recording again.
        shared.tell(None, site.irqs);
        self.registers.stop(site.irqs);
        if shared.is_used() {
            // Not LBR_SELECT, which may be the core's: each driver writes it before it uses it.
            self.registers.reset(site.irqs);
        }
        shared.mode.store(Mode::OFF.0, Relaxed);
        own.running = false;
        own.state.forget();
    }

    /// Stops to record branches.
    #[inline(always)]
    fn stop(&self, own: &mut Own, site: Site<'_>) {
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
        own: &mut Own,
        shared: &Shared,
        cx: &PmuDisabled<'_, Driver>,
        _site: Site<'_>,
        schedule: &CpuSchedule<EventId>,
        changed: bool,
    ) {
        if changed {
            let wanted = schedule.lbr_select();
            if wanted.is_some() || own.state.filter().is_some() || shared.is_used() {
                self.prepare_changed(own, shared, cx, schedule, wanted);
            }
        }
    }

    /// Starts to record branches, if an event wants them.
    #[inline(always)]
    fn start(&self, own: &mut Own, shared: &Shared, site: Site<'_>) {
        if shared.is_used() {
            own.running = true;
            self.record(shared, site.irqs);
        }
    }

    /// Lets branches be recorded again, unless acknowledging the PMI did.
    #[inline(always)]
    fn go_on(&self, shared: &Shared, site: Site<'_>) {
        if shared.is_used() && !self.thaws_by_acknowledging {
            self.record(shared, site.irqs);
        }
    }

    /// Saves the call stack of the task that leaves this CPU, and resets or restores the records for one that
    /// comes.
    #[inline(never)]
    fn switch(
        &self,
        (own, _shared): (&mut Own, &Shared),
        _cx: &PmuDisabled<'_, Driver>,
        site: Site<'_>,
        schedule: &CpuSchedule<EventId>,
        mut data: Option<&mut TaskData>,
        comes: bool,
    ) {
        let state = &mut own.state;
        let keeps = |select: &u32| self.lbr.keeps(*select);
        if comes {
            let wanted = schedule.lbr_select();
            let kept = wanted.as_ref().is_some_and(keeps);
            let saved = data.as_ref().filter(|_| kept);
            let saved = saved.and_then(|data| data.saved(site.id));
            let steps = state.switch_in(wanted, saved);
            self.take(steps, data.as_deref(), site.irqs);
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
