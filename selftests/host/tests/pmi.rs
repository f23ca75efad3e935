// SPDX-License-Identifier: GPL-2.0

//! Tests the state that PMIs share with callbacks, with PMIs at every point of the callbacks.
//!
//! A model checker runs each test with its threads interleaved in every way. A PMI is a thread that
//! has the CPU to itself from its start to its end; a callback has it for one access at a time.

use loom::sync::{
    Arc,
    Mutex, //
};
use loom::thread;
use rpmu_logic::logic::pmi::last_value::LastValue;
use rpmu_logic::logic::pmi::running::Running;
use rpmu_logic::logic::pmi::shared_count::{
    Base,
    SharedCount,
    Total, //
};
use rpmu_logic::logic::pmi::Word;
use rpmu_logic::logic::regs::counter::{
    CounterId,
    CounterMask, //
};
use rpmu_logic::logic::regs::period::CounterWidth;
use std::cell::Cell;
use std::sync::atomic::AtomicU64;

loom::lazy_static! {
    static ref CPU: Mutex<()> = Mutex::new(());
}

loom::thread_local! {
    static IN_PMI: Cell<bool> = Cell::new(false);
}

/// Calls `access`, which is one instruction of a callback, or a part of a PMI.
fn step<T>(access: impl FnOnce() -> T) -> T {
    if IN_PMI.with(Cell::get) {
        return access();
    }
    let _cpu = CPU.lock().unwrap();
    access()
}

/// A word, or a register, that PMIs may access between any two accesses of a callback.
struct Shared(AtomicU64);

impl Word for Shared {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn load(&self) -> u64 {
        step(|| Word::load(&self.0))
    }

    fn store(&self, value: u64) {
        step(|| Word::store(&self.0, value));
    }

    fn swap(&self, value: u64) -> u64 {
        step(|| Word::swap(&self.0, value))
    }

    fn set_bits(&self, bits: u64) {
        step(|| Word::set_bits(&self.0, bits));
    }

    fn compare_exchange(&self, current: u64, new: u64) -> Result<(), u64> {
        step(|| Word::compare_exchange(&self.0, current, new))
    }
}

/// Runs `callback` on `machine`, interleaved with `pmis` calls of `pmi` in every way. Then calls
/// `check`.
fn everywhere<M: Send + Sync + 'static>(
    machine: fn() -> M,
    callback: fn(&M),
    (pmis, pmi): (usize, fn(&M, usize)),
    check: fn(&M),
) {
    loom::model(move || {
        let machine = Arc::new(machine());
        let interrupted = machine.clone();
        let thread = thread::spawn(move || {
            for n in 0..pmis {
                let _cpu = CPU.lock().unwrap();
                IN_PMI.with(|it| it.set(true));
                pmi(&interrupted, n);
                IN_PMI.with(|it| it.set(false));
            }
        });
        callback(&machine);
        thread.join().unwrap();
        check(&machine);
    });
}

const COUNTERS: usize = 2;

/// Two counters of a CPU.
struct Cpu {
    running: Running<Shared>,
    global_control: Shared,
    /// The event for which the registers of each counter have been written.
    selects: [Shared; COUNTERS],
    /// The event that a PMI finds on each counter.
    events: [Shared; COUNTERS],
    /// The events that a PMI has stopped, as a mask.
    stopped: Shared,
}

fn gp(n: usize) -> CounterId {
    CounterId::from_index(n).unwrap()
}

fn all() -> CounterMask {
    CounterMask::first_gp(COUNTERS as u8)
}

impl Cpu {
    /// Returns a CPU whose counter n counts event n.
    fn counting() -> Self {
        let words = |f: fn(usize) -> u64| [0, 1].map(|n| Shared::new(f(n)));
        let cpu = Self {
            running: Running::default(),
            global_control: Shared::new(all().bits()),
            selects: words(|n| n as u64),
            events: words(|n| n as u64),
            stopped: Shared::new(0),
        };
        (0..COUNTERS).for_each(|n| {
            cpu.running.activate(gp(n));
        });
        cpu.running.set_enabled(all());
        cpu
    }

    fn run(&self) {
        self.running
            .run(|counters| self.global_control.store(counters.bits()));
    }

    /// Like `Operations::disable()`. Returns the counters whose events are not stopped.
    fn disable(&self, active: CounterMask) -> CounterMask {
        self.running.set_enabled(CounterMask::EMPTY);
        self.global_control.store(0);
        let halted = self.running.halted();
        for counter in halted & active {
            self.running.deactivate(counter);
        }
        self.running.set_halted(halted, false);
        active.without(halted)
    }

    /// Puts `event` on `counter`. The PMU is disabled.
    fn start(&self, counter: CounterId, event: u64) {
        self.running.deactivate(counter);
        assert_eq!(
            self.global_control.load(),
            0,
            "a counter runs as it is written"
        );
        self.selects[counter.index()].store(event);
        self.events[counter.index()].store(event);
        self.running.activate(counter);
    }

