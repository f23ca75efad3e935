// SPDX-License-Identifier: GPL-2.0

//! The register shadow: the known values of one CPU's registers, so that only changed values are
//! written.
//!
//! A register write costs more than everything else in a context switch, so:
//!
//! - A stopped event leaves its event select unchanged: a counter that is not enabled in
//!   GLOBAL_CTRL does not count. Switching out costs one write, whatever the number of events.
//! - An event that returns to its counter before another event has used it finds its event select
//!   and its value there: a counting event that stopped at v starts again at v.
//! - The fixed counters share FIXED_CTR_CTRL, which is written once, when counting resumes.
//! - An extra register is written before the first event that needs another value in it, and never
//!   cleared: without an event that needs it, the register has no effect.
//!
//! # The shadow and the PMI
//!
//! The PMI is an NMI and may interrupt any of these functions. It never accesses the shadow, and
//! the shadow stays right because the driver keeps four rules:
//!
//! 1. The PMI writes neither FIXED_CTR_CTRL nor event selects, except for their enable bits on PMUs
//!    without GLOBAL_CTRL ([`per_counter`](super::per_counter)).
//! 2. The PMI handles and writes only *active* counters: a mask that it shares with the driver,
//!    which removes a counter before [`Shadow::stop`] and adds it after [`Shadow::start`]. The
//!    shadow does not know the values of active counters.
//! 3. On PMUs with GLOBAL_CTRL, the PMI stops all counters on entry. On exit it lets the counters
//!    in another shared mask run, *enabled*. On other PMUs, it only halts and resumes single
//!    counters. The driver sets this mask to the result of [`Shadow::resume`], and clears it before
//!    [`Shadow::suspend`]; both times it changes the mask first, and then the hardware. So a PMI
//!    before, after or in between leaves the hardware as the shadow has it, and never lets a
//!    counter run before its event select or control field is written. When the perf core stops an
//!    event in a PMI, the PMI does not let its counter run again, and adds it to the mask *halted*,
//!    which the driver, too, respects when it lets counters run. The shadow has the counter as
//!    running until the driver corrects it, the next time that the PMU is suspended.
//! 4. The driver passes a value that it has read from a counter to the shadow only if all counters
//!    were stopped, so that the value does not change any more.
//!
//! While a model's [`clearing_events`](crate::logic::model::Model::clearing_events) are on the
//! counters, no general-purpose counter is active and *enabled* is empty: a PMI then handles no
//! counter and leaves all of them stopped. Its only effect is that these events run for a shorter
//! time.
//!
//! Nothing else may write the PMU's registers. If something may have done so (CPU hotplug, another
//! driver), [`Shadow::reset`] starts afresh.
//!
//! Context: the shadow's CPU, interrupts off.

use super::{
    counter::{
        CounterId,
        CounterKind,
        CounterMask,
        PerCounter, //
    },
    event_select::EventSelect,
    extra_register::ExtraRegister,
    global::{
        CountsIn,
        Global, //
    },
    register::{
        set,
        Register,
        RegisterWrite, //
    },
};

/// The settings of a counter, besides its start value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Programming {
    /// The event select.
    pub select: EventSelect,
    /// The extra register that the event needs, with its value.
    pub extra: Option<(ExtraRegister, u64)>,
    /// The places where the counter runs: in virtual machines, outside, or both.
    pub counts_in: CountsIn,
}

impl Programming {
    /// Returns the settings of a counter that runs everywhere, with an event select that needs no
    /// extra register.
    pub const fn of(select: EventSelect) -> Self {
        Self {
            select,
            extra: None,
            counts_in: CountsIn::EVERYWHERE,
        }
    }
}

/// The known values of one counter's registers.
#[derive(Clone, Copy, Debug)]
struct CounterState {
    /// The event select, if it is known. General-purpose counters only.
    select: Option<u64>,
    /// The counter's value, if it is known and constant.
    value: Option<u64>,
}

