// SPDX-License-Identifier: GPL-2.0

//! Samples from PEBS records.

use crate::{
    driver::{
        unit::lbr::InPmi,
        Driver, //
    },
    kern::{
        percpu::CpuCell,
        regs::Regs, //
    },
    logic::{
        capabilities::PebsFormat,
        model::{
            pebs_events::PebsData,
            Quirk, //
        },
        pmu::PmuInfo,
        regs::event_select::EventSelect,
        sample::pebs::{
            fixup::{
                last_instruction,
                search,
                Search,
                MAX_CODE, //
            },
            record::{
                Access,
                Record, //
            },
        },
    },
    perf::{
        Event,
        OnCpu,
        Sample,
        Weight, //
    },
    x86::{
        code::{
            self,
            Decoder, //
        },
        nmi::NmiContext,
        perf_regs::{
            is_32bit,
            PerfRegs, //
        },
        tsc::TscClock, //
    },
};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// A record, and the other data from which its sample is made.
pub(super) struct SampleInput<'a, 'r> {
    pub(super) record: &'a Record<'r>,
    pub(super) event: &'a Event<Driver>,
    /// The length of the period that has ended.
    pub(super) period: u64,
}

/// The data that all samples of one reading of the PEBS buffer share.
pub(super) struct Batch<'a, 'b> {
    /// The PMI's context; [`None`] if a callback makes the samples.
    pub(super) nmi: Option<&'a NmiContext>,
    /// The branches that the PMI has read.
    pub(super) branches: Option<&'a mut InPmi<'b>>,
    /// The registers for samples: the interrupted code's in a PMI, otherwise zeros. The address and
    /// the flags are the last sample's.
    pub(super) regs: PerfRegs<'a>,
    /// The clock of records, if records contain the time and the perf core uses the same clock.
    pub(super) clock: Option<&'a TscClock>,
}

impl Batch<'_, '_> {
    fn interrupted(&self) -> Option<&Regs> {
        self.nmi.map(NmiContext::regs)
    }

    /// Adds the time of the record, if the event samples it.
    #[inline(always)]
    fn add_time(&self, sample: &mut Sample<'_>, input: &SampleInput<'_, '_>) {
        if let (Some(clock), Some(tsc)) = (self.clock, input.record.tsc()) {
            if input.event.samples_time() {
                sample.add_time(clock.time(tsc));
            }
        }
    }
}

/// Hands the sample to the perf core: as an overflow, or only for output.
#[inline(always)]
fn deliver(
    cx: &OnCpu<'_, Driver>,
    event: &Event<Driver>,
    sample: &mut Sample<'_>,
    regs: &Regs,
    is_overflow: bool,
) {
    if is_overflow {
        event.overflow(cx, sample, regs);
    } else {
        event.output(cx, sample, regs);
    }
}

/// The conversion of a machine's records to samples.
pub(super) struct Samples {
    format: PebsFormat,
    /// Converts the time in records; [`None`] if they contain no time.
    clock: Option<TscClock>,
    /// Finds the sampled instruction; [`None`] if records contain its address.
    decoder: Option<Decoder>,
    /// Set if records contain the address of the next instruction, and not of the sampled one.
    traps: bool,
    /// Set if the latency field of a record contains two latencies.
    two_latencies: bool,
    /// Set if records contain the instruction's retire latency, in cycles.
    has_retire_latency: bool,
}

/// A buffer for the code between a branch and a sample, if records do not contain the address of
/// the instruction.
pub(super) type Code = CpuCell<Option<KVec<u8>>>;

/// Allocates the buffer for code on `cpu`. Fails with `ENOMEM`. Process context.
pub(super) fn new_code(cpu: CpuId, format: Option<PebsFormat>) -> Result<Code> {
    let code = match format {
        Some(format) if !format.has_ip() => Some(KVec::from_elem(0, MAX_CODE, GFP_KERNEL)?),
        _ => None,
    };
    Ok(CpuCell::new(cpu, code))
}