    fn enable(&self, counters: CounterMask) {
        self.running.set_enabled(counters);
        self.run();
    }

    /// Handles overflows of all counters; `halts` are the counters whose events the perf core
    /// stops.
    fn pmi(&self, halts: CounterMask) {
        let enabled = self.running.take_enabled();
        self.global_control.store(0);
        for counter in self.running.handled() & all() {
            let event = self.events[counter.index()].load();
            let select = self.selects[counter.index()].load();
            assert_eq!(
                event, select,
                "a PMI finds an event on {counter:?} without its registers"
            );
            if halts.contains(counter) {
                self.running.set_halted(counter.mask(), true);
                self.stopped.store(self.stopped.load() | (1 << event));
                // Like a callback from the perf core, which does not know that it runs in a PMI.
                self.run();
            }
        }
        assert_eq!(self.global_control.load(), 0, "a counter runs in a PMI");
        self.running.set_enabled(enabled);
        self.run();
    }

    /// Checks that exactly the events run that were enabled and have not been stopped.
    fn check(&self) {
        let running = CounterMask::from_bits(self.global_control.load());
        let halted = self.running.halted();
        let enabled = self.running.take_enabled();
        assert_eq!(running, enabled.without(halted));
        for counter in running {
            let event = self.events[counter.index()].load();
            assert_eq!(
                self.stopped.load() & (1 << event),
                0,
                "stopped event {event} counts"
            );
        }
    }
}

#[test]
fn stopped_events_do_not_count() {
    everywhere(
        Cpu::counting,
        |cpu| {
            let left = cpu.disable(all());
            cpu.enable(left);
        },
        (2, |cpu, n| cpu.pmi(gp(n).mask())),
        Cpu::check,
    );
}

#[test]
fn pmis_find_events_with_their_registers() {
    everywhere(
        Cpu::counting,
        |cpu| {
            let left = cpu.disable(all());
            cpu.start(gp(0), 2);
            cpu.enable(left | gp(0).mask());
        },
        (2, |cpu, n| {
            cpu.pmi(if n == 0 { all() } else { gp(0).mask() })
        }),
        Cpu::check,
    );
}

#[test]
fn nothing_runs_while_the_pmu_is_disabled() {
    everywhere(
        Cpu::counting,
        |cpu| {
            cpu.disable(all());
        },
        (1, |cpu, _| cpu.pmi(CounterMask::EMPTY)),
        |cpu| assert_eq!(cpu.global_control.load(), 0),
    );
}

/// An event on a counter that counts all the time.
struct Counting {
    counter: Shared,
    last: LastValue<Shared>,
    count: Shared,
    published: Shared,
    /// The number of occurrences.
    truth: Shared,
}

const WIDTH: CounterWidth = CounterWidth::new(48).unwrap();
/// The start value, to which each overflow resets the counter.
const START: u64 = WIDTH.mask() - 9;

impl Counting {
    fn started() -> Self {
        let this = Self {
            counter: Shared::new(START),
            last: LastValue::default(),
            count: Shared::new(0),
            published: Shared::new(START),
            truth: Shared::new(0),
        };
        this.last.written(WIDTH, START);
        this
    }

    fn occur(&self, times: u64) {
        step(|| {
            self.counter
                .0
                .fetch_add(times, std::sync::atomic::Ordering::Relaxed);
            self.truth
                .0
                .fetch_add(times, std::sync::atomic::Ordering::Relaxed);
        });
    }

    /// Like the driver's `CounterUse::update()`.
    fn update(&self) {
        let read = || self.counter.load() & WIDTH.mask();
        let (previous, now) = self.last.advance(WIDTH, read);
        let delta = WIDTH.delta(previous, now);
        step(|| {
            self.count
                .0
                .fetch_add(delta, std::sync::atomic::Ordering::Relaxed)
        });
        self.publish();
    }

    fn publish(&self) {
        self.last
            .publish(|value| self.published.store(value & WIDTH.mask()));
    }

    /// Handles an overflow as in a PMI, while the counter is stopped.
    fn overflow(&self) {
        self.occur(5);
        self.update();
        self.counter.store(START);
        self.last.written(WIDTH, START);
        self.publish();
    }

    fn check(&self) {
        assert_eq!(
            self.published.load(),
            self.last.get() & WIDTH.mask(),
            "not published"
        );
        self.update();
        assert_eq!(
            self.count.load(),
            self.truth.load(),
            "occurrences are lost, or counted twice"
        );
    }
}

#[test]
fn each_occurrence_is_counted_once() {
    everywhere(
        Counting::started,
        |event| {
            event.occur(5);
            event.update();
            event.update();
        },
        (2, |event, _| event.overflow()),
        Counting::check,
    );
}

/// Two events that count all the time on a counter, the owner and a rider.
struct Sharing {
    counter: Counting,
    shared: SharedCount<Shared>,
    bases: [Base<Shared>; 2],
    counts: [Shared; 2],
    owner: Shared,
    /// The occurrences up to the stop of the rider.
    until_stop: Shared,
}