/// The known and the wanted values of one CPU's PMU registers.
///
/// The methods pass each register write that is due to `write`, in order.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::counter::{CounterId, CounterMask};
/// use logic::regs::event_select::EventSelect;
/// use logic::regs::register::{Register, RegisterWrite};
/// use logic::regs::shadow::{Programming, Shadow};
/// let mut writes: Vec<RegisterWrite> = Vec::new();
/// // Four general-purpose counters and three fixed ones.
/// let mut shadow = Shadow::new(CounterMask::first_gp(4).union(CounterMask::first_fixed(3)));
/// shadow.reset(|write| writes.push(write));
/// writes.clear();
///
/// let counter = CounterId::gp(0).unwrap();
/// let branches = EventSelect::event(0xc4, 0x00).counting_user(true);
/// shadow.plan(counter, Programming::of(branches));
/// shadow.start(counter, 0xffff_ffff_ff00, |write| writes.push(write));
/// let running = shadow.resume(|write| writes.push(write));
/// assert_eq!(running, Some(counter.mask()));
/// assert_eq!(writes, [
///     RegisterWrite { register: Register::Counter(counter), value: 0xffff_ffff_ff00 },
///     RegisterWrite { register: Register::EventSelect(counter), value: 0x41_00c4 },
/// ]);
///
/// // Out, and in again: nothing is written but what stops counters and lets them run.
/// writes.clear();
/// assert!(shadow.suspend());
/// shadow.stop(counter, Some(0xffff_ffff_ff42));
/// assert_eq!(shadow.resume(|write| writes.push(write)), None);
///
/// assert!(!shadow.suspend());
/// shadow.start(counter, 0xffff_ffff_ff42, |write| writes.push(write));
/// assert_eq!(shadow.resume(|write| writes.push(write)), Some(counter.mask()));
/// assert_eq!(writes, []);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shadow {
    /// The counters that exist.
    present: CounterMask,
    counters: PerCounter<CounterState>,
    /// The settings for the event that was last put on each counter.
    planned: PerCounter<Programming>,
    /// The values of the extra registers, if they are known.
    extra: [Option<u64>; ExtraRegister::ALL.len()],
    /// The registers that enable the counters.
    control: Global,
    /// The counters whose events are started.
    active: CounterMask,
    /// The active counters that count outside of virtual machines, and the second counters of
    /// pairs. The first metric's bit stands for all of PERF_METRICS here, as in GLOBAL_CTRL.
    enabled: CounterMask,
    /// The active counters that count in virtual machines, with second counters and metrics as in
    /// `enabled`.
    in_guest: CounterMask,
    /// The second counters of pairs. They have no event of their own.
    seconds: CounterMask,
    /// Set if the event selects of inactive counters have to be cleared when counting resumes: the
    /// hardware was [cleared](Shadow::clear), or a pair has left.
    cleared: bool,
    /// Set if both threads of the core use the same extra registers.
    shares_extra: bool,
    /// Set if events were started or stopped since counting was last resumed.
    touched: bool,
}

impl Shadow {
    /// A shadow without counters.
    pub const NOTHING: Self = Self {
        present: CounterMask::EMPTY,
        counters: PerCounter::new(CounterState {
            select: None,
            value: None,
        }),
        planned: PerCounter::new(Programming::of(EventSelect::event(0, 0))),
        extra: [None; ExtraRegister::ALL.len()],
        control: Global::new(CounterMask::EMPTY),
        active: CounterMask::EMPTY,
        enabled: CounterMask::EMPTY,
        in_guest: CounterMask::EMPTY,
        seconds: CounterMask::EMPTY,
        cleared: false,
        shares_extra: false,
        touched: false,
    };

    /// Creates a shadow of these counters, whose registers' values are unknown.
    /// [`reset`](Self::reset) has to be called next.
    pub const fn new(counters: CounterMask) -> Self {
        let mut shadow = Self::NOTHING;
        shadow.set_up(counters);
        shadow
    }

    /// Makes [`NOTHING`](Self::NOTHING) a shadow of these counters, whose registers' values are
    /// unknown.
    pub const fn set_up(&mut self, counters: CounterMask) {
        self.present = counters;
        self.control = Global::new(counters);
    }

    /// Records that both threads of the core use the same extra registers. The other thread may
    /// write one that no event here needs.
    pub const fn share_extra_registers(&mut self) {
        self.shares_extra = true;
    }

    /// Stops all counters and clears all registers, whatever their values. Leaves only the extra
    /// registers alone, which are written before their next use.
    ///
    /// No counter may be active.
    pub fn reset(&mut self, mut write: impl FnMut(RegisterWrite)) {
        self.active = CounterMask::EMPTY;
        self.enabled = CounterMask::EMPTY;
        self.in_guest = CounterMask::EMPTY;
        self.seconds = CounterMask::EMPTY;
        self.forget_extra_registers();
        self.touched = true;
        self.control.reset(&mut write);
        for counter in self.present {
            self.counters[counter] = CounterState {
                select: None,
                value: None,
            };
            self.set_select(counter, 0, &mut write);
            self.set_value(counter, 0, &mut write);
        }
    }

    /// Returns the counters whose events are started.
    pub fn active(&self) -> CounterMask {
        self.active
    }

    /// Returns the counters that are to run in virtual machines while counting is not suspended. A
    /// hypervisor switches GLOBAL_CTRL when it enters one.
    #[inline]
    pub fn in_guest(&self) -> CounterMask {
        self.in_guest
    }

