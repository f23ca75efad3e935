// SPDX-License-Identifier: GPL-2.0

//! Precise events (PEBS): the processor itself records their overflows in the debug store of the
//! CPU.
//!
//! | State | Accessed by |
//! |---|---|
//! | [`Pebs`] | all; constant |
//! | [`PebsOwn`] | callbacks on the CPU, not the PMI |
//! | [`PebsPmiState`] | callbacks and the PMI on the CPU, as atomics; only callbacks write `counters`, `flags` and `enable` |
//! | the debug store | the processor while counters run; callbacks and the PMI while they are stopped |
//!
//! # Counts
//!
//! As the processor writes a record, it sets the counter back. So with auto-reload, bringing a
//! count up to date includes counting the records, which happens whenever such an event is read.
//! Each record becomes a sample later, and only once: in the PMI that finds it, or when a precise
//! event is started, is stopped or leaves. Records that can wait also become samples when the task
//! leaves the CPU, since samples belong to the current task.
//!
//! # The PMI
//!
//! The PMI may interrupt a callback that counts records or makes samples of them. It then leaves
//! the records to the callback, which looks again before it ends: [`PebsPmiState::with_records`].
//! No records are written meanwhile, since both run with counters stopped.

mod sample;

use super::{
    hooks::{
        PlanAndShadow,
        Platform,
        Pmi,
        Site,
        Unit, //
    },
    lbr::InPmi, //
};
use crate::{
    driver::{
        counter_use::CounterUse,
        event::{
            self,
            EventData, //
        },
        facilities,
        hw::Hardware,
        pmi::state::PmiState,
        Driver, //
    },
    logic::{
        capabilities::PebsFormat,
        model::pebs_events::PebsData,
        regs::counter::{
            CounterId,
            CounterKind,
            CounterMask,
            PerCounter, //
        },
        sample::pebs::record::{
            Groups,
            Owners,
            Record,
            Records, //
        },
        sched::cpu_schedule::CpuSchedule,
        tried::Feature, //
    },
    perf::{
        self,
        Event,
        EventId,
        OnCpu,
        PmuDisabled,
        Sample, //
    },
    x86::{
        builtin::{
            Builtin,
            Precision,
            StoreOfCpu, //
        },
        guest::Guests,
        intel::ds::DebugStore,
        nmi::NmiContext,
        perf_regs::Space, //
    },
};
use core::sync::atomic::{
    AtomicBool,
    AtomicU64,
    AtomicUsize,
    Ordering::Relaxed, //
};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// PEBS of the machine.
pub(in crate::driver) struct Pebs {
    format: PebsFormat,
    precision: Precision,
    samples: sample::Samples,
    guests: Guests,
    /// Set if PEBS_ENABLE has bits that enable load latencies.
    enables_latency: bool,
    /// The largest number of records that are written between the raising of a PMI and the stop of
    /// the counters.
    reserve: usize,
}

