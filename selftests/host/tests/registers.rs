// SPDX-License-Identifier: GPL-2.0

//! The register shadow on a simulated PMU that counts and raises PMIs at any point.

use std::collections::BTreeMap;

mod cases;

use cases::cases;
use proptest::prelude::*;
use rpmu_logic::logic::capabilities::{
    Capabilities,
    Cpuid, //
};
use rpmu_logic::logic::regs::counter::{
    CounterId,
    CounterMask, //
};
use rpmu_logic::logic::regs::event_select::EventSelect;
use rpmu_logic::logic::regs::register::{
    Register,
    RegisterWrite, //
};
use rpmu_logic::logic::regs::shadow::{
    Programming,
    Shadow, //
};

fn capabilities() -> Capabilities {
    Capabilities::decode(&Cpuid::intel(3, 4, 3), None).unwrap()
}

/// Returns a key for a register: its kind, and its number among its kind.
fn key(register: Register) -> (u8, usize) {
    match register {
        Register::EventSelect(counter) => (0, counter.index()),
        Register::Counter(counter) => (1, counter.index()),
        Register::FixedControl => (2, 0),
        Register::GlobalControl => (3, 0),
        Register::Extra(register) => (4, register.index()),
        Register::Metrics => (5, 0),
    }
}

/// The registers, with counters that count.
#[derive(Default)]
struct Hardware {
    registers: BTreeMap<(u8, usize), u64>,
}

impl Hardware {
    fn read(&self, register: Register) -> u64 {
        *self.registers.get(&key(register)).unwrap_or(&0xdead)
    }

    fn write(&mut self, write: RegisterWrite) {
        self.registers.insert(key(write.register), write.value);
    }

    /// Returns whether `counter` counts, by GLOBAL_CTRL and its own control.
    fn counts(&self, counter: CounterId) -> bool {
        let global = CounterMask::from_bits(self.read(Register::GlobalControl));
        let own = if counter.is_fixed() {
            (self.read(Register::FixedControl) >> ((counter.index() - 32) * 4)) & 0b11 != 0
        } else {
            self.read(Register::EventSelect(counter)) & EventSelect::ENABLE != 0
        };
        global.contains(counter) && own
    }

    fn count(&mut self, events: u64) {
        for counter in capabilities().counters {
            if self.counts(counter) {
                let register = Register::Counter(counter);
                let value = self.read(register).wrapping_add(events);
                self.write(RegisterWrite { register, value });
            }
        }
    }
}

/// The driver's state.
struct Driver {
    shadow: Shadow,
    machine: Machine,
    suspended: bool,
}

/// The hardware, the state that the driver shares with the PMI, and the expectations.
#[derive(Default)]
struct Machine {
    hardware: Hardware,
    /// Shared with the PMI: the active counters.
    active: CounterMask,
    /// Shared with the PMI: the value of GLOBAL_CTRL on its exit.
    enabled: u64,
    /// The started events: event select, and expected value of the counter.
    events: BTreeMap<CounterId, (EventSelect, u64)>,
    /// The number of writes of values that the registers already had, writes of counters excepted.
    needless: usize,
    /// The number of counters that ran with the wrong control.
    wrong: usize,
}

impl Machine {
    /// Writes a register like the driver, with a PMI before and after.
    fn write(&mut self, write: RegisterWrite) {
        self.pmi(None);
        let counter = matches!(write.register, Register::Counter(_));
        if !counter && self.hardware.read(write.register) == write.value {
            self.needless += 1;
        }
        if write.register == Register::GlobalControl {
            self.enabled = write.value;
            self.pmi(None);
        }
        self.hardware.write(write);
        self.pmi(None);
    }

    /// Makes exactly `counters` run.
    fn run(&mut self, counters: CounterMask) {
        let register = Register::GlobalControl;
        let value = counters.bits();
        self.write(RegisterWrite { register, value });
    }

    /// Acts like a PMI: stops all counters, writes `new_value` to its counter if that is active,
    /// and starts the enabled counters again.
    fn pmi(&mut self, new_value: Option<(CounterId, u64)>) {
        let register = Register::GlobalControl;
        self.hardware.write(RegisterWrite { register, value: 0 });
        if let Some((counter, value)) = new_value {
            if self.active.contains(counter) {
                let register = Register::Counter(counter);
                self.hardware.write(RegisterWrite { register, value });
                if let Some((_, held)) = self.events.get_mut(&counter) {
                    *held = value;
                }
            }
        }
        let value = self.enabled;
        self.hardware.write(RegisterWrite { register, value });
        self.wrong += CounterMask::from_bits(value)
            .iter()
            .filter(|counter| !self.is_right(*counter))
            .count();
    }