    /// Suspends counting (`perf_pmu_disable`). Returns whether the caller has to stop the counters,
    /// because one of them may be running.
    #[inline]
    #[must_use]
    pub fn suspend(&mut self) -> bool {
        self.control.stop()
    }

    /// Returns whether events were started or stopped since counting was last resumed. If not,
    /// [`resume`](Self::resume) lets the same counters run again.
    #[inline]
    pub fn is_touched(&self) -> bool {
        self.touched
    }

    /// Resumes counting (`perf_pmu_enable`), after all due writes. Returns the counters that the
    /// caller has to let run, and no others; `None` if exactly these are running already.
    #[inline]
    #[must_use]
    pub fn resume(&mut self, mut write: impl FnMut(RegisterWrite)) -> Option<CounterMask> {
        if self.touched {
            self.touched = false;
            if self.cleared {
                self.clear_rest(&mut write);
            }
            self.control.set_fixed_control(&mut write);
            if self.shares_extra {
                self.forget_extra_registers();
            }
        }
        self.control.run(self.enabled)
    }

    /// Clears the event selects that clearing events and pairs have left behind.
    #[cold]
    #[inline(never)]
    fn clear_rest(&mut self, write: &mut impl FnMut(RegisterWrite)) {
        self.cleared = false;
        for counter in self.present.gp().without(self.active | self.seconds) {
            self.set_select(counter, 0, write);
        }
    }

    fn forget_extra_registers(&mut self) {
        self.extra = [None; ExtraRegister::ALL.len()];
    }

    /// Returns whether the hardware has to be [cleared](Self::clear) before `counter` is
    /// [started](Self::start), on models that need this: the event select will change, and the
    /// hardware was not cleared since the PMU was suspended.
    #[inline]
    pub fn needs_clearing(&self, counter: CounterId) -> bool {
        let select = self.planned[counter].select.enabled();
        counter.is_gp() && !self.cleared && self.counters[counter].select != Some(select)
    }

    /// Records the settings with which `counter` is [started](Self::start) from now on. To be
    /// called when the plan puts an event on the counter, and when the plan changes the event's
    /// settings.
    ///
    /// The counter must not be active.
    #[inline]
    pub fn plan(&mut self, counter: CounterId, programming: Programming) {
        self.planned[counter] = programming;
    }

    /// Clears the monitoring hardware by letting `events` run briefly on the general-purpose
    /// counters. [`resume`](Self::resume) then clears the event selects of counters on which no
    /// event has been started. Errata AAK100 and BD53 demand this (`intel_pmu_nhm_workaround()`,
    /// `arch/x86/events/intel/core.c`).
    ///
    /// The PMU must be suspended, no general-purpose counter active, and PEBS_ENABLE 0, so that no
    /// overflow is recorded.
    pub fn clear(&mut self, events: &[u64], mut write: impl FnMut(RegisterWrite)) {
        for (counter, event) in self.present.gp().into_iter().zip(events) {
            self.set_select(counter, *event, &mut write);
            self.set_value(counter, 0, &mut write);
        }
        self.control.pulse(self.present.gp(), &mut write);
        for counter in self.present.gp() {
            // Some of the events count, so the value changes.
            self.counters[counter].value = None;
        }
        self.cleared = true;
        self.touched = true;
    }

    /// Programs `counter` as [planned](Self::plan), to start at `value`, which must be within the
    /// counter's width. It counts from the next [`resume`](Self::resume) on.
    ///
    /// No other active counter may need another value in its extra register.
    ///
    /// A counter whose event counts in virtual machines only is programmed, too: it runs once a
    /// hypervisor has switched GLOBAL_CTRL.
    ///
    /// The PMU must be suspended, and the counter not active.
    #[inline(always)]
    pub fn start(&mut self, counter: CounterId, value: u64, mut write: impl FnMut(RegisterWrite)) {
        let Programming {
            select,
            extra,
            counts_in,
        } = self.planned[counter];
        if let Some((register, value)) = extra {
            self.set_extra(register, value, &mut write);
        }
        self.set_value(counter, value, &mut write);
        match counter.kind() {
            CounterKind::Gp(_) => self.set_select(counter, select.enabled(), &mut write),
            CounterKind::Fixed(n) => self.control.want_fixed(n, select),
            // See `set_virtual_active()`.
            CounterKind::Metric(_) | CounterKind::GuestBranches => {}
        }
        // From here on the value changes, by counting or by the PMI (rule 2).
        self.counters[counter].value = None;
        self.touched = true;
        self.active.insert(counter);
        if counts_in.host {
            self.enabled.insert(counter);
        }
        if counts_in.guest {
            self.in_guest.insert(counter);
        }
    }