impl Pebs {
    /// Binds the kernel's functions that PEBS on `hardware`'s machine needs. [`None`] if the
    /// machine does not have PEBS, or if it cannot be used, which is logged.
    ///
    /// `builtin` is the built-in driver, if it has initialised; without it, there is no debug
    /// store. Process context.
    #[inline(never)]
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
            // Fixed counters have PEBS if every event can be precise.
            let counters = if pmu.model.pebs_events.has_others() {
                capabilities.counters
            } else {
                capabilities.counters.gp()
            };
            Ok(Self {
                format,
                precision: Precision::bind()?,
                samples: sample::Samples::bind(format, pmu)?,
                guests: Guests::bind()?,
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

    /// Returns the maximum `precise_ip`, which a microcode update may change. Process context.
    pub(in crate::driver) fn max_precise(&self, hardware: &Hardware) -> u8 {
        self.precision.max_precise().min(hardware.pmu.max_precise())
    }

    /// Returns whether records may contain branches.
    fn records_branches(&self) -> bool {
        self.format == PebsFormat::Adaptive
    }

    /// Returns the bits of PEBS_ENABLE that the event needs besides the bit of `counter`.
    fn flags(&self, event: &EventData, counter: CounterId) -> u64 {
        /// PEBS_ENABLE: records contain the address and the level of stores.
        const STORES: u64 = 1 << 63;
        match event.precise.map(|precise| precise.data) {
            Some(PebsData::LoadLatency) if self.enables_latency => counter.mask().bits() << 32,
            Some(PebsData::Store) => STORES,
            _ => 0,
        }
    }
}

/// Returns the auto-reload period of an event; 0 with per-sample wake-ups, a frequency, or a period
/// with which counters cannot be started exactly.
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
pub(in crate::driver) struct PebsPmiState {
    /// The counters with precise events that have been started, and may have records.
    counters: AtomicU64,
    /// The counters among these whose events count in virtual machines only: KVM's events, for its
    /// guests' precise events. Their records are in the buffer of the guest.
    of_guests: AtomicU64,
    /// The bits of PEBS_ENABLE besides those of `counters`.
    flags: AtomicU64,
    /// The value of PEBS_ENABLE.
    enable: AtomicU64,
    /// The number of words of the buffer whose records are already in the counts.
    counted: AtomicUsize,
    /// Set while a callback or the PMI uses the records.
    busy: AtomicBool,
    /// Set if an NMI meanwhile would have used the records.
    missed: AtomicBool,
    code: sample::Code,
    /// Access to the debug store. [`None`] if the built-in driver, which keeps it, has not
    /// initialised or is AMD's.
    store: Option<StoreOfCpu>,
}

impl PebsPmiState {
    /// Returns this state together with the `pmi_state`, both of which belong to this CPU.
    #[inline(always)]
    pub(in crate::driver) fn on<'a>(&'a self, pmi_state: &'a PmiState) -> Here<'a> {
        Here {
            pebs: self,
            pmi_state,
        }
    }

    /// Returns the debug store of the CPU, if there is one with a buffer for PEBS.
    #[inline]
    fn store(&self) -> Option<DebugStore<'_>> {
        self.store.as_ref()?.get()
    }

    /// Returns the counters with precise events. Their overflows raise no PMI.
    #[inline]
    pub(in crate::driver) fn counters(&self) -> CounterMask {
        CounterMask::from_bits(self.counters.load(Relaxed))
    }

    /// Records whether `counter`, which has a precise event, counts in virtual machines only.
    fn set_of_guest(&self, counter: CounterId, yes: bool) {
        let mut counters = CounterMask::from_bits(self.of_guests.load(Relaxed));
        if yes {
            counters.insert(counter);
        } else {
            counters.remove(counter);
        }
        self.of_guests.store(counters.bits(), Relaxed);
    }

    /// Calls `f`, which uses the records, unless this interrupts, or is called by, another user of
    /// the records. Calls `f` again if an NMI meanwhile would have used the records.
    fn with_records(&self, mut f: impl FnMut()) {
        if self.busy.load(Relaxed) {
            self.missed.store(true, Relaxed);
            return;
        }
        loop {
            self.busy.store(true, Relaxed);
            self.missed.store(false, Relaxed);
            f();
            // From here on, an NMI uses the records itself.
            self.busy.store(false, Relaxed);
            if !self.missed.load(Relaxed) {
                return;
            }
        }
    }
}

/// The state of a CPU's precise events that callbacks alone use.
#[derive(Default)]
pub(in crate::driver) struct PebsOwn {
    /// The value of PEBS_DATA_CFG, if it is known.
    groups: Option<Groups>,
    /// The value of PEBS_DATA_CFG that the built-in driver has left, from the first event on.
    before: Option<u64>,
}

/// The numbers of records for each counter.
struct Tally {
    /// Records that become samples.
    kept: PerCounter<u16>,
    /// Records that may have been for other counters.
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
                // Does not overflow: the buffer has fewer records.
                number[counter] = number[counter].wrapping_add(1);
            }
        }
    }

    /// Subtracts one of the records for `counter` that become samples. Returns whether it is the
    /// last.
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

