// SPDX-License-Identifier: GPL-2.0

//! Processor event based sampling (PEBS): SDM vol. 3, 17.4.9 (DS area), 20.3.1.1.1 and 20.9.
//!
//! ```text
//!   access      MSRs: the register map, reserved bits
//!   record      the layout of a record
//! ```
//!
//! A counter that is enabled in IA32_PEBS_ENABLE and overflows is armed. The next instruction that
//! retires its event writes a record, after which the counter is reloaded from the DS area.

mod access;
mod record;

pub(super) use access::{
    decode,
    Register, //
};

use super::enable::Counting;
use super::msr::Msr;
use super::registers::FIXED_SHIFT;
use super::state::Pmu;
use crate::counter::Counter;
use crate::event;
use crate::inject::Injected;
use crate::model::{
    PebsFormat,
    Sampled, //
};
use crate::retired::{
    self,
    Retired, //
};
use crate::sample::{
    Memory,
    Sample, //
};
use crate::select::Select;
use crate::share::Source;

/// IA32_PERFEVTSELx.Adaptive_Record, with the adaptive format.
pub(super) const SELECT_ADAPTIVE: u64 = 1 << 34;
/// The same flag of fixed counter 0 in IA32_FIXED_CTR_CTRL; the other counters' flags are four bits
/// apart.
pub(super) const FIXED_ADAPTIVE: u64 = 1 << 32;
/// IA32_PERF_GLOBAL_STATUS.OvfDSBuffer.
pub(super) const OVF_DS_BUFFER: u64 = 1 << 62;

/// IA32_PERF_CAPABILITIES: records are written after the instruction (PEBS_TRAP) and have its
/// registers (PEBS_ARCH_REGS).
const CAP_TRAP: u64 = 1 << 6;
const CAP_ARCH_REGS: u64 = 1 << 7;
/// IA32_PERF_CAPABILITIES.PEBS_REC_FMT.
const CAP_FORMAT_SHIFT: u32 = 8;
/// IA32_PERF_CAPABILITIES.PEBS_BASELINE.
const CAP_BASELINE: u64 = 1 << 14;
/// IA32_PERF_CAPABILITIES.PEBS_TIMING_INFO.
const CAP_TIMING: u64 = 1 << 17;

/// Number of the counters that have PEBS, if these sample listed events only.
const FIRST_FOUR: usize = 4;

/// Maximum number of instructions of a block of QEMU. A counter that is nearer to its next record
/// has QEMU run one instruction at a time.
const BLOCK: u64 = 512;

/// Offsets in the DS area.
const DS_BASE: u64 = 0x20;
const DS_INDEX: u64 = 0x28;
const DS_MAXIMUM: u64 = 0x30;
const DS_THRESHOLD: u64 = 0x38;
const DS_RESET: u64 = 0x40;
/// Number of the reset values of general counters, before those of fixed counters.
const DS_GENERALS: u64 = 8;

/// The registers of PEBS that RESET clears, and the counters that wait for their event.
#[derive(Debug, Default)]
pub(super) struct Pebs {
    /// IA32_PEBS_ENABLE.
    enable: u64,
    /// IA32_DS_AREA.
    ds_area: u64,
    /// MSR_PEBS_DATA_CFG.
    data_cfg: u64,
    /// The counters whose next event writes a record, as bits of IA32_PERF_GLOBAL_CTRL.
    armed: u64,
    /// The counters whose record the last instruction writes.
    due: u64,
    /// The source of [`Injected::WRONG_RECORDS`].
    random: Random,
}

/// A generator of pseudo-random numbers, the same after each RESET.
#[derive(Debug)]
struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(1)
    }
}

impl Random {
    /// Returns the next number (splitmix64).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number with a random number of bits.
    fn any(&mut self) -> u64 {
        self.next() >> (self.next() % 64)
    }

    /// Replaces about a quarter of the words by random ones. Returns a wrong change of the index
    /// for about one record in eight.
    fn spoil(&mut self, record: &mut [u64]) -> Option<u64> {
        for word in record {
            if self.next() % 4 == 0 {
                *word = self.any();
            }
        }
        (self.next() % 8 == 0).then(|| self.any())
    }
}

impl Pmu {
    /// Returns whether records are adaptive.
    pub(super) fn is_adaptive(&self) -> bool {
        self.pebs
            .is_some_and(|pebs| pebs.format == PebsFormat::Adaptive)
    }