    /// Lets PERF_METRICS count from the next [`resume`](Self::resume) on, wherever the slots count.
    /// The slots must have been started. The caller writes PERF_METRICS.
    #[cold]
    pub fn start_metrics(&mut self) {
        self.touched = true;
        let counts_in = self.planned[CounterId::SLOTS].counts_in;
        if counts_in.host {
            self.enabled.insert(CounterId::FIRST_METRIC);
        }
        if counts_in.guest {
            self.in_guest.insert(CounterId::FIRST_METRIC);
        }
    }

    /// Stops PERF_METRICS, as [`stop`](Self::stop) does a counter.
    #[cold]
    pub fn stop_metrics(&mut self) {
        self.touched = true;
        self.enabled.remove(CounterId::FIRST_METRIC);
        self.in_guest.remove(CounterId::FIRST_METRIC);
    }

    /// Records that the event on a virtual counter is started, or stopped. Nothing is written: a
    /// metric counts with [the slots](Self::start_metrics), and the branch records do not count.
    #[cold]
    pub fn set_virtual_active(&mut self, counter: CounterId, active: bool) {
        self.touched = true;
        if active {
            self.active.insert(counter);
        } else {
            self.active.remove(counter);
        }
    }

    /// Programs `counter` as the second one of a pair, for the event that will start on the counter
    /// before it: `select` makes it continue that counter, and `value` is its start value.
    ///
    /// The PMU must be suspended. The first counter has to be [started](Self::start) next.
    #[cold]
    pub fn start_second(
        &mut self,
        counter: CounterId,
        select: EventSelect,
        value: u64,
        mut write: impl FnMut(RegisterWrite),
    ) {
        self.set_value(counter, value, &mut write);
        self.set_select(counter, select.enabled(), &mut write);
        self.counters[counter].value = None;
        self.touched = true;
        self.seconds.insert(counter);
        self.enabled.insert(counter);
        self.in_guest.insert(counter);
    }

    /// Stops the second counter of the pair whose first one is `first`, if there is one. As
    /// [`stop`](Self::stop).
    ///
    /// Its event select is cleared when counting resumes. Otherwise it would continue the next
    /// event of the first counter.
    #[cold]
    pub fn stop_second_of(&mut self, first: CounterId) {
        for second in first.mask().behind() & self.seconds {
            self.stop(second, None);
            self.seconds.remove(second);
            self.cleared = true;
        }
    }

    /// Stops the event on `counter`. Nothing is written: the counter is just not enabled again.
    ///
    /// `value` is the counter's value, which the driver has read after removing the counter from
    /// the PMI's mask. With `None`, the next start writes the counter.
    ///
    /// The PMU must be suspended.
    #[inline]
    pub fn stop(&mut self, counter: CounterId, value: Option<u64>) {
        self.touched = true;
        self.active.remove(counter);
        self.enabled.remove(counter);
        self.in_guest.remove(counter);
        self.counters[counter].value = value;
    }

    /// Returns the value of a stopped counter, if it is known: with this start value, the counter
    /// is not written.
    pub fn value(&self, counter: CounterId) -> Option<u64> {
        self.counters[counter].value
    }

    /// Forgets the value of a stopped counter, so that the next start writes the counter.
    pub fn forget_value(&mut self, counter: CounterId) {
        self.counters[counter].value = None;
    }

    /// Clears the event select of a counter that another user gets.
    ///
    /// The counter must not be active.
    pub fn give_away(&mut self, counter: CounterId, mut write: impl FnMut(RegisterWrite)) {
        self.set_select(counter, 0, &mut write);
    }

    /// Forgets the values of a counter's registers, because another user may have changed them.
    ///
    /// The counter must not be active.
    #[inline]
    pub fn forget(&mut self, counter: CounterId) {
        self.counters[counter] = CounterState {
            select: None,
            value: None,
        };
    }

    fn set_value(&mut self, counter: CounterId, value: u64, write: &mut impl FnMut(RegisterWrite)) {
        let register = Register::Counter(counter);
        let held = &mut self.counters[counter].value;
        set(held, register, value, write);
    }

    fn set_extra(
        &mut self,
        register: ExtraRegister,
        value: u64,
        write: &mut impl FnMut(RegisterWrite),
    ) {
        if let Some(held) = self.extra.get_mut(register.index()) {
            set(held, Register::Extra(register), value, write);
        }
    }

    fn set_select(
        &mut self,
        counter: CounterId,
        value: u64,
        write: &mut impl FnMut(RegisterWrite),
    ) {
        if counter.is_gp() {
            let register = Register::EventSelect(counter);
            let held = &mut self.counters[counter].select;
            set(held, register, value, write);
        }
    }
}

#[cfg(test)]
mod tests;