/// PEBS of this CPU.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Here<'a> {
    pebs: &'a PebsPmiState,
    pmi_state: &'a PmiState,
}

impl Pebs {
    /// Prepares the recording of overflows of the precise `event` on `counter`. The PMU is
    /// disabled, and the counter is programmed next.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn start_event(
        &self,
        cx: &OnCpu<'_, Driver>,
        here: Here<'_>,
        counter: CounterId,
        event: &Event<Driver>,
    ) {
        let hardware = &cx.pmu().ops().hardware;
        let limits = &hardware.limits;
        let period = reload(event, hardware);
        here.pmi_state.uses.on(counter).set_reload(period);
        if let Some(store) = here.pebs.store() {
            let value = period.wrapping_neg() & limits.width.mask();
            match counter.kind() {
                CounterKind::Gp(n) => store.set_reload(false, n, value, cx.irqs()),
                CounterKind::Fixed(n) => store.set_reload(true, n, value, cx.irqs()),
                CounterKind::Metric(_) | CounterKind::GuestBranches => {}
            }
        }
        let flags = here.pebs.flags.load(Relaxed) | self.flags(event.data(), counter);
        here.pebs.flags.store(flags, Relaxed);
        let counters = here.pebs.counters() | counter.mask();
        here.pebs.counters.store(counters.bits(), Relaxed);
        if !event.data().counts_in.host {
            here.pebs.set_of_guest(counter, true);
        }
    }

    /// Makes samples of the records, and ends the recording of overflows of the precise `event` on
    /// `counter`: the event stops, or leaves the counter. The PMU is disabled.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn stop_event(
        &self,
        cx: &OnCpu<'_, Driver>,
        here: Here<'_>,
        counter: CounterId,
        event: &Event<Driver>,
    ) {
        self.use_records(cx, here, None, None);
        let mut counters = here.pebs.counters();
        counters.remove(counter);
        here.pebs.counters.store(counters.bits(), Relaxed);
        here.pebs.set_of_guest(counter, false);
        // Events that record stores are on one counter only, so no other event needs the bit.
        let flags = here.pebs.flags.load(Relaxed) & !self.flags(event.data(), counter);
        here.pebs.flags.store(flags, Relaxed);
    }

    #[inline(never)]
    fn prepare_changed(
        &self,
        own: &mut PebsOwn,
        here: Here<'_>,
        cx: &PmuDisabled<'_, Driver>,
        schedule: &CpuSchedule<EventId>,
        enable: u64,
    ) {
        let Some(store) = here.pebs.store() else {
            return;
        };
        // Waiting records may already exceed the new threshold.
        self.use_records(cx, here, None, None);
        let events = schedule.entries().filter_map(|it| cx.event(it.event));
        let (groups, all_wait) = events.filter_map(|event| event.data().precise).fold(
            (Groups::default(), true),
            |(groups, all_wait), precise| {
                (
                    groups.or(precise.groups),
                    all_wait && precise.records_can_wait,
                )
            },
        );
        let words = self.format.words(groups);
        let threshold = if all_wait {
            let reserve = words.wrapping_mul(self.reserve);
            store.capacity().saturating_sub(reserve)
        } else {
            words
        };
        store.set_threshold(threshold, cx.irqs());
        let adaptive = self.format == PebsFormat::Adaptive;
        let other_groups = adaptive && enable != 0 && own.groups != Some(groups);
        if other_groups {
            own.groups = Some(groups);
        }
        let data_config = own.groups.map_or(0, Groups::bits);
        here.pmi_state.hypervisors.publish_pebs(enable, data_config);
        if other_groups {
            store.set_data_config(data_config, cx.irqs());
        }
        if enable != here.pebs.enable.load(Relaxed) {
            here.pebs.enable.store(enable, Relaxed);
            store.set_enable(enable, cx.irqs());
        }
    }

    /// Stops the recording of overflows, and discards the records. Publishes `data_config` as the
    /// value of PEBS_DATA_CFG.
    fn end(own: &mut PebsOwn, here: Here<'_>, data_config: u64, irqs: &LocalInterruptDisabled) {
        here.pebs.counters.store(0, Relaxed);
        here.pebs.of_guests.store(0, Relaxed);
        here.pebs.flags.store(0, Relaxed);
        here.pebs.counted.store(0, Relaxed);
        here.pebs.enable.store(0, Relaxed);
        own.groups = None;
        here.pmi_state.hypervisors.publish_pebs(0, data_config);
        if let Some(store) = here.pebs.store() {
            store.set_enable(0, irqs);
            store.clear(irqs);
        }
    }

    /// Brings the counts of precise events up to date with their records. The counters are stopped.
    pub(in crate::driver) fn count_records(&self, cx: &OnCpu<'_, Driver>, here: Here<'_>) {
        let count = || {
            if let Some(store) = here.pebs.store().filter(|it| it.has_records()) {
                let words = store.records(cx.irqs());
                self.count(cx, here, words);
            }
        };
        here.pebs.with_records(count);
    }

    /// Calls `f` for each precise event on one of `counters`, which all have precise events, with
    /// its counter.
    fn for_each_precise(
        &self,
        cx: &OnCpu<'_, Driver>,
        here: Here<'_>,
        counters: CounterMask,
        mut f: impl FnMut(CounterId, &Event<Driver>, &CounterUse),
    ) {
        // Until an event that has just got a counter is started, the counter's last event is the
        // previous one. That event has left, and its id may now belong to another precise event, on
        // another counter.
        let is_on = |counter, event: &Event<Driver>| {
            event.data().precise.is_some() && event::counter(event).is_none_or(|it| it == counter)
        };
        for counter in counters {
            let event = here
                .pmi_state
                .last_event(counter)
                .and_then(|id| cx.event(id));
            if let Some(event) = event.filter(|event| is_on(counter, event)) {
                f(counter, event, here.pmi_state.uses.on(counter));
            }
        }
    }

    /// Returns the uncounted part of `words`, and marks it as counted.
    fn take_uncounted<'w>(here: Here<'_>, words: &'w [AtomicU64]) -> &'w [AtomicU64] {
        let counted = here.pebs.counted.load(Relaxed);
        here.pebs.counted.store(words.len(), Relaxed);
        words.get(counted..).unwrap_or(&[])
    }

    /// Adds the numbers of new `records` for each counter to the counts of `precise` events.
    #[inline]
    fn add_records(
        &self,
        cx: &OnCpu<'_, Driver>,
        here: Here<'_>,
        precise: CounterMask,
        records: impl Fn(CounterId) -> u16,
    ) {
        let hardware = &cx.pmu().ops().hardware;
        self.for_each_precise(cx, here, precise, |counter, event, counts| {
            let records = records(counter);
            if records != 0 {
                counts.update_precise(event, records.into(), hardware, cx.irqs());
            }
        });
    }

    /// Brings the counts of precise events up to date with the records in `words`.
    // Does not use a tally, which takes twice the stack: little stack is left when a sample
    // includes the counts of its group (`PERF_SAMPLE_READ`).
    #[inline(never)]
    fn count(&self, cx: &OnCpu<'_, Driver>, here: Here<'_>, words: &[AtomicU64]) {
        let precise = here.pebs.counters();
        let mut numbers: PerCounter<u16> = PerCounter::new(0);
        for record in Records::new(self.format, Self::take_uncounted(here, words)) {
            let (Owners::Of(owners) | Owners::OneOf(owners)) = record.owners(self.format, precise);
            for counter in owners {
                // Does not overflow, as in a tally.
                numbers[counter] = numbers[counter].wrapping_add(1);
            }
        }
        self.add_records(cx, here, precise, |counter| numbers[counter]);
    }

    /// Brings the counts of precise events up to date with the records in `words`, and counts these
    /// in `tally`, which must be [empty](Tally::NOTHING).
    #[inline(never)]
    fn tally(
        &self,
        cx: &OnCpu<'_, Driver>,
        here: Here<'_>,
        words: &[AtomicU64],
        tally: &mut Tally,
    ) {
        let precise = here.pebs.counters();
        let new = Self::take_uncounted(here, words);
        tally.add(self.format, new, precise);
        self.add_records(cx, here, precise, |counter| tally.all(counter));
        if new.len() != words.len() {
            *tally = Tally::NOTHING;
            tally.add(self.format, words, precise);
        }
    }

    /// Makes samples of all records. In the PMI `nmi`, the last sample of each event is its
    /// overflow, samples get the `branches` that the PMI has read, and an overflow of a guest's
    /// buffer is reported to KVM first. The counters are stopped.
    #[inline(never)]
    fn use_records(
        &self,
        cx: &OnCpu<'_, Driver>,
        here: Here<'_>,
        nmi: Option<&NmiContext>,
        mut branches: Option<&mut InPmi<'_>>,
    ) {
        if let Some(nmi) = nmi {
            self.report_to_kvm(cx, here, nmi);
        }
        here.pebs.with_records(|| {
            let store = here.pebs.store();
            if let Some(store) = store.filter(|store| store.has_records()) {
                let words = store.records(cx.irqs());
                self.make_samples(cx, here, words, nmi, branches.as_deref_mut());
                store.clear(cx.irqs());
                here.pebs.counted.store(0, Relaxed);
            }
        });
    }

    /// Reports an overflow of the guest's buffer to KVM, if the PMI has interrupted a guest with
    /// precise events. To do so, reports an overflow of one of these events, which KVM takes for an
    /// overflow of the buffer (`__kvm_perf_overflow()`, `arch/x86/kvm/pmu.c`).
    ///
    /// Mainline: `x86_pmu_handle_guest_pebs()`, `arch/x86/events/intel/core.c`.
    #[inline]
    fn report_to_kvm(&self, cx: &OnCpu<'_, Driver>, here: Here<'_>, nmi: &NmiContext) {
        let counters = CounterMask::from_bits(here.pebs.of_guests.load(Relaxed));
        if !counters.is_empty() && self.guests.are_interrupted(nmi) {
            self.overflow_of_guest(cx, here, counters, nmi);
        }
    }

    #[cold]
    #[inline(never)]
    fn overflow_of_guest(
        &self,
        cx: &OnCpu<'_, Driver>,
        here: Here<'_>,
        counters: CounterMask,
        nmi: &NmiContext,
    ) {
        let active = |counter| {
            here.pmi_state
                .active_event(counter)
                .and_then(|id| cx.event(id))
        };
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
        cx: &OnCpu<'_, Driver>,
        here: Here<'_>,
        words: &[AtomicU64],
        nmi: Option<&NmiContext>,
        branches: Option<&mut InPmi<'_>>,
    ) {
        let precise = here.pebs.counters();
        let mut space = Space::new();
        let mut batch = sample::Batch {
            nmi,
            branches,
            regs: space.begin(nmi.map(NmiContext::regs)),
            clock: self.samples.clock(),
        };
        let mut records = Records::new(self.format, words);
        if let (Some(record), 0) = (records.next(), records.left()) {
            if let Owners::Of(owners) = record.owners(self.format, precise) {
                // The common case.
                self.make_sample_of_one(cx, here, (&record, owners), &mut batch);
                return;
            }
        }
        self.make_samples_of_many(cx, here, words, &mut batch);
    }

    /// Makes samples of the only record, which belongs to the counters `owners`.
    // A function of its own, since one record needs less stack than several.
    #[inline(never)]
    fn make_sample_of_one<'a>(
        &self,
        cx: &OnCpu<'_, Driver>,
        here: Here<'_>,
        (record, owners): (&Record<'a>, CounterMask),
        batch: &mut sample::Batch<'a, '_>,
    ) {
        let nmi = batch.nmi;
        let counted = here.pebs.counted.load(Relaxed) != 0;
        self.for_each_precise(cx, here, owners, |counter, event, counts| {
            if !counted {
                counts.update_precise(event, 1, &cx.pmu().ops().hardware, cx.irqs());
            }
            let of = (counter, event, record);
            self.make_sample(cx, here, of, nmi.is_some(), batch);
        });
    }

    /// Makes samples of several records, or of one that may belong to several counters.
    #[inline(never)]
    fn make_samples_of_many<'a>(
        &self,
        cx: &OnCpu<'_, Driver>,
        here: Here<'_>,
        words: &'a [AtomicU64],
        batch: &mut sample::Batch<'a, '_>,
    ) {
        let nmi = batch.nmi;
        let precise = here.pebs.counters();
        let mut tally = Tally::NOTHING;
        self.tally(cx, here, words, &mut tally);
        self.for_each_precise(cx, here, precise, |counter, event, counts| {
            let lost = tally.lost[counter];
            if lost != 0 {
                if tally.kept[counter] == 0 {
                    Self::begin_period(cx, counter, event, counts);
                }
                event.log_lost_samples(cx, lost.into(), nmi.is_some());
            }
        });
        for record in Records::new(self.format, words) {
            let Owners::Of(owners) = record.owners(self.format, precise) else {
                continue;
            };
            self.for_each_precise(cx, here, owners, |counter, event, _| {
                let is_overflow = nmi.is_some() && tally.is_last(counter);
                let of = (counter, event, &record);
                self.make_sample(cx, here, of, is_overflow, batch);
            });
        }
    }

    /// Makes a sample of a record, as the overflow itself if `is_overflow`.
    #[inline(always)]
    fn make_sample<'a>(
        &self,
        cx: &OnCpu<'_, Driver>,
        here: Here<'_>,
        (counter, event, record): (CounterId, &Event<Driver>, &Record<'a>),
        is_overflow: bool,
        batch: &mut sample::Batch<'a, '_>,
    ) {
        let counts = here.pmi_state.uses.on(counter);
        let mut period = counts.reload();
        if period == 0 {
            period = event.last_period().load(Relaxed);
            Self::begin_period(cx, counter, event, counts);
        }
        if event.data().switches && is_overflow {
            cx.pmu().ops().end_turn(cx);
        }
        let input = sample::SampleInput {
            record,
            event,
            period,
        };
        let code = &here.pebs.code;
        self.samples.hand_over(cx, code, &input, is_overflow, batch);
    }

    /// Begins the next period of a precise event without auto-reload, whose counter the processor
    /// has set to 0.
    fn begin_period(
        cx: &OnCpu<'_, Driver>,
        counter: CounterId,
        event: &Event<Driver>,
        counts: &CounterUse,
    ) {
        let is_counting = event::counter(event) == Some(counter) && !event.is_stopped();
        if counts.reload() == 0 && is_counting {
            counts.restart(event, counter, &cx.pmu().ops().hardware, cx.irqs());
        }
    }
}

