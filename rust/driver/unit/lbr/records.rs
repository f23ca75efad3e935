// SPDX-License-Identifier: GPL-2.0

//! The branch records: reading, saving and restoring them, and adding them to samples.

use crate::{
    driver::{
        facilities,
        hw::{
            Hardware,
            LbrRegisters, //
        },
        Driver, //
    },
    kern::percpu::CpuCellGuard,
    logic::{
        model::{
            Quirk,
            Scope, //
        },
        sample::lbr::{
            self,
            record::{
                Flags,
                Format,
                Record, //
            },
            stack::Branches as Recorded,
            state::{
                Records,
                Steps, //
            },
            Kinds,
            MAX_BRANCHES, //
        },
        tried::Feature, //
    },
    perf::{
        self,
        BranchStack,
        Sample, //
    },
    x86::branches::{
        self as registers,
        Functions,
        NoTracers, //
    },
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::Relaxed, //
};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// The branch records of the machine.
pub(in crate::driver) struct Branches {
    pub(super) lbr: lbr::Lbr,
    pub(super) registers: LbrRegisters,
    functions: Functions,
    /// Set if acknowledging a PMI restarts the recording of branches: from version 4 of
    /// architectural performance monitoring on.
    pub(super) thaws_by_acknowledging: bool,
    /// Set if aborts of TSX transactions are recorded twice.
    abort_twice: bool,
    /// Set if the threads of a core share LBR_SELECT, so that the other thread may write it.
    pub(super) shares_select: bool,
}

