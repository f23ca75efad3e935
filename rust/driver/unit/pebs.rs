// SPDX-License-Identifier: GPL-2.0

//! Precise events: their overflows, which the processor itself records in the debug store of the CPU (PEBS).
//!
//! | State | Accessed by |
//! |---|---|
//! | [`Pebs`] | all; constant |
//! | [`Own`] | callbacks on the CPU, not the PMI |
//! | [`Shared`] | callbacks and the PMI on the CPU, as atomics; only callbacks write `counters`, `flags` and `enable` |
//! | the debug store | the processor while counters run; callbacks and the PMI while they are stopped |
//!
//! # Counts
//!
//! As the processor writes a record, it sets the counter back. So a count is up to date only if the records are
//! counted as well, which happens whenever an event is read. Samples are made of them later, and only once: where
//! the PMI finds them; when an event comes or leaves; and if they can wait, when the task leaves the CPU, since it is
//! the current task that samples belong to.
//!
//! # The PMI
//!
//! It may come while a callback counts records or makes samples of them. It leaves that to the callback then, which
//! looks again when it is through: [`Shared::with_records`]. No records are written meanwhile, since counters are
//! stopped, in both.

mod sample;

use crate::{
    driver::{
        cpu::{Cpu, Own as OwnOfCpu},
        event::{self, update_precise, EventData},
        facilities,
        hw::Hardware,
        Driver,
    },
    kern::percpu::CpuCell,
    logic::{
        capabilities::PebsFormat,
        model::{pebs_events::PebsData, Quirk},
        regs::counter::{CounterId, CounterKind, CounterMask, PerCounter},
        sample::pebs::{
            fixup::MAX_CODE,
            record::{Groups, Owners, Record, Records},
        },
        tried::Feature,
    },
    perf::{self, Event, OnCpu, PmuDisabled, Sample},
    x86::{
        builtin::{Builtin, Precision},
        code::Decoder,
        guest::Guests,
        nmi::NmiContext,
        perf_regs::Space,
        tsc::TscClock,
    },
};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use kernel::{cpu::CpuId, interrupt::LocalInterruptDisabled, prelude::*};

use super::lbr::InPmi;

/// PEBS of the machine.
pub(in crate::driver) struct Pebs {
    format: PebsFormat,
    precision: Precision,
    /// Where records tell the time.
    clock: Option<TscClock>,
    /// Where records do not tell the address of the instruction.
    decoder: Option<Decoder>,
    guests: Guests,
    /// Set if records have the address of the next instruction, and not of the instruction itself.
    traps: bool,
    /// Set if the latency in a record is two.
    two_latencies: bool,
    /// Set if records tell the cycles to the instruction's retirement.
    tells_retirement: bool,
    /// Set if PEBS_ENABLE has bits for load latencies.
    enables_latency: bool,
    /// The largest number of records that are written from when a PMI is raised until counters are stopped.
    reserve: usize,
}

impl Pebs {
    /// Binds what it takes to use PEBS on `hardware`'s machine. [`None`] if the machine does not have it or it cannot
    /// be used, which is logged; the PMU does not have it then.
    ///
    /// `builtin` is the built-in driver, if it has initialised: without, there is no debug store. Process context.
    pub(in crate::driver) fn find(
        hardware: &mut Hardware,
        builtin: Option<&Builtin>,
    ) -> Option<Self> {
        let pebs = Self::find_usable(hardware, builtin);
        if pebs.is_none() {
            hardware.pmu.capabilities.pebs_format = None;
        }
        pebs
    }