impl Unit for Pebs {
    type Own = PebsOwn;
    type PmiState = PebsPmiState;
    type TaskData = ();

    fn find(platform: &mut Platform<'_>) -> Result<Option<Self>> {
        let pebs = Self::find_usable(platform.hardware, platform.builtin);
        if pebs.is_none() {
            platform.hardware.pmu.capabilities.pebs_format = None;
        }
        Ok(pebs)
    }

    fn pmi_state(
        cpu: CpuId,
        hardware: &Hardware,
        builtin: Option<&Builtin>,
    ) -> Result<PebsPmiState> {
        let format = hardware.pmu.capabilities.pebs_format;
        Ok(PebsPmiState {
            counters: AtomicU64::new(0),
            of_guests: AtomicU64::new(0),
            flags: AtomicU64::new(0),
            enable: AtomicU64::new(0),
            counted: AtomicUsize::new(0),
            busy: AtomicBool::new(false),
            missed: AtomicBool::new(false),
            code: sample::new_code(cpu, format)?,
            store: builtin
                .filter(|_| hardware.amd().is_none())
                .map(|builtin| builtin.debug_store(cpu)),
        })
    }

    fn announce(&self, hardware: &Hardware) {
        pr_info!(
            "{}events can be precise up to precise_ip {}\n",
            format_args!("{}", hardware.pmu.prefix()),
            self.max_precise(hardware)
        );
    }