impl Branches {
    /// Finds the branch records of `hardware`'s machine and binds the kernel's functions for them.
    /// [`None`] if there are none or they cannot be used, which is logged.
    ///
    /// Process context.
    #[inline(never)]
    pub(super) fn find_usable(hardware: &Hardware) -> Option<Self> {
        let lbr = hardware.pmu.lbr?;
        let registers = hardware.lbr_registers()?;
        if !facilities::was_tried(Feature::BranchStacks) {
            return None;
        }
        let functions = perf::bind_sched_task().and_then(|()| Functions::bind());
        let functions = functions.inspect_err(|error| {
            pr_notice!(
                "perf_sched_cb_inc(), x86_add_exclusive() or branch_type() cannot be found ({error:?}): \
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

    /// Excludes Intel PT and BTS as long as an event with a branch stack is open. Fails with
    /// `EBUSY` if one of them is in use. AMD's processors have neither. Process context.
    pub(in crate::driver) fn exclude_tracers(&self) -> Result<Option<NoTracers>> {
        if self.is_amd() {
            return Ok(None);
        }
        self.functions.exclude_tracers().map(Some)
    }

    fn is_amd(&self) -> bool {
        matches!(self.lbr.format, Format::Amd { .. })
    }

    /// Carries out `steps` before branches are recorded. `data` is the data of the task that was
    /// switched in.
    pub(super) fn carry_out(
        &self,
        steps: Steps,
        data: Option<&TaskData>,
        irqs: &LocalInterruptDisabled,
    ) {
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

    /// Returns whether the registers still hold a saved call stack: deep sleep may have reset them.
    fn holds(&self, data: &TaskData, irqs: &LocalInterruptDisabled) -> bool {
        let registers = self.registers.writable();
        registers.is_some_and(|it| it.has(data.latest, irqs))
    }

    /// Saves the records with the filter `select` to `data`.
    pub(super) fn save(&self, data: &mut TaskData, select: u32, irqs: &LocalInterruptDisabled) {
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

    /// Restores the records in `data`, and resets the others.
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

    /// Reads the records into `sampled`. The recording is stopped, unless the [mode](Mode::freezes)
    /// or the processor does not let a PMI stop it.
    pub(super) fn read(&self, sampled: &mut Sampled, mode: Mode, irqs: &LocalInterruptDisabled) {
        let latest = self.registers.latest(irqs);
        sampled.latest = self.lbr.latest_branch(latest);
        sampled.recorded.clear();
        // INFO of architectural LBRs has the types of branches, which software filters need.
        let info = mode.needs_info() || self.lbr.is_architectural();
        // Separate loops for Intel's and AMD's registers, so that no iteration has to choose
        // between them.
        match &self.registers {
            LbrRegisters::Intel(it) => {
                for age in 0..it.depth() {
                    let Some(record) = it.read(latest, age, info, irqs) else {
                        break;
                    };
                    let registers::Record { from, to, info } = record;
                    let Some(branch) = self.lbr.format.decode(Record { from, to, info }) else {
                        continue;
                    };
                    if self.abort_twice && branch.flags.has(Flags::ABORT) {
                        // The record that was read before this one is the same abort, which the
                        // processor records twice.
                        sampled.recorded.pop();
                    }
                    sampled.recorded.push(branch);
                }
            }
            LbrRegisters::Amd(it) => {
                for age in 0..it.depth() {
                    let Some(registers::Record { from, to, info }) = it.read(age, irqs) else {
                        break;
                    };
                    let Some(mut branch) = self.lbr.format.decode(Record { from, to, info }) else {
                        continue;
                    };
                    let (kind, offset) = self.functions.fused_kind(branch.from, branch.to, irqs);
                    branch.from = branch.from.wrapping_add(offset);
                    let kind = Kinds::from_bits(kind);
                    sampled.recorded.push_classified(branch, kind);
                }
            }
        }
    }
}

/// The way in which the branches of a CPU are recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mode(pub(super) u8);

impl Mode {
    /// No branches are recorded.
    pub(super) const OFF: Self = Self(0);
    const ON: u8 = 1 << 0;
    const CALL_STACK: u8 = 1 << 1;
    const INFO: u8 = 1 << 2;

    pub(super) fn of(call_stack: bool, info: bool) -> Self {
        let call_stack = if call_stack { Self::CALL_STACK } else { 0 };
        let info = if info { Self::INFO } else { 0 };
        Self(Self::ON | call_stack | info)
    }

    /// Returns whether a PMI is to stop the recording. It must not stop the recording of a call
    /// stack, whose depth a call or return close to the PMI may change (`__intel_pmu_lbr_enable()`,
    /// `arch/x86/events/intel/lbr.c`).
    pub(super) fn freezes(self) -> bool {
        self.0 & Self::CALL_STACK == 0
    }

    /// Returns whether an event wants flags or cycles.
    fn needs_info(self) -> bool {
        self.0 & Self::INFO != 0
    }
}

/// The branches that a PMI has read, or of a PEBS record.
pub(super) struct Sampled {
    recorded: Recorded,
    /// The number of the latest branch, see [`BranchStack::fill`].
    latest: u64,
    /// The branches that the event being served has requested.
    stack: BranchStack,
}

// Not inlined: the value passes through the kernel's stack, which must not hold much else then.
#[inline(never)]
pub(super) fn new_sampled() -> Result<KBox<Sampled>> {
    let sampled = Sampled {
        recorded: Recorded::NONE,
        latest: 0,
        stack: BranchStack::EMPTY,
    };
    Ok(KBox::new(sampled, GFP_KERNEL)?)
}

/// The records of a call stack that a task has left.
#[derive(Zeroable)]
pub(crate) struct TaskData {
    /// The number of the save; 0 if there is none.
    pub(super) save: u64,
    /// The number of the CPU that it was saved on.
    pub(super) saved_on: u32,
    /// The number of the latest branch.
    latest: u32,
    /// The number of records.
    len: u32,
    /// The value of a guest's LBR_SELECT.
    select: u32,
    records: [registers::Record; MAX_BRANCHES],
}

impl TaskData {
    /// Returns the number of the saved call stack; [`None`] if there is none. If the stack was
    /// saved on another CPU, returns 0, which is no save's number on `cpu`.
    pub(super) fn saved(&self, cpu: CpuId) -> Option<u64> {
        match self.save {
            0 => None,
            save if self.saved_on == cpu.as_u32() => Some(save),
            _ => Some(0),
        }
    }
}

/// The branches that a PMI has read, for the samples of its events, or the buffer for the branches
/// of PEBS records.
pub(in crate::driver) struct InPmi<'a> {
    pub(super) sampled: CpuCellGuard<'a, Option<KBox<Sampled>>>,
    pub(super) branches: &'a Branches,
}

impl InPmi<'_> {
    /// Returns the latest branch: the addresses of the branch and of its target.
    pub(in crate::driver) fn latest(&self) -> Option<(u64, u64)> {
        self.sampled.as_ref()?.recorded.latest()
    }

    /// Replaces the branches by the branches of a PEBS record: three words each (FROM, TO and
    /// INFO), the latest branch first. The record lacks the number of the latest branch: it is read
    /// from the register if `latest`, and unknown otherwise.
    ///
    /// Mainline: `intel_pmu_store_pebs_lbrs()`, `arch/x86/events/intel/lbr.c`.
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

    /// Adds the branches that `event` has requested to its `sample`. Context: the PMI, or a
    /// callback that makes samples of PEBS records.
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
        let selected = recorded.select(request, |branch| {
            let aborts = branch.flags.has(Flags::ABORT);
            let kind = functions.kind(branch.from, branch.to, aborts, irqs);
            Kinds::from_bits(kind)
        });
        stack.fill(*latest, selected.map(|it| (it.from, it.to, it.flags)));
        sample.add_branches(event, stack);
    }
}