    fn find_usable(hardware: &Hardware, builtin: Option<&Builtin>) -> Option<Self> {
        let pmu = &hardware.pmu;
        let capabilities = &pmu.capabilities;
        let format = capabilities.pebs_format?;
        if !facilities::was_tried(Feature::PreciseEvents) {
            return None;
        }
        let bound = || -> Result<Self> {
            builtin.ok_or(ENODEV)?;
            perf::bind_output()?;
            perf::bind_sched_task()?;
            let decodes = !format.tells_ip();
            let counters = if pmu.has_extended_registers() {
                capabilities.counters
            } else {
                capabilities.counters.gp()
            };
            Ok(Self {
                format,
                precision: Precision::bind()?,
                clock: format.tells_time().then(TscClock::bind).transpose()?,
                decoder: decodes.then(Decoder::bind).transpose()?,
                guests: Guests::bind()?,
                traps: capabilities.pebs_trap,
                two_latencies: pmu.model.has(Quirk::LatencyInTwoParts),
                tells_retirement: capabilities.pebs_timing,
                enables_latency: capabilities.version < 5,
                // CAST: no more than there are counters.
                reserve: counters.weight() as usize,
            })
        };
        bound()
            .inspect_err(|error| {
                pr_notice!("PEBS cannot be used ({error:?}): no precise events\n");
            })
            .ok()
    }

    /// Returns the greatest precision, which a microcode update may change. Process context.
    pub(in crate::driver) fn max_precise(&self, hardware: &Hardware) -> u8 {
        self.precision.greatest().min(hardware.pmu.max_precise())
    }

    /// Returns whether records have branches with them.
    pub(in crate::driver) fn records_branches(&self) -> bool {
        self.format == PebsFormat::Adaptive
    }

    /// Returns the bits of PEBS_ENABLE beside the counter's own.
    fn flags(&self, event: &EventData, counter: CounterId) -> u64 {
        /// PEBS_ENABLE: records have the address and the level of stores.
        const STORES: u64 = 1 << 63;
        match event.precise.map(|precise| precise.data) {
            Some(PebsData::LoadLatency) if self.enables_latency => counter.mask().bits() << 32,
            Some(PebsData::Store) => STORES,
            _ => 0,
        }
    }
}

/// Returns the period that the processor can start anew for an event: 0 if its records are to wake the user one by one,
/// it has a frequency, or its periods are not those that counters can be started with.
fn reload(event: &Event<Driver>, hardware: &Hardware) -> u64 {
    let data = event.data();
    let limits = data.limits(hardware);
    let period = event.sample_period();
    let reloads = data.precise.is_some_and(|precise| precise.reloads);
    // CAST: no period has the sign bit.
    let start = limits.start(data.select, period, period as i64);
    let same = start.value == period.wrapping_neg() & limits.width.mask();
    if reloads && same {
        period
    } else {
        0
    }
}

/// The state of a CPU's precise events that callbacks share with the PMI.
pub(in crate::driver) struct Shared {
    /// The counters with precise events that have been started, and may have records.
    counters: AtomicU64,
    /// Those of them that count in virtual machines alone: KVM's for its guests' precise events. The records of these
    /// are in the buffer of the guest.
    of_guests: AtomicU64,
    /// The bits of PEBS_ENABLE beside them.
    flags: AtomicU64,
    /// The value of PEBS_ENABLE.
    enable: AtomicU64,
    /// The words of the buffer that are in the counts already.
    counted: AtomicUsize,
    /// Set while someone uses the records.
    busy: AtomicBool,
    /// Set if an NMI came meanwhile that would have used them.
    missed: AtomicBool,
    /// Code between a branch and a sample, where records do not tell the address of the instruction.
    code: CpuCell<Option<KVec<u8>>>,
}

impl Shared {
    pub(in crate::driver) fn new(cpu: CpuId, hardware: &Hardware) -> Result<Self> {
        let format = hardware.pmu.capabilities.pebs_format;
        let code = match format {
            Some(format) if !format.tells_ip() => Some(KVec::from_elem(0, MAX_CODE, GFP_KERNEL)?),
            _ => None,
        };
        Ok(Self {
            counters: AtomicU64::new(0),
            of_guests: AtomicU64::new(0),
            flags: AtomicU64::new(0),
            enable: AtomicU64::new(0),
            counted: AtomicUsize::new(0),
            busy: AtomicBool::new(false),
            missed: AtomicBool::new(false),
            code: CpuCell::new(cpu, code),
        })
    }

