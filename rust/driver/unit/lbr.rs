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

use crate::{
    driver::{
        cpu::{Cpu, Own as OwnOfCpu},
        facilities,
        hw::{Hardware, LbrRegisters},
        Driver,
    },
    kern::percpu::{CpuCell, CpuCellGuard},
    logic::{
        model::Quirk,
        regs::counter::CounterMask,
        sample::lbr::{
            self,
            record::{Flags, Format, Record},
            stack::Branches as Recorded,
            state::{Records, State, Steps},
            Kinds, Request, MAX_BRANCHES,
        },
        tried::Feature,
    },
    perf::{self, BranchStack, OnCpu, PmuDisabled, Sample},
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
}

impl Branches {
    /// Finds the branch records of `hardware`'s machine and binds the kernel's functions for them. [`None`] if
    /// there are none or they cannot be used, which is logged; the PMU has none then.
    ///
    /// Process context.
    pub(in crate::driver) fn find(hardware: &mut Hardware) -> Option<Self> {
        let branches = Self::find_usable(hardware);
        if branches.is_none() {
            hardware.pmu.lbr = None;
        }
        branches
    }

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
    pub(in crate::driver) fn new(
        cpu: CpuId,
        hardware: &Hardware,
        builtin: Option<&Builtin>,
    ) -> Result<Self> {
        let lbr = hardware.pmu.lbr;
        let amd = hardware.amd().is_some();
        Ok(Self {
            mode: AtomicU8::new(Mode::OFF.0),
            sampled: CpuCell::new(cpu, lbr.map(|_| new_sampled()).transpose()?),
            select: AtomicU32::new(0),
            mirror: builtin.map(|builtin| builtin.branch_mirror(cpu, amd)),
        })
    }

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

impl Driver {
    /// Returns the branch records, if branches are recorded while counters run.
    #[inline]
    fn used_branches(&self, cpu: &Cpu) -> Option<&Branches> {
        // In this order: most often, none are, and that is all.
        match cpu.lbr.is_used() {
            true => self.branches.as_ref(),
            false => None,
        }
    }