    /// Returns whether all counters sample any event (Extended PEBS).
    pub(super) fn is_extended(&self) -> bool {
        self.pebs.is_some_and(|pebs| pebs.sampled == Sampled::All)
    }

    /// Returns the fields of IA32_PERF_CAPABILITIES for PEBS.
    pub(super) fn pebs_capabilities(&self) -> u64 {
        let Some(pebs) = self.pebs else {
            return 0;
        };
        let format = (pebs.format as u64) << CAP_FORMAT_SHIFT;
        let baseline = if self.is_adaptive() { CAP_BASELINE } else { 0 };
        let timing = if pebs.retire_latency { CAP_TIMING } else { 0 };
        CAP_TRAP | CAP_ARCH_REGS | format | baseline | timing
    }

    /// Returns the general counter that the list must name for an event to count on counter
    /// `index`: counter 3 for load latency on the counters that count it with PEBS, otherwise
    /// `index` itself.
    pub(super) fn listed_counter(&self, select: Select, index: usize) -> usize {
        const COUNTER: usize = 3;
        let latency = self.pebs.map_or(0, |pebs| pebs.load_latency);
        if (latency >> index) & 1 != 0
            && select.source(self.model, COUNTER).1 == Some(event::Register::LoadLatency)
        {
            COUNTER
        } else {
            index
        }
    }

    /// Returns whether general counter `index` samples an event precisely.
    pub(super) fn samples_precisely(&self, select: Select, index: usize) -> bool {
        match self.pebs.map(|pebs| pebs.sampled) {
            Some(Sampled::All) => true,
            Some(Sampled::First) => index == 0,
            Some(Sampled::ListedFirst) => index == 0 && select.is_precise(self.model, index),
            Some(Sampled::Listed) | None => {
                index < FIRST_FOUR && select.is_precise(self.model, index)
            }
        }
    }

    /// Returns the counters that are enabled in IA32_PEBS_ENABLE and sample their event precisely,
    /// as bits of IA32_PERF_GLOBAL_CTRL.
    fn sampled(&self) -> u64 {
        // The usual case.
        if self.regs.pebs.enable == 0 {
            return 0;
        }
        let general = self.regs.general[..self.generals].iter().zip(0..);
        let precise = general.filter(|(general, _)| general.precise);
        let precise = precise.fold(0, |mask, (_, i)| mask | (1 << i));
        // Without Extended PEBS, these bits are for load latency.
        let fixed = if self.is_extended() {
            !0 << FIXED_SHIFT
        } else {
            0
        };
        self.regs.pebs.enable & self.counter_bits() & (precise | fixed)
    }

    /// Arms a counter that has overflowed, if it is sampled.
    pub(super) fn arm(&mut self, counter: usize) {
        self.regs.pebs.armed |= self.sampled() & (1 << counter);
    }

    /// Disarms the counter that a write of this register changes.
    pub(super) fn disarm(&mut self, register: Msr) {
        let counter = match register {
            Msr::Pmc(index) | Msr::FullPmc(index) | Msr::Select(index) => index,
            Msr::Fixed(index) => FIXED_SHIFT + index,
            _ => return,
        };
        self.regs.pebs.armed &= !(1 << counter);
    }

    /// Marks the record of an armed counter as due, if `retired` has its event.
    pub(super) fn pebs_events(&mut self, counter: usize, events: u64, retired: &Retired) {
        let pebs = &mut self.regs.pebs;
        // The events of an instruction that faulted do not retire.
        if events != 0 && retired[retired::INSTRUCTIONS] != 0 {
            pebs.due |= pebs.armed & pebs.enable & (1 << counter);
        }
    }

    /// Cancels the due record, because its instruction did not retire after all. The next
    /// instruction with the event writes the record.
    pub(super) fn cancel_record(&mut self) {
        self.regs.pebs.due = 0;
    }

    /// Returns a counter and what it counts.
    fn counter_of(&self, counter: usize) -> (&Counter, Source) {
        match counter.checked_sub(FIXED_SHIFT) {
            None => (
                &self.regs.general[counter].counter,
                self.general_source(counter),
            ),
            Some(index) => (&self.regs.fixed[index], self.fixed_source(index)),
        }
    }