    /// Returns the counters with precise events. Their overflows raise no PMI.
    #[inline]
    pub(in crate::driver) fn counters(&self) -> CounterMask {
        CounterMask::from_bits(self.counters.load(Relaxed))
    }

    /// Records whether `counter`, which has a precise event, counts in virtual machines alone.
    fn set_of_guest(&self, counter: CounterId, yes: bool) {
        let mut counters = CounterMask::from_bits(self.of_guests.load(Relaxed));
        if yes {
            counters.insert(counter);
        } else {
            counters.remove(counter);
        }
        self.of_guests.store(counters.bits(), Relaxed);
    }

    /// Calls `f`, which uses the records, unless it interrupts or is called by another that does. Calls it again if
    /// that was to use them meanwhile.
    fn with_records(&self, mut f: impl FnMut()) {
        if self.busy.load(Relaxed) {
            self.missed.store(true, Relaxed);
            return;
        }
        loop {
            self.busy.store(true, Relaxed);
            self.missed.store(false, Relaxed);
            f();
            // From here on, an NMI uses them itself.
            self.busy.store(false, Relaxed);
            if !self.missed.load(Relaxed) {
                return;
            }
        }
    }
}

/// The state of a CPU's precise events that callbacks alone use.
#[derive(Default)]
pub(in crate::driver) struct Own {
    /// The value of PEBS_DATA_CFG, if it is known.
    groups: Option<Groups>,
    /// The value of PEBS_DATA_CFG that the built-in driver has left, from the first event on.
    before: Option<u64>,
}

/// The numbers of records for each counter.
struct Tally {
    /// Those that become samples.
    kept: PerCounter<u16>,
    /// Those that may have been for other counters.
    lost: PerCounter<u16>,
}

impl Tally {
    /// No records.
    const NOTHING: Self = Self {
        kept: PerCounter::new(0),
        lost: PerCounter::new(0),
    };

    /// Counts the records of `words` for `precise` events. They were [none](Self::NOTHING) before.
    fn add(&mut self, format: PebsFormat, words: &[AtomicU64], precise: CounterMask) {
        for record in Records::new(format, words) {
            let (owners, number) = match record.owners(format, precise) {
                Owners::Of(owners) => (owners, &mut self.kept),
                Owners::OneOf(owners) => (owners, &mut self.lost),
            };
            for counter in owners {
                // No more than fit into the buffer.
                number[counter] = number[counter].wrapping_add(1);
            }
        }
    }

    /// Takes one of the records for `counter` that become samples. Returns whether it is the last.
    fn is_last(&mut self, counter: CounterId) -> bool {
        let left = self.kept[counter].saturating_sub(1);
        self.kept[counter] = left;
        left == 0
    }

    /// Returns the number of records for `counter`.
    fn all(&self, counter: CounterId) -> u16 {
        self.kept[counter].wrapping_add(self.lost[counter])
    }
}