    fn reset(
        &self,
        own: &mut PebsOwn,
        pmi_state: &PebsPmiState,
        site: Site<'_>,
        _counters: PlanAndShadow<'_>,
    ) -> bool {
        let published = || site.pmi_state.hypervisors.published_data_cfg();
        own.before.get_or_insert_with(published);
        Self::end(own, pmi_state.on(site.pmi_state), 0, site.irqs);
        false
    }

    /// Restores PEBS_DATA_CFG to the value that the built-in driver left.
    fn restore(&self, own: &mut PebsOwn, pmi_state: &PebsPmiState, site: Site<'_>) {
        let Some(data_config) = own.before.take() else {
            return;
        };
        Self::end(own, pmi_state.on(site.pmi_state), data_config, site.irqs);
        let store = pmi_state.store();
        if let Some(store) = store.filter(|_| self.format == PebsFormat::Adaptive) {
            store.set_data_config(data_config, site.irqs);
        }
    }

    /// Brings PEBS in line with the precise events that are started, and with the schedule.
    #[inline(always)]
    fn prepare(
        &self,
        own: &mut PebsOwn,
        pmi_state: &PebsPmiState,
        cx: &PmuDisabled<'_, Driver>,
        site: Site<'_>,
        schedule: &CpuSchedule<EventId>,
        changed: bool,
    ) {
        let counters = pmi_state.counters();
        let enable = counters.bits() | pmi_state.flags.load(Relaxed);
        if enable != pmi_state.enable.load(Relaxed) || changed && !counters.is_empty() {
            self.prepare_changed(own, pmi_state.on(site.pmi_state), cx, schedule, enable);
        }
    }