    /// Returns the minimum number of instructions until any of these counters overflows or, if it
    /// is armed, writes a record.
    fn instructions_to_step(&self, counters: u64) -> Option<u64> {
        let counters = counters & self.sampled();
        let steps = (0..u64::BITS as usize)
            .filter(|bit| counters & (1 << bit) != 0)
            .filter_map(|bit| {
                let (counter, source) = self.counter_of(bit);
                let before = self.before(bit);
                if self.regs.pebs.armed & (1 << bit) != 0 {
                    counter.instructions_to(1, source, &before)
                } else {
                    counter.instructions_to_overflow(source, &before)
                }
            });
        steps.min()
    }

    /// Returns whether QEMU has to run one instruction at a time: within a block, a counter
    /// overflows or a record becomes due.
    pub(super) fn is_precise(&self) -> bool {
        self.sample_due()
            || self.sampled() != 0
                && self
                    .instructions_to_step(self.active(false) | self.active(true))
                    .is_some_and(|instructions| instructions <= BLOCK)
    }

    /// Returns how many instructions may retire before QEMU has to call [`Pmu::retire`], given the
    /// counters that count at this privilege level: as many as [`Pmu::instructions_to_step`]
    /// returns, less a [`BLOCK`] unless QEMU runs single instructions.
    pub(super) fn instructions_to_record(&self, active: u64) -> Option<u64> {
        let instructions = self.instructions_to_step(active)?;
        if self.counting() == Counting::Each {
            Some(instructions)
        } else {
            Some(instructions.saturating_sub(BLOCK))
        }
    }

    /// Returns whether QEMU has to call [`Pmu::sample`].
    pub fn sample_due(&self) -> bool {
        self.regs.pebs.due != 0
    }

    /// Writes the record of the instruction that has just retired, and reloads the counters that it
    /// is for. The record is lost if a page is missing or the buffer is full.
    pub fn sample(&mut self, sample: &Sample, memory: &mut dyn Memory) {
        let due = std::mem::take(&mut self.regs.pebs.due);
        self.regs.pebs.armed &= !due;
        if due == 0 {
            return;
        }
        let mut record = self.pebs_record(due, sample);
        let mut wrong = None;
        if self.injected.has(Injected::WRONG_RECORDS) {
            wrong = self.regs.pebs.random.spoil(&mut record);
        }
        self.regs.global_status &= !due;
        if self.store(&record, wrong, memory) == Some(true) {
            self.regs.global_status |= OVF_DS_BUFFER;
            self.pending.request(self.injected.has(Injected::LATE_PMI));
        }
        self.reload(due, memory);
    }

    /// Stores a record in the buffer, whose index changes by `wrong` if that is given. Returns
    /// whether to raise the PMI of the buffer: if the threshold is reached, or `wrong` is given.
    /// Returns `None` if the record is lost.
    fn store(&self, record: &[u64], wrong: Option<u64>, memory: &mut dyn Memory) -> Option<bool> {
        let area = self.regs.pebs.ds_area;
        let field = |offset: u64| memory.word(area.wrapping_add(offset));
        let (base, index) = (field(DS_BASE)?, field(DS_INDEX)?);
        let (maximum, threshold) = (field(DS_MAXIMUM)?, field(DS_THRESHOLD)?);
        let end = index.checked_add(8 * record.len() as u64)?;
        let stored = index >= base
            && end <= maximum
            && memory.write_words(index, record)
            && memory.write_words(
                area.wrapping_add(DS_INDEX),
                &[wrong.map_or(end, |by| index.wrapping_add(by))],
            );
        stored.then_some(wrong.is_some() || end >= threshold)
    }

    /// Reloads counters with their reset values.
    fn reload(&mut self, counters: u64, memory: &dyn Memory) {
        let area = self.regs.pebs.ds_area;
        let reset = |number: u64| memory.word(area.wrapping_add(DS_RESET + 8 * number));
        for bit in (0..u64::BITS as usize).filter(|bit| counters & (1 << bit) != 0) {
            let (number, counter) = match bit.checked_sub(FIXED_SHIFT) {
                None => (bit as u64, &mut self.regs.general[bit].counter),
                Some(index) => (DS_GENERALS + index as u64, &mut self.regs.fixed[index]),
            };
            if let Some(value) = reset(number) {
                counter.set(value);
            }
        }
    }
}