impl Driver {
    /// Lets the processor record the overflows of the precise `event` when `counter` counts it. The PMU is disabled, and
    /// the counter is programmed next.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn start_precise(
        &self,
        cx: &OnCpu<'_, Self>,
        counter: CounterId,
        event: &Event<Self>,
    ) {
        let Some(pebs) = &self.pebs else { return };
        let cpu = self.cpus.this_cpu(cx.irqs());
        let limits = &self.hardware.limits;
        let period = reload(event, &self.hardware);
        event.data().set_reload(period);
        if let Some(store) = cpu.shared.debug_store() {
            let value = period.wrapping_neg() & limits.width.mask();
            match counter.kind() {
                CounterKind::Gp(n) => store.set_reload(false, n, value, cx.irqs()),
                CounterKind::Fixed(n) => store.set_reload(true, n, value, cx.irqs()),
                CounterKind::Metric(_) | CounterKind::GuestBranches => {}
            }
        }
        let flags = cpu.pebs.flags.load(Relaxed) | pebs.flags(event.data(), counter);
        cpu.pebs.flags.store(flags, Relaxed);
        let counters = cpu.pebs.counters() | counter.mask();
        cpu.pebs.counters.store(counters.bits(), Relaxed);
        if !event.data().counts_in.host {
            cpu.pebs.set_of_guest(counter, true);
        }
    }

    /// Makes samples of the records, and has no more overflows of the precise `event` on `counter` recorded: it stops,
    /// or leaves the counter. The PMU is disabled.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn stop_precise(
        &self,
        cx: &OnCpu<'_, Self>,
        counter: CounterId,
        event: &Event<Self>,
    ) {
        let Some(pebs) = &self.pebs else { return };
        let cpu = self.cpus.this_cpu(cx.irqs());
        self.use_records(cx, cpu, None, None);
        let mut counters = cpu.pebs.counters();
        counters.remove(counter);
        cpu.pebs.counters.store(counters.bits(), Relaxed);
        cpu.pebs.set_of_guest(counter, false);
        // Events that record stores are on one counter alone: no other has the bit.
        let flags = cpu.pebs.flags.load(Relaxed) & !pebs.flags(event.data(), counter);
        cpu.pebs.flags.store(flags, Relaxed);
    }

    /// Brings PEBS in line with the precise events that are started, and with the schedule if that has `changed`. To
    /// be called when the PMU is enabled, before counters run.
    #[inline]
    pub(in crate::driver) fn prepare_pebs(
        &self,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut OwnOfCpu,
        changed: bool,
    ) {
        if let Some(pebs) = &self.pebs {
            let counters = cpu.pebs.counters();
            let enable = counters.bits() | cpu.pebs.flags.load(Relaxed);
            if enable != cpu.pebs.enable.load(Relaxed) || changed && !counters.is_empty() {
                self.prepare_changed_pebs(pebs, cx, cpu, own, enable);
            }
        }
    }

    #[inline(never)]
    fn prepare_changed_pebs(
        &self,
        pebs: &Pebs,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut OwnOfCpu,
        enable: u64,
    ) {
        let Some(store) = cpu.shared.debug_store() else {
            return;
        };
        // Records that wait might already be beyond another threshold.
        self.use_records(cx, cpu, None, None);
        let events = own.schedule.entries().filter_map(|it| cx.event(it.event));
        let (groups, all_wait) = events
            .filter_map(|event| event.data().precise)
            .fold((Groups::default(), true), |(groups, all_wait), precise| {
                (groups.or(precise.groups), all_wait && precise.can_wait)
            });
        let words = pebs.format.words(groups);
        let threshold = if all_wait {
            let reserve = words.wrapping_mul(pebs.reserve);
            store.capacity().saturating_sub(reserve)
        } else {
            words
        };
        store.set_threshold(threshold, cx.irqs());
        let adaptive = pebs.format == PebsFormat::Adaptive;
        let other_groups = adaptive && enable != 0 && own.pebs.groups != Some(groups);
        if other_groups {
            own.pebs.groups = Some(groups);
        }
        let data_config = own.pebs.groups.map_or(0, Groups::bits);
        cpu.shared.tell_pebs(enable, data_config);
        if other_groups {
            store.set_data_config(data_config, cx.irqs());
        }
        if enable != cpu.pebs.enable.load(Relaxed) {
            cpu.pebs.enable.store(enable, Relaxed);
            store.set_enable(enable, cx.irqs());
        }
    }

    /// Lets no overflow be recorded until PEBS is [prepared](Self::prepare_pebs), when the PMU is enabled.
    pub(in crate::driver) fn suspend_pebs(cpu: &Cpu, irqs: &LocalInterruptDisabled) {
        if cpu.pebs.enable.load(Relaxed) == 0 {
            return;
        }
        if let Some(store) = cpu.shared.debug_store() {
            cpu.shared.tell_pebs(0, cpu.shared.told_data_config());
            cpu.pebs.enable.store(0, Relaxed);
            store.set_enable(0, irqs);
        }
    }

    /// Makes PEBS of this CPU, on which no event counts, ready for use after its registers may have held anything:
    /// another driver has used them, the CPU was off, or the machine was suspended.
    pub(in crate::driver) fn reset_pebs(
        &self,
        cpu: &Cpu,
        own: &mut OwnOfCpu,
        irqs: &LocalInterruptDisabled,
    ) {
        if self.pebs.is_some() {
            let told = || cpu.shared.told_data_config();
            own.pebs.before.get_or_insert_with(told);
            Self::end_pebs(cpu, own, 0, irqs);
        }
    }

    /// Ends all use of PEBS on this CPU, on which no event counts: it goes down, or the driver is being unloaded. The
    /// built-in driver finds PEBS_DATA_CFG as it has left it.
    pub(in crate::driver) fn give_pebs_back(
        &self,
        cpu: &Cpu,
        own: &mut OwnOfCpu,
        irqs: &LocalInterruptDisabled,
    ) {
        let before = own.pebs.before.take();
        if let (Some(pebs), Some(data_config)) = (&self.pebs, before) {
            Self::end_pebs(cpu, own, data_config, irqs);
            let store = cpu.shared.debug_store();
            if let Some(store) = store.filter(|_| pebs.format == PebsFormat::Adaptive) {
                store.set_data_config(data_config, irqs);
            }
        }
    }

    /// Lets no overflow be recorded, and discards the records. Tells others that PEBS_DATA_CFG has this value.
    fn end_pebs(cpu: &Cpu, own: &mut OwnOfCpu, data_config: u64, irqs: &LocalInterruptDisabled) {
        cpu.pebs.counters.store(0, Relaxed);
        cpu.pebs.of_guests.store(0, Relaxed);
        cpu.pebs.flags.store(0, Relaxed);
        cpu.pebs.counted.store(0, Relaxed);
        cpu.pebs.enable.store(0, Relaxed);
        own.pebs.groups = None;
        cpu.shared.tell_pebs(0, data_config);
        if let Some(store) = cpu.shared.debug_store() {
            store.set_enable(0, irqs);
            store.clear(irqs);
        }
    }

    /// Makes samples of the records that wait when a task leaves this CPU.
    pub(in crate::driver) fn switch_pebs(&self, cx: &PmuDisabled<'_, Self>, cpu: &Cpu) {
        if self.pebs.is_some() && !cpu.pebs.counters().is_empty() {
            self.use_records(cx, cpu, None, None);
        }
    }

    /// Brings the count of the precise `event` up to date. Any context.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn read_precise(&self, cx: &OnCpu<'_, Self>, event: &Event<Self>) {
        if event.data().reload() == 0 {
            update_precise(event, 0, &self.hardware, cx.irqs());
            return;
        }
        // As in a PMI, which may come in between. 0 if the PMU is disabled.
        let cpu = self.cpus.this_cpu(cx.irqs());
        let shared = &cpu.shared;
        let enabled = shared.take_enabled();
        if !enabled.is_empty() {
            self.hardware.stop(cx.irqs());
        }
        self.count_records(cx, cpu);
        update_precise(event, 0, &self.hardware, cx.irqs());
        shared.set_enabled(enabled);
        if !enabled.is_empty() {
            // Such a PMI has stopped the recording, and left it so.
            self.go_on_recording(cpu, cx.irqs());
        }
        shared.run(&self.hardware, cx.irqs());
    }

    /// Brings the counts of precise events up to date with their records. The counters are stopped.
    pub(super) fn count_records(&self, cx: &OnCpu<'_, Self>, cpu: &Cpu) {
        let Some(pebs) = &self.pebs else { return };
        let count = || {
            if let Some(store) = cpu.shared.debug_store().filter(|it| it.has_records()) {
                let words = store.records(cx.irqs());
                self.count(pebs, cx, cpu, words, &mut { Tally::NOTHING });
            }
        };
        cpu.pebs.with_records(count);
    }

    /// Calls `f` for each precise event on the CPU with its counter, which is one of `counters`: of all with precise
    /// events, or of some of them.
    fn for_each_precise(
        &self,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        counters: CounterMask,
        mut f: impl FnMut(CounterId, &Event<Self>),
    ) {
        for counter in counters {
            let event = cpu.shared.last_event(counter).and_then(|id| cx.event(id));
            if let Some(event) = event.filter(|event| event.data().precise.is_some()) {
                f(counter, event);
            }
        }
    }

    /// Brings the counts of precise events up to date with the records in `words`, and counts these in `tally`, which
    /// is [empty](Tally::NOTHING).
    #[inline(never)]
    fn count(
        &self,
        pebs: &Pebs,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        words: &[AtomicU64],
        tally: &mut Tally,
    ) {
        let precise = cpu.pebs.counters();
        let counted = cpu.pebs.counted.load(Relaxed);
        cpu.pebs.counted.store(words.len(), Relaxed);
        let new = words.get(counted..).unwrap_or(&[]);
        tally.add(pebs.format, new, precise);
        self.for_each_precise(cx, cpu, precise, |counter, event| {
            let records = tally.all(counter);
            if records != 0 {
                update_precise(event, records.into(), &self.hardware, cx.irqs());
            }
        });
        if counted != 0 {
            *tally = Tally::NOTHING;
            tally.add(pebs.format, words, precise);
        }
    }

    /// Makes samples of all records: overflows in the PMI (`nmi`), of which `branches` are those that it has found. The
    /// counters are stopped.
    #[inline(never)]
    pub(in crate::driver) fn use_records(
        &self,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        nmi: Option<&NmiContext>,
        mut branches: Option<&mut InPmi<'_>>,
    ) {
        let Some(pebs) = &self.pebs else { return };
        if let Some(nmi) = nmi {
            self.tell_guest(pebs, cx, cpu, nmi);
        }
        cpu.pebs.with_records(|| {
            let store = cpu.shared.debug_store();
            if let Some(store) = store.filter(|store| store.has_records()) {
                let words = store.records(cx.irqs());
                self.make_samples(pebs, cx, cpu, words, nmi, branches.as_deref_mut());
                store.clear(cx.irqs());
                cpu.pebs.counted.store(0, Relaxed);
            }
        });
    }

    /// Tells KVM of an overflow of its guest's buffer, if the PMI has interrupted a guest with precise events: by an
    /// overflow of one of these, which KVM takes for that of the buffer (`__kvm_perf_overflow()`,
    /// `arch/x86/kvm/pmu.c:200`).
    ///
    /// Mainline: `x86_pmu_handle_guest_pebs()`, `arch/x86/events/intel/core.c:3773`.
    #[inline]
    fn tell_guest(&self, pebs: &Pebs, cx: &OnCpu<'_, Self>, cpu: &Cpu, nmi: &NmiContext) {
        let counters = CounterMask::from_bits(cpu.pebs.of_guests.load(Relaxed));
        if !counters.is_empty() && pebs.guests.are_interrupted(nmi) {
            self.overflow_of_guest(cx, cpu, counters, nmi);
        }
    }

    #[cold]
    #[inline(never)]
    fn overflow_of_guest(
        &self,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        counters: CounterMask,
        nmi: &NmiContext,
    ) {
        let active = |counter| cpu.shared.active_event(counter).and_then(|id| cx.event(id));
        if let Some(event) = counters.into_iter().find_map(active) {
            let mut sample = Sample::new(event.last_period().load(Relaxed));
            // The perf core looks for XMM registers behind the others, if the event samples them.
            let mut space = Space::new();
            let regs = space.begin(Some(nmi.regs()));
            event.overflow(cx, &mut sample, regs.as_regs());
        }
    }

    /// Makes samples of the records in `words`.
    fn make_samples(
        &self,
        pebs: &Pebs,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        words: &[AtomicU64],
        nmi: Option<&NmiContext>,
        branches: Option<&mut InPmi<'_>>,
    ) {
        let precise = cpu.pebs.counters();
        let mut space = Space::new();
        let mut batch = sample::Batch {
            nmi,
            branches,
            regs: space.begin(nmi.map(NmiContext::regs)),
            clock: pebs.clock.as_ref().filter(|clock| clock.is_used()),
        };
        let mut records = Records::new(pebs.format, words);
        if let (Some(record), 0) = (records.next(), records.left()) {
            if let Owners::Of(owners) = record.owners(pebs.format, precise) {
                // Most often.
                self.make_sample_of_one(pebs, cx, cpu, (&record, owners), &mut batch);
                return;
            }
        }
        self.make_samples_of_many(pebs, cx, cpu, words, &mut batch);
    }

    /// Makes samples of the only record, which belongs to the counters `owners`.
    // A function of its own, since one record does not need the stack that several do.
    #[inline(never)]
    fn make_sample_of_one<'a>(
        &self,
        pebs: &Pebs,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        (record, owners): (&Record<'a>, CounterMask),
        batch: &mut sample::Batch<'a, '_>,
    ) {
        let nmi = batch.nmi;
        let counted = cpu.pebs.counted.load(Relaxed) != 0;
        self.for_each_precise(cx, cpu, owners, |counter, event| {
            if !counted {
                update_precise(event, 1, &self.hardware, cx.irqs());
            }
            let of = (counter, event, record);
            self.make_sample(pebs, cx, cpu, of, nmi.is_some(), batch);
        });
    }

    /// Makes samples of several records, or of one that may belong to several counters.
    #[inline(never)]
    fn make_samples_of_many<'a>(
        &self,
        pebs: &Pebs,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        words: &'a [AtomicU64],
        batch: &mut sample::Batch<'a, '_>,
    ) {
        let nmi = batch.nmi;
        let precise = cpu.pebs.counters();
        let mut tally = Tally::NOTHING;
        self.count(pebs, cx, cpu, words, &mut tally);
        self.for_each_precise(cx, cpu, precise, |counter, event| {
            let lost = tally.lost[counter];
            if lost != 0 {
                if tally.kept[counter] == 0 {
                    self.begin_period(cx, counter, event);
                }
                event.log_lost_samples(cx, lost.into(), nmi.is_some());
            }
        });
        for record in Records::new(pebs.format, words) {
            let Owners::Of(owners) = record.owners(pebs.format, precise) else {
                continue;
            };
            self.for_each_precise(cx, cpu, owners, |counter, event| {
                let is_overflow = nmi.is_some() && tally.is_last(counter);
                let of = (counter, event, &record);
                self.make_sample(pebs, cx, cpu, of, is_overflow, batch);
            });
        }
    }

    /// Makes a sample of a record: that of the overflow itself if `is_overflow`.
    #[inline(always)]
    fn make_sample<'a>(
        &self,
        pebs: &Pebs,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        (counter, event, record): (CounterId, &Event<Self>, &Record<'a>),
        is_overflow: bool,
        batch: &mut sample::Batch<'a, '_>,
    ) {
        let mut period = event.data().reload();
        if period == 0 {
            period = event.last_period().load(Relaxed);
            self.begin_period(cx, counter, event);
        }
        if event.data().switches && is_overflow {
            self.end_turn(cx);
        }
        let made = sample::Made {
            record,
            event,
            period,
        };
        pebs.hand_over(cx, cpu, &made, self, is_overflow, batch);
    }

    /// Begins the next period of a precise event that the processor does not start anew: the counter counts from 0.
    fn begin_period(&self, cx: &OnCpu<'_, Self>, counter: CounterId, event: &Event<Self>) {
        let counts = event::counter(event) == Some(counter) && !event.is_stopped();
        if event.data().reload() == 0 && counts {
            event::restart(event, counter, &self.hardware, cx.irqs());
        }
    }
}