    /// Returns the counters with precise events, whose overflows raise no PMI.
    #[inline(always)]
    fn silent(&self, pmi_state: &PebsPmiState) -> CounterMask {
        pmi_state.counters()
    }

    /// Makes samples of the records before the branch records are read, if records contain branches
    /// themselves. Otherwise requests the branch records for them.
    #[inline(always)]
    fn pmi_early(
        &self,
        pmi_state: &PebsPmiState,
        cx: &OnCpu<'_, Driver>,
        site: Site<'_>,
        pmi: &mut Pmi<'_>,
        want_branches: &mut CounterMask,
    ) {
        if !pmi.status.has_records() {
            return;
        }
        if self.records_branches() {
            pmi.status = pmi.status.without_records();
            self.use_records(cx, pmi_state.on(site.pmi_state), Some(pmi.nmi), None);
        } else {
            *want_branches = *want_branches | pmi_state.counters();
        }
    }

    #[inline(always)]
    fn pmi(
        &self,
        pmi_state: &PebsPmiState,
        cx: &OnCpu<'_, Driver>,
        site: Site<'_>,
        pmi: Pmi<'_>,
        branches: Option<&mut InPmi<'_>>,
    ) {
        if pmi.status.has_records() {
            self.use_records(cx, pmi_state.on(site.pmi_state), Some(pmi.nmi), branches);
        }
    }

    /// Stops the recording of overflows.
    fn suspend(&self, pmi_state: &PebsPmiState, site: Site<'_>) {
        if pmi_state.enable.load(Relaxed) == 0 {
            return;
        }
        if let Some(store) = pmi_state.store() {
            site.pmi_state
                .hypervisors
                .publish_pebs(0, site.pmi_state.hypervisors.published_data_cfg());
            pmi_state.enable.store(0, Relaxed);
            store.set_enable(0, site.irqs);
        }
    }

    /// Makes samples of the records that wait when a task leaves this CPU.
    #[inline(always)]
    fn switch(
        &self,
        (_own, pmi_state): (&mut PebsOwn, &PebsPmiState),
        cx: &PmuDisabled<'_, Driver>,
        site: Site<'_>,
        _schedule: &CpuSchedule<EventId>,
        _data: Option<&mut ()>,
        sched_in: bool,
    ) {
        if !sched_in && !pmi_state.counters().is_empty() {
            self.use_records(cx, pmi_state.on(site.pmi_state), None, None);
        }
    }
}