    /// Reads the branch records in a PMI, if an event on one of the counters that have `overflowed` wants them.
    /// Before the PMI is acknowledged, since that may let branches be recorded again.
    #[inline]
    pub(in crate::driver) fn read_branches<'a>(
        &'a self,
        cx: &'a OnCpu<'_, Self>,
        cpu: &'a Cpu,
        overflowed: CounterMask,
    ) -> Option<InPmi<'a>> {
        let branches = self.used_branches(cpu)?;
        self.read_branches_of(branches, cx, cpu, overflowed)
    }

    #[inline(never)]
    fn read_branches_of<'a>(
        &self,
        branches: &'a Branches,
        cx: &'a OnCpu<'_, Self>,
        cpu: &'a Cpu,
        overflowed: CounterMask,
    ) -> Option<InPmi<'a>> {
        let wants = |counter| {
            let event = cpu.shared.active_event(counter).and_then(|id| cx.event(id));
            event.is_some_and(|event| event.data().branches.is_some())
        };
        if !overflowed.into_iter().any(wants) {
            return None;
        }
        let mut sampled = cpu.lbr.sampled.borrow(cx.irqs())?;
        branches.read(sampled.as_mut()?, cpu.lbr.mode(), cx.irqs());
        Some(InPmi { sampled, branches })
    }

    /// Prepares for branches from PEBS records. [`None`] without branch records, or while others use the branches.
    pub(in crate::driver) fn recorded_branches<'a>(
        &'a self,
        cpu: &'a Cpu,
        irqs: &'a LocalInterruptDisabled,
    ) -> Option<InPmi<'a>> {
        let branches = self.used_branches(cpu)?;
        let sampled = cpu.lbr.sampled.borrow(irqs)?;
        Some(InPmi { sampled, branches })
    }

    /// Lets branches be recorded again at the end of a PMI, which has stopped that, unless acknowledging it
    /// did. To be called before counters run again, if any do.
    #[inline]
    pub(in crate::driver) fn go_on_recording(&self, cpu: &Cpu, irqs: &LocalInterruptDisabled) {
        if let Some(branches) = self.used_branches(cpu) {
            if !branches.thaws_by_acknowledging {
                self.record_branches(branches, cpu, irqs);
            }
        }
    }

    /// Brings the branch records in line with the schedule, which has changed. To be called when the PMU is enabled.
    #[inline]
    pub(in crate::driver) fn prepare_branches(
        &self,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut OwnOfCpu,
    ) {
        let Some(branches) = &self.branches else {
            return;
        };
        let wanted = own.schedule.lbr_select();
        if wanted.is_some() || own.lbr.state.filter().is_some() || cpu.lbr.is_used() {
            self.prepare_changed_branches(branches, cx, cpu, own, wanted);
        }
    }

    #[inline(never)]
    fn prepare_changed_branches(
        &self,
        branches: &Branches,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut OwnOfCpu,
        wanted: Option<u32>,
    ) {
        let mode = match wanted {
            // A guest records branches when it runs.
            None | Some(lbr::GUEST) => Mode::OFF,
            Some(select) => {
                let requests = || {
                    let events = own.schedule.entries().filter_map(|it| cx.event(it.event));
                    events.filter_map(|event| event.data().branches)
                };
                let info = requests().any(|request: Request| !request.bare);
                let kinds = requests().fold(Kinds::NONE, |all, it| all.or(it.kinds));
                cpu.lbr.tell(Some((select, kinds.bits())), cx.irqs());
                cpu.lbr.select.store(select, Relaxed);
                Mode::of(branches.lbr.is_call_stack(select), info)
            }
        };
        if mode == Mode::OFF {
            cpu.lbr.tell(None, cx.irqs());
            // A snapshot since the PMU was disabled may have started the recording again.
            branches.registers.stop(cx.irqs());
        }
        // After others have been told: a snapshot in an NMI writes LBR_SELECT, too.
        let steps = own.lbr.state.prepare(wanted);
        branches.take(steps, None, cx.irqs());
        cpu.lbr.mode.store(mode.0, Relaxed);
    }

    /// Starts to record branches, if an event wants them. To be called before counters run, when a PMI may
    /// already do the same.
    #[inline]
    pub(in crate::driver) fn start_recording(
        &self,
        cpu: &Cpu,
        own: &mut OwnOfCpu,
        irqs: &LocalInterruptDisabled,
    ) {
        if let Some(branches) = self.used_branches(cpu) {
            own.lbr.running = true;
            self.record_branches(branches, cpu, irqs);
        }
    }

    #[inline(never)]
    fn record_branches(&self, branches: &Branches, cpu: &Cpu, irqs: &LocalInterruptDisabled) {
        let select = cpu.lbr.select.load(Relaxed);
        let freeze = cpu.lbr.mode().freezes();
        branches.registers.start(select, freeze, irqs);
    }

    /// Stops to record branches. To be called when all counters have been stopped.
    #[inline]
    pub(in crate::driver) fn stop_recording(
        &self,
        own: &mut OwnOfCpu,
        irqs: &LocalInterruptDisabled,
    ) {
        if own.lbr.running {
            own.lbr.running = false;
            if let Some(branches) = &self.branches {
                branches.registers.stop(irqs);
            }
        }
    }

    /// Records that LBR_SELECT may have changed: the core's other thread writes it as well.
    #[inline]
    pub(in crate::driver) fn forget_lbr_select(own: &mut OwnOfCpu) {
        own.lbr.state.forget_select();
    }

    /// Makes the branch records of this CPU ready for use after they may have held anything: another driver
    /// has used them, the CPU was off, or the machine was suspended. Branches are not recorded any more.
    pub(in crate::driver) fn reset_branches(
        &self,
        cpu: &Cpu,
        own: &mut OwnOfCpu,
        irqs: &LocalInterruptDisabled,
    ) {
        if let Some(branches) = &self.branches {
            own.lbr.running = false;
            // Those of events that stay are to be prepared anew.
            own.changed |= cpu.lbr.is_used() || own.lbr.state.filter().is_some();
            own.lbr.state.forget();
            branches.registers.stop(irqs);
        }
    }

    /// Ends all use of the branch records of this CPU: it goes down, or the driver is being unloaded.
    pub(in crate::driver) fn give_branches_back(
        &self,
        cpu: &Cpu,
        own: &mut OwnOfCpu,
        irqs: &LocalInterruptDisabled,
    ) {
        if let Some(branches) = &self.branches {
            // First, so that no snapshot starts the recording again.
            cpu.lbr.tell(None, irqs);
            branches.registers.stop(irqs);
            if cpu.lbr.is_used() {
                // Not LBR_SELECT, which may be the core's: each driver writes it before it uses it.
                branches.registers.reset(irqs);
            }
            cpu.lbr.mode.store(Mode::OFF.0, Relaxed);
            own.lbr.running = false;
            own.lbr.state.forget();
        }
    }

    /// Saves the call stack of the task that leaves this CPU, and resets or restores the records for one that
    /// comes.
    #[inline(never)]
    pub(in crate::driver) fn switch_branches(
        &self,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut OwnOfCpu,
        mut data: Option<&mut TaskData>,
        comes: bool,
    ) {
        let Some(branches) = &self.branches else {
            return;
        };
        let state = &mut own.lbr.state;
        let keeps = |select: &u32| branches.lbr.keeps(*select);
        if comes {
            let wanted = own.schedule.lbr_select();
            let kept = wanted.as_ref().is_some_and(keeps);
            let saved = data.as_ref().filter(|_| kept);
            let saved = saved.and_then(|data| data.saved(cpu.id));
            let steps = state.switch_in(wanted, saved);
            branches.take(steps, data.as_deref(), cx.irqs());
            if let Some(data) = &mut data {
                data.save = 0;
            }
        } else if let Some(data) = data {
            data.save = 0;
            if let Some(select) = state.filter().filter(keeps) {
                data.save = state.save();
                data.saved_on = cpu.id.as_u32();
                branches.save(data, select, cx.irqs());
            }
        }
    }
}
