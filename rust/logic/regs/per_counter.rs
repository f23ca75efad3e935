// SPDX-License-Identifier: GPL-2.0

//! Enabling counters one by one, by a bit in each event select: AMD's PMUs before PerfMonV2. With
//! PerfMonV2, the driver uses only the recorded event selects ([`Switches::recorded`]).
//!
//! Stopping a counter and letting it run each take a write of its event select, which also contains
//! the event. So an event select is only recorded when its event starts, and written when the
//! counter is to run.
//!
//! # The PMI
//!
//! The PMI does not stop the counters. It halts and resumes single counters by calling
//! [`Switches::run`], possibly inside of a callback's call of the same function. The callback then
//! checks whether the counters that are to run have changed meanwhile, and if so, calls the
//! function again. For this to be enough, a counter is marked as running or stopped *after* its
//! register is written. A PMI between the two finds an outdated mark, but only of this counter, and
//! the mark is up to date when the callback calls the function again.
//!
//! Context: the counters' CPU, interrupts off; NMIs included.

use super::{
    counter::{
        CounterId,
        CounterMask, //
    },
    event_select::EventSelect,
    register::{
        Register,
        RegisterWrite, //
    },
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::Relaxed, //
};

/// Maximum number of counters: leaf 0x8000_0022 has four bits for it. A power of two, so that a
/// mask bounds an index.
const MAX: usize = 16;

/// The event selects of a CPU's counters, and the counters that run.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::counter::CounterMask;
/// use logic::regs::event_select::EventSelect;
/// use logic::regs::per_counter::Switches;
///
/// let switches = Switches::new();
/// let mut written: Vec<u64> = Vec::new();
/// let counter = CounterMask::first_gp(1);
///
/// let cycles = EventSelect::event(0x76, 0).counting_user(true);
/// switches.record(counter.lowest().unwrap(), cycles.enabled());
/// switches.run(counter, |write| written.push(write.value));
/// switches.run(CounterMask::EMPTY, |write| written.push(write.value));
/// assert_eq!(written, [0x41_0076, 0x1_0076]);
/// ```
#[derive(Debug)]
pub struct Switches {
    selects: [AtomicU64; MAX],
    /// The counters whose enable bits are set.
    running: AtomicU64,
}

impl Default for Switches {
    fn default() -> Self {
        Self::new()
    }
}

impl Switches {
    /// Makes a state in which no counter runs.
    pub const fn new() -> Self {
        Self {
            selects: [const { AtomicU64::new(0) }; MAX],
            running: AtomicU64::new(0),
        }
    }

    fn select_of(&self, counter: CounterId) -> &AtomicU64 {
        // The mask changes nothing for a counter that exists. With it, there is no panic path in
        // NMI context.
        &self.selects[counter.index() & (MAX - 1)]
    }

    /// Records the event select of `counter`, which must not be running.
    #[inline]
    pub fn record(&self, counter: CounterId, select: u64) {
        self.select_of(counter).store(select, Relaxed);
    }

    /// Returns the event select of `counter`.
    #[inline]
    pub fn recorded(&self, counter: CounterId) -> u64 {
        self.select_of(counter).load(Relaxed)
    }

    /// Lets `counters` run, and stops all others.
    ///
    /// Starts and stops the highest counter first, so that all run for the same time, and the
    /// second counter of a pair runs before the first.
    #[inline]
    pub fn run(&self, counters: CounterMask, mut write: impl FnMut(RegisterWrite)) {
        let running = CounterMask::from_bits(self.running.load(Relaxed));
        let mut changed = running.without(counters) | counters.without(running);
        while let Some(counter) = changed.highest() {
            changed.remove(counter);
            let (select, mask) = (self.recorded(counter), counter.mask());
            let stops = running.contains(counter);
            let disable = if stops { EventSelect::ENABLE } else { 0 };
            write(RegisterWrite {
                register: Register::EventSelect(counter),
                value: select & !disable,
            });
            if stops {
                self.running.fetch_and(!mask.bits(), Relaxed);
            } else {
                self.running.fetch_or(mask.bits(), Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{
        Cell,
        RefCell, //
    };

    const ENABLE: u64 = EventSelect::ENABLE;

    /// Event selects as the hardware has them.
    struct Hardware {
        switches: Switches,
        registers: RefCell<[u64; MAX]>,
    }

    impl Hardware {
        fn new() -> Self {
            let switches = Switches::new();
            for counter in CounterMask::first_gp(6) {
                switches.record(counter, ENABLE | counter.index() as u64);
            }
            Self {
                switches,
                registers: RefCell::new([0; MAX]),
            }
        }

        fn write(&self, write: RegisterWrite) {
            let Register::EventSelect(counter) = write.register else {
                panic!("no event select");
            };
            self.registers.borrow_mut()[counter.index()] = write.value;
        }

        fn running(&self) -> u64 {
            let registers = self.registers.borrow();
            let enabled = (0..MAX).filter(|n| registers[*n] & ENABLE != 0);
            enabled.fold(0, |mask, n| mask | (1 << n))
        }
    }

    #[test]
    fn only_changes_are_written() {
        let hardware = Hardware::new();
        let mut order = Vec::new();
        for (counters, written) in [
            (0b01_0011, &[4, 1, 0][..]),
            (0b01_0011, &[]),
            (0b01_0101, &[2, 1]),
            (0, &[4, 2, 0]),
        ] {
            order.clear();
            let counters = CounterMask::from_bits(counters);
            hardware.switches.run(counters, |write| {
                if let Register::EventSelect(counter) = write.register {
                    order.push(counter.index());
                }
                hardware.write(write);
            });
            assert_eq!(order, written);
            assert_eq!(hardware.running(), counters.bits());
        }
    }

    /// A PMI before or after each write halts or resumes counters, and the callback repeats itself
    /// until nothing has changed, as the driver does.
    #[test]
    fn after_a_pmi_at_any_time_the_wanted_counters_run() {
        let enabled = 0b111u64;
        // The counters halted before, and the two sets that the PMI halts in turn.
        for before in 0..8u64 {
            for (first, second) in (0..8u64).flat_map(|a| (0..8u64).map(move |b| (a, b))) {
                for at in 0..14 {
                    let hardware = Hardware::new();
                    let halted = Cell::new(before);
                    let steps = Cell::new(0);
                    let pmi = || {
                        let now = steps.get();
                        steps.set(now + 1);
                        if now != at {
                            return;
                        }
                        for next in [first, second] {
                            halted.set(next);
                            let counters = CounterMask::from_bits(enabled & !next);
                            hardware
                                .switches
                                .run(counters, |write| hardware.write(write));
                        }
                    };
                    // These run when the callback begins.
                    let all = CounterMask::from_bits(0b110);
                    hardware.switches.run(all, |write| hardware.write(write));
                    loop {
                        let seen = halted.get();
                        let counters = CounterMask::from_bits(enabled & !seen);
                        hardware.switches.run(counters, |write| {
                            pmi();
                            hardware.write(write);
                            pmi();
                        });
                        if halted.get() == seen {
                            break;
                        }
                    }
                    let expected = enabled & !halted.get();
                    assert_eq!(
                        hardware.running(),
                        expected,
                        "{before} {first} {second} {at}"
                    );
                }
            }
        }
    }
}