impl Samples {
    /// Binds the kernel's functions that samples from records of `pmu` need. Process context.
    pub(super) fn bind(format: PebsFormat, pmu: &PmuInfo) -> Result<Self> {
        let decodes = !format.has_ip();
        Ok(Self {
            format,
            clock: format.has_time().then(TscClock::bind).transpose()?,
            decoder: decodes.then(Decoder::bind).transpose()?,
            traps: pmu.capabilities.pebs_trap,
            two_latencies: pmu.model.has(Quirk::LatencyInTwoParts),
            has_retire_latency: pmu.capabilities.pebs_timing,
        })
    }

    /// Returns the clock of records, if records contain the time and the perf core uses the same
    /// clock.
    pub(super) fn clock(&self) -> Option<&TscClock> {
        self.clock.as_ref().filter(|clock| clock.is_used())
    }

    /// Makes a sample of a record, and hands it to the perf core: as an overflow, or only for
    /// output.
    ///
    /// Context: the PMI, or a callback while the PMU is disabled.
    #[inline(always)]
    pub(super) fn hand_over<'a>(
        &self,
        cx: &OnCpu<'_, Driver>,
        code: &Code,
        input: &SampleInput<'_, 'a>,
        is_overflow: bool,
        batch: &mut Batch<'a, '_>,
    ) {
        let needs_address_only = input
            .event
            .data()
            .precise
            .is_some_and(|it| it.needs_address_only);
        match input.record.ip().filter(|_| needs_address_only) {
            Some(ip) => Self::hand_over_address(cx, input, ip, is_overflow, batch),
            None => self.hand_over_parts(cx, code, input, is_overflow, batch),
        }
    }

    /// Does the work of [`hand_over`](Self::hand_over) for a sample that needs only the address
    /// `ip`, the period and the time.
    // A function of its own, so that other samples do not need the stack of this one.
    #[inline(never)]
    fn hand_over_address<'a>(
        cx: &OnCpu<'_, Driver>,
        input: &SampleInput<'_, 'a>,
        ip: u64,
        is_overflow: bool,
        batch: &mut Batch<'a, '_>,
    ) {
        let mut sample = Sample::new(input.period);
        batch.regs.set_ip(ip, true);
        batch.add_time(&mut sample, input);
        deliver(
            cx,
            input.event,
            &mut sample,
            batch.regs.as_regs(),
            is_overflow,
        );
    }

    /// Does the work of [`hand_over`](Self::hand_over) for a sample that may need more than the
    /// address, period and time.
    #[inline(never)]
    fn hand_over_parts<'a>(
        &self,
        cx: &OnCpu<'_, Driver>,
        code: &Code,
        input: &SampleInput<'_, 'a>,
        is_overflow: bool,
        batch: &mut Batch<'a, '_>,
    ) {
        let SampleInput { record, event, .. } = *input;
        let irqs = cx.irqs();
        let mut recorded = if self.format == PebsFormat::Adaptive && event.samples_branches() {
            cx.pmu().ops().recorded_branches(irqs)
        } else {
            None
        };
        let Some(precise) = event.data().precise else {
            return;
        };
        let mut sample = Sample::new(input.period);
        // Unwinds from the interrupted registers: the function that was running when the record was
        // written may have returned.
        sample.add_callchain(event, batch.interrupted());
        let registers = record.flags_and_next_ip();
        if let Some((flags, _)) = registers {
            batch.regs.set_flags(flags);
        }
        if event.samples_registers() {
            if let Some(general) = record.general() {
                batch.regs.set_general(&general);
            }
        }
        let (ip, exact) = self.address(code, input, precise.level, batch, irqs);
        batch.regs.set_ip(ip, exact);
        if let Some(xmm) = record.xmm() {
            batch.regs.set_xmm(xmm);
        }
        if let Some(access) = record.access() {
            self.add_access(&mut sample, input, precise.data, access, cx);
        }
        batch.add_time(&mut sample, input);
        if let Some(recorded) = &mut recorded {
            // The record lacks the number of the latest branch. If the record has raised this PMI,
            // the number that the register has now is right, except for a branch or two.
            let at_once = batch.nmi.is_some() && !event.data().records_can_wait();
            let latest = at_once && event.samples_latest_branch();
            recorded.take_recorded(record.branches(), latest, irqs);
            recorded.add_to(&mut sample, event, irqs);
        } else if event.samples_branches() {
            if let Some(branches) = batch.branches.as_deref_mut() {
                branches.add_to(&mut sample, event, irqs);
            }
        }
        deliver(cx, event, &mut sample, batch.regs.as_regs(), is_overflow);
        if event.samples_registers() {
            // Other events must not sample the registers of this record.
            batch.regs.reset(batch.nmi.map(NmiContext::regs));
        }
    }

    /// Returns the address of the sample, and whether it is exactly the address of the sampled
    /// instruction.
    // Not inlined: its stack frame must be gone when the perf core gets the sample.
    #[inline(never)]
    fn address(
        &self,
        code: &Code,
        input: &SampleInput<'_, '_>,
        level: u8,
        batch: &Batch<'_, '_>,
        irqs: &LocalInterruptDisabled,
    ) -> (u64, bool) {
        let SampleInput { record, event, .. } = *input;
        let next = record.flags_and_next_ip().map(|(_, next_ip)| next_ip);
        match (record.ip(), next) {
            (_, Some(next)) if level < 2 => (next, false),
            (Some(ip), _) => (ip, true),
            // PEBS is a fault here, not a trap: records contain the address of the instruction
            // itself.
            (None, Some(next)) if !self.traps => (next, true),
            (None, Some(next)) => {
                let latest = batch.branches.as_deref().and_then(InPmi::latest);
                let in_kernel = event.data().select.has(EventSelect::OS);
                let search = latest.map(|(from, to)| search(next, from, to, in_kernel));
                let found = search.and_then(|search| self.before(code, batch, next, search, irqs));
                found.map_or((next, false), |ip| (ip, true))
            }
            (None, None) => (0, false),
        }
    }

    /// Returns the address of the instruction before the one at `next`, by completing `search`.
    fn before(
        &self,
        code: &Code,
        batch: &Batch<'_, '_>,
        next: u64,
        search: Search,
        irqs: &LocalInterruptDisabled,
    ) -> Option<u64> {
        let (at, size) = match search {
            Search::Found(ip) => return Some(ip),
            Search::Unknown => return None,
            Search::Read(at, size) => (at, size),
        };
        let decoder = self.decoder.as_ref()?;
        let mut buffer = code.borrow(irqs)?;
        let code = buffer.as_mut()?.get_mut(..size)?;
        if !code::read(at, code, irqs) {
            return None;
        }
        let is_64bit = next >> 63 != 0 || !batch.interrupted().is_some_and(is_32bit);
        let offset = last_instruction(code, |rest| decoder.length(rest, is_64bit))?;
        // CAST: no more than `MAX_CODE`.
        Some(at.wrapping_add(offset as u64))
    }

    /// Adds the memory access of the record.
    fn add_access(
        &self,
        sample: &mut Sample<'_>,
        input: &SampleInput<'_, '_>,
        data: PebsData,
        access: Access,
        cx: &OnCpu<'_, Driver>,
    ) {
        let SampleInput { record, event, .. } = *input;
        sample.add_address(event, access.address);
        let model = cx.pmu().ops().hardware.pmu.model;
        let source = model.data_sources.data_src(data, access.source);
        sample.add_data_source(event, source);
        sample.add_transaction(event, record.transaction());
        let (latency, instruction) = if self.two_latencies {
            // CAST: two fields of 16 bits.
            (access.latency >> 32 & 0xffff, access.latency as u16)
        } else {
            (access.latency, 0)
        };
        let cycles = record.transaction_cycles();
        let latency = match self.format {
            // The latency field has no meaning for events other than load latency.
            PebsFormat::Nehalem | PebsFormat::Haswell | PebsFormat::Skylake
                if data != PebsData::LoadLatency =>
            {
                cycles
            }
            PebsFormat::Adaptive if latency == 0 => cycles,
            _ => latency,
        };
        sample.add_weight(
            event,
            Weight {
                latency,
                instruction,
                retirement: if self.has_retire_latency {
                    record.retire_latency()
                } else {
                    0
                },
            },
        );
    }
}