impl Sharing {
    fn started() -> Self {
        let this = Self {
            counter: Counting::started(),
            shared: SharedCount::default(),
            bases: Default::default(),
            counts: [0, 0].map(Shared::new),
            owner: Shared::new(0),
            until_stop: Shared::new(0),
        };
        let total = this.shared.begin(true);
        this.bases.iter().for_each(|base| base.begin(total));
        this.shared.insert(1);
        this
    }

    fn value(&self) -> u64 {
        self.counter.counter.load() & WIDTH.mask()
    }

    fn total(&self) -> Total {
        self.shared
            .total(&self.counter.last, WIDTH, || self.value())
    }

    /// Like the driver's `SharedCounter::update()`.
    fn update(&self, event: usize, total: impl FnMut() -> Total) {
        let delta = self.bases[event].take(total);
        step(|| {
            self.counts[event]
                .0
                .fetch_add(delta, std::sync::atomic::Ordering::Relaxed)
        });
        if self.owner.load() as usize == event {
            self.publish(event);
        }
    }

    fn read(&self, event: usize) {
        self.update(event, || self.total());
    }

    fn publish(&self, event: usize) {
        let published = &self.counter.published;
        let (last, base) = (&self.counter.last, &self.bases[event]);
        self.shared.publish(last, base, |ahead, written| {
            published.store(written.wrapping_add(ahead as u64) & WIDTH.mask())
        });
    }

    /// Writes the counter, which does not count.
    fn write(&self, value: u64) {
        let delta = WIDTH.delta(self.counter.last.get(), self.value());
        self.shared.freeze(delta);
        self.counter.counter.store(value);
        self.counter.last.written(WIDTH, value);
        self.shared.thaw();
        self.publish(self.owner.load() as usize);
    }

    /// As in a PMI: the counter overflows; if it `stops` the owner, the rider becomes the owner.
    fn overflow(&self, stops: bool) {
        self.counter.occur(3);
        // START + 9 is ahead of START: a callback that takes this write for a reading counts too
        // much.
        self.write(if stops { START } else { START + 9 });
        if stops {
            self.read(self.owner.load() as usize);
            if let Some(next) = self.shared.take_any() {
                self.owner.store(next as u64);
                self.publish(next);
            }
        }
    }

    /// As in a PMI: the perf core stops the rider.
    fn stop_rider(&self) {
        self.read(1);
        assert!(self.shared.remove(1));
        self.until_stop.store(self.counter.truth.load());
    }

    fn check_stopped(&self) {
        assert_eq!(
            self.counts[1].load(),
            self.until_stop.load(),
            "the rider lacks occurrences, or has some twice"
        );
    }

    fn check(&self) {
        let owner = self.owner.load() as usize;
        let since = self.value().wrapping_sub(self.counter.published.load()) & WIDTH.mask();
        assert_eq!(
            self.counts[owner].load().wrapping_add(since),
            self.counter.truth.load(),
            "the page of the owner is wrong"
        );
        for event in [0, 1] {
            self.read(event);
            assert_eq!(
                self.counts[event].load(),
                self.counter.truth.load(),
                "event {event}: occurrences are lost, or counted twice"
            );
        }
    }
}

#[test]
fn each_event_of_a_shared_counter_counts_each_occurrence() {
    everywhere(
        Sharing::started,
        |events| {
            events.counter.occur(5);
            events.read(0);
            events.read(1);
        },
        (2, |events, n| events.overflow(n == 1)),
        Sharing::check,
    );
}

#[test]
fn a_rider_that_a_pmi_stops_has_all_occurrences() {
    everywhere(
        Sharing::started,
        |events| {
            events.counter.occur(5);
            events.read(0);
        },
        (1, |events, _| {
            events.counter.occur(3);
            events.stop_rider();
        }),
        Sharing::check_stopped,
    );
}

/// The PMU is disabled, and the PMI does not handle the counter.
#[test]
fn a_rider_has_all_occurrences_while_the_counter_is_written() {
    everywhere(
        Sharing::started,
        |events| {
            events.counter.occur(5);
            events.write(START + 2);
        },
        (1, |events, _| events.stop_rider()),
        Sharing::check_stopped,
    );
}

/// An overflow between the reads of two members of a group.
#[test]
fn members_of_a_group_are_read_at_once() {
    everywhere(
        Sharing::started,
        |events| {
            events.counter.occur(5);
            let total = events.total();
            events.update(1, || total);
            events.counter.occur(2);
            events.update(0, || total);
            assert_eq!(
                events.counts[0].load(),
                events.counts[1].load(),
                "the members differ"
            );
        },
        (2, |events, _| events.overflow(false)),
        Sharing::check,
    );
}

#[test]
fn a_rider_stops_or_becomes_the_owner() {
    everywhere(
        Sharing::started,
        |events| {
            let was_rider = events.shared.remove(1);
            assert_ne!(was_rider, events.owner.load() == 1);
        },
        (1, |events, _| events.overflow(true)),
        |events| assert_eq!(events.shared.take_any(), None),
    );
}