    /// Returns whether `counter` is programmed for its event.
    fn is_right(&self, counter: CounterId) -> bool {
        let Some((select, _)) = self.events.get(&counter) else {
            return false;
        };
        if counter.is_fixed() {
            let control = self.hardware.read(Register::FixedControl);
            let shift = (counter.index() - 32) * 4;
            (control >> shift) & 0xf == select.fixed_control()
        } else {
            self.hardware.read(Register::EventSelect(counter)) == select.enabled()
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Suspend,
    Resume,
    /// Starts an event on a free counter, with a new value or the one that the counter holds.
    Start(CounterId, u8, Option<u64>),
    /// Stops the event of a counter, with or without a read.
    Stop(CounterId, bool),
    /// Counts events.
    Count(u64),
    /// Raises a PMI, which writes a value to a counter.
    Pmi(CounterId, u64),
    Reset,
}

fn counter() -> impl Strategy<Value = CounterId> {
    prop::sample::select(capabilities().counters.iter().collect::<Vec<_>>())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Suspend),
        4 => Just(Step::Resume),
        8 => (counter(), 0u8..3, prop::option::of(0u64..1000))
            .prop_map(|(counter, code, value)| Step::Start(counter, code, value)),
        6 => (counter(), any::<bool>()).prop_map(|(counter, read)| Step::Stop(counter, read)),
        4 => (1u64..50).prop_map(Step::Count),
        4 => (counter(), 0u64..1000).prop_map(|(counter, value)| Step::Pmi(counter, value)),
        1 => Just(Step::Reset),
    ]
}

impl Driver {
    fn new() -> Self {
        let mut driver = Self {
            shadow: Shadow::new(capabilities().counters),
            machine: Machine::default(),
            suspended: true,
        };
        driver.reset();
        driver
    }

    fn reset(&mut self) {
        // From here on the PMI finds no active counter.
        self.machine.active = CounterMask::EMPTY;
        self.machine.enabled = 0;
        self.machine.events.clear();
        self.shadow.reset(|write| self.machine.write(write));
        // A reset writes regardless of the registers' values.
        self.machine.needless = 0;
        self.suspended = true;
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let machine = &mut self.machine;
        match *step {
            Step::Suspend => {
                if self.shadow.suspend() {
                    machine.run(CounterMask::EMPTY);
                }
                self.suspended = true;
            }
            Step::Resume => {
                if let Some(counters) = self.shadow.resume(|write| machine.write(write)) {
                    machine.run(counters);
                }
                self.suspended = false;
                for counter in capabilities().counters {
                    let wanted = machine.events.contains_key(&counter);
                    prop_assert_eq!(machine.hardware.counts(counter), wanted);
                    prop_assert_eq!(machine.is_right(counter), wanted);
                }
                prop_assert_eq!(self.shadow.active(), machine.active);
            }
            Step::Start(counter, code, value) if self.suspended => {
                if machine.active.contains(counter) {
                    return Ok(());
                }
                let select = EventSelect::event(code, 0).counting_user(code != 2);
                let select = select.counting_kernel(code != 1);
                let held = machine.hardware.read(Register::Counter(counter));
                let value = value.unwrap_or(held);
                let write = |write| machine.write(write);
                self.shadow.plan(counter, Programming::of(select));
                self.shadow.start(counter, value, write);
                machine.events.insert(counter, (select, value));
                machine.active.insert(counter);
            }
            Step::Stop(counter, read) if self.suspended => {
                if !machine.active.contains(counter) {
                    return Ok(());
                }
                machine.active.remove(counter);
                machine.events.remove(&counter);
                let held = machine.hardware.read(Register::Counter(counter));
                self.shadow.stop(counter, read.then_some(held));
            }
            Step::Start(..) | Step::Stop(..) => {}
            Step::Count(events) => {
                machine.hardware.count(events);
                for (counter, (_, value)) in &mut machine.events {
                    if machine.hardware.counts(*counter) {
                        *value = value.wrapping_add(events);
                    }
                }
            }
            Step::Pmi(counter, value) => machine.pmi(Some((counter, value))),
            Step::Reset => self.reset(),
        }
        for (counter, (_, value)) in &self.machine.events {
            let held = self.machine.hardware.read(Register::Counter(*counter));
            prop_assert_eq!(held, *value, "{}", counter);
        }
        prop_assert_eq!(self.machine.needless, 0, "needless writes");
        prop_assert_eq!(self.machine.wrong, 0, "counters under wrong control");
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn hardware_follows_the_driver_without_needless_writes(
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut driver = Driver::new();
        for step in &steps {
            driver.step(step)?;
        }
    }
}
