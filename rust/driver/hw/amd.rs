// SPDX-License-Identifier: GPL-2.0

//! AMD's PMUs: with an enable bit in each event select only, or with PerfMonV2, which adds one
//! register for all counters, as Intel's PMUs have.
//!
//! | | before PerfMonV2 | PerfMonV2 |
//! |---|---|---|
//! | a counter runs | with the enable bit of its event select | if PerfCntrGlobalCtl has its bit, too |
//! | it has overflowed | if its top bit is clear | if PerfCntrGlobalStatus has its bit |
//! | in the PMI | counters keep running | counters are stopped |
//!
//! The local APIC does not mask LVTPC when it delivers a PMI. So each overflow raises an NMI,
//! possibly after an earlier NMI or a callback has handled the overflow: see [`Amd::claim`] and
//! [`Amd::await_overflows`].
//!
//! Source: APM volume 2, section 13.2.

use crate::{
    kern::{
        percpu::PerCpu,
        ticks::Ticks, //
    },
    logic::{
        capabilities::{
            Capabilities,
            Interface, //
        },
        regs::{
            counter::{
                CounterId,
                CounterKind,
                CounterMask, //
            },
            event_select::EventSelect,
            per_counter::Switches,
            register::{
                Register,
                RegisterWrite, //
            },
        },
    },
    x86::{
        amd::perfmon::{
            Counter,
            Counters, //
        },
        builtin::{
            Builtin,
            SelectMask, //
        },
        msr::{
            Msr,
            ReadOnlyMsr, //
        },
        reserve::{
            first_reserved,
            NotReserved,
            Reservation, //
        },
    },
};
use core::sync::atomic::{
    AtomicBool,
    AtomicU64,
    AtomicUsize,
    Ordering::Relaxed, //
};
use kernel::{
    interrupt::{
        local_interrupt_disable,
        LocalInterruptDisabled, //
    },
    prelude::*,
    time::{
        delay::udelay,
        Delta, //
    },
};

/// The time after a handled overflow, in milliseconds, within which an NMI that nothing else claims
/// is considered a late one. Mainline: `perf_nmi_window`, `arch/x86/events/amd/core.c`.
const WINDOW_MS: u32 = 100;

/// The maximum time to wait for the NMI of an overflow, in microseconds. Mainline:
/// `OVERFLOW_WAIT_COUNT`.
const WAIT: u32 = 50;

/// Bit of PerfCntrGlobalStatus: an overflow has stopped the recording of branches.
const LBRS_FROZEN: u64 = 1 << 58;

/// The overflows that a PMI has found.
pub(in crate::driver) struct Overflows {
    counters: CounterMask,
    /// Counters without a started event.
    of_no_event: CounterMask,
    /// PerfCntrGlobalStatus; 0 before PerfMonV2.
    status: u64,
}

impl Overflows {
    /// Returns the counters that have overflowed.
    #[inline]
    pub(in crate::driver) fn counters(&self) -> CounterMask {
        self.counters
    }

    /// Returns the number of overflows of counters without a started event. Other code may have let
    /// such counters run ([`Amd::keeps_values`]), and nothing else claims their NMIs.
    #[inline]
    pub(in crate::driver) fn of_no_event(&self) -> u32 {
        self.of_no_event.weight()
    }
}

/// The registers of an AMD PMU.
pub(in crate::driver) struct Amd {
    counters: Counters,
    /// All counters of the PMU.
    present: CounterMask,
    /// The top bit of a counter: clear after an overflow.
    top: u64,
    /// Set if PerfMonV2 exists.
    has_global: bool,
    cpus: PerCpu<AmdCpu>,
    /// The bits that must be clear in event selects. If [`None`], they are unknown, and HostOnly is
    /// cleared.
    select_mask: Option<SelectMask>,
}

/// The state of a CPU. The PMI uses it, too.
#[derive(Default)]
struct AmdCpu {
    switches: Switches,
    /// With PerfMonV2: the bits that were cleared when [`Amd::select_anew`] last wrote the event
    /// selects.
    left_out: AtomicU64,
    /// The time at which the PMI last handled an overflow, if it ever has.
    handled: AtomicUsize,
    has_handled: AtomicBool,
}

impl Amd {
    /// Finds the counters on this CPU.
    ///
    /// Fails with `ENOMEM`. Process context.
    pub(super) fn new(capabilities: &Capabilities) -> Result<Self> {
        let cpus = PerCpu::new(|_| Ok::<_, Error>(AmdCpu::default()))?;
        let core = capabilities.interface != Interface::AmdLegacy;
        let present = capabilities.counters;
        // CAST: all counters are general-purpose ones, which are in the low half.
        let mask = present.bits() as u32;
        Ok(Self {
            counters: Counters::probe(mask, core, &local_interrupt_disable()),
            present,
            top: (capabilities.width.mask() >> 1).wrapping_add(1),
            has_global: capabilities.interface == Interface::AmdV2,
            cpus,
            select_mask: None,
        })
    }

    /// Uses the built-in driver's record of the bits that must be clear in event selects.
    pub(super) fn use_builtin(&mut self, builtin: &Builtin) {
        self.select_mask = Some(builtin.select_mask());
    }

    /// Prepares this CPU, which comes up, resumes, or is online at load.
    pub(super) fn starting(&self, irqs: &LocalInterruptDisabled) {
        if let Some(mask) = &self.select_mask {
            mask.starting(irqs);
        }
    }

    pub(super) fn reserve(&self, initialised: bool) -> Result<Reservation, NotReserved> {
        let registers = self.counters.registers();
        if initialised {
            let reserved = Reservation::with_builtin(registers.clone(), false)?;
            if let Some(reserved) = reserved {
                return Ok(reserved);
            }
        }
        Reservation::new(registers)
    }

    pub(super) fn first_reserved(&self) -> Option<Msr> {
        first_reserved(self.counters.registers())
    }

    /// Returns the counter's registers; [`None`] for a counter that the CPU does not have.
    #[inline]
    fn counter(&self, counter: CounterId) -> Option<Counter> {
        match counter.kind() {
            CounterKind::Gp(n) => self.counters.get(n.into()),
            _ => None,
        }
    }

    /// Returns the bits that must be clear in event selects of this CPU.
    #[inline]
    fn left_out(&self, irqs: &LocalInterruptDisabled) -> u64 {
        match &self.select_mask {
            Some(mask) => mask.get(irqs),
            None => EventSelect::HOST_ONLY,
        }
    }

    #[inline]
    fn set_select(&self, counter: CounterId, value: u64, irqs: &LocalInterruptDisabled) {
        if let Some(counter) = self.counter(counter) {
            let value = value & !self.left_out(irqs);
            counter.select().write(value, irqs);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn write(&self, write: RegisterWrite, irqs: &LocalInterruptDisabled) {
        let value = write.value;
        match write.register {
            Register::EventSelect(counter) => {
                let cpu = self.cpus.this_cpu(irqs);
                cpu.switches.record(counter, value);
                // Without a register for all counters, writing the enable bit lets the counter run.
                if self.has_global || value & EventSelect::ENABLE == 0 {
                    self.set_select(counter, value, irqs);
                }
            }
            Register::Counter(counter) => {
                if let Some(counter) = self.counter(counter) {
                    counter.value().write(value, irqs);
                }
            }
            Register::GlobalControl => self.run(CounterMask::from_bits(value), irqs),
            Register::FixedControl | Register::Metrics | Register::Extra(_) => {}
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn read_counter(&self, counter: CounterId, irqs: &LocalInterruptDisabled) -> u64 {
        self.counter(counter).map_or(0, |it| it.read(irqs))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn run(&self, counters: CounterMask, irqs: &LocalInterruptDisabled) {
        let cpu = self.cpus.this_cpu(irqs);
        if self.has_global {
            if !counters.is_empty() && cpu.left_out.load(Relaxed) != self.left_out(irqs) {
                self.select_anew(cpu, irqs);
            }
            Msr::AMD_GLOBAL_CTL.write(counters.bits(), irqs);
            return;
        }
        cpu.switches.run(counters, |write| {
            if let Register::EventSelect(counter) = write.register {
                self.set_select(counter, write.value, irqs);
            }
        });
    }

    /// Writes all event selects again with other bits cleared, after SVM was turned on or off.
    /// Includes counters that do not run, since their event selects are not written when their
    /// events return.
    #[cold]
    #[inline(never)]
    fn select_anew(&self, cpu: &AmdCpu, irqs: &LocalInterruptDisabled) {
        cpu.left_out.store(self.left_out(irqs), Relaxed);
        for counter in self.present {
            self.set_select(counter, cpu.switches.recorded(counter), irqs);
        }
    }

    pub(super) fn control(&self, irqs: &LocalInterruptDisabled) -> u64 {
        if self.has_global {
            Msr::AMD_GLOBAL_CTL.read(irqs)
        } else {
            0
        }
    }

    pub(super) fn set_control(&self, value: u64, irqs: &LocalInterruptDisabled) {
        if self.has_global {
            Msr::AMD_GLOBAL_CTL.write(value, irqs);
        }
    }

    /// Returns whether the PMI stops the counters while it handles overflows.
    #[inline]
    pub(in crate::driver) fn stops_in_pmi(&self) -> bool {
        self.has_global
    }

    /// Returns whether a stopped counter keeps its value, and stays stopped.
    ///
    /// With PerfMonV2, two functions of the built-in driver, which other code calls, let all
    /// counters run, including counters that events have left: `amd_pmu_reload_virt()` and, with
    /// LbrExtV2, `amd_pmu_v2_snapshot_branch_stack()` (`arch/x86/events/amd/core.c`). Clearing the
    /// event selects of such counters would cost one write when an event leaves, and another when
    /// it returns.
    pub(in crate::driver) fn keeps_values(&self) -> bool {
        !self.has_global
    }

    /// Returns the `candidates` that have overflowed.
    ///
    /// The candidates must have started events: other counters may have any value.
    #[inline]
    pub(in crate::driver) fn overflows(
        &self,
        candidates: CounterMask,
        irqs: &LocalInterruptDisabled,
    ) -> Overflows {
        if !self.has_global {
            return Overflows {
                counters: self.overflowed(candidates, irqs),
                of_no_event: CounterMask::EMPTY,
                status: 0,
            };
        }
        let status = ReadOnlyMsr::AMD_GLOBAL_STATUS.read(irqs);
        // Some microcode sets reserved bits (`amd_pmu_v2_handle_irq()`,
        // `arch/x86/events/amd/core.c`).
        let overflowed = CounterMask::from_bits(status) & self.present;
        Overflows {
            counters: overflowed & candidates,
            of_no_event: overflowed.without(candidates),
            status,
        }
    }

    /// Acknowledges overflows, including late ones of events that have left. Afterwards, branches
    /// are recorded again.
    #[inline]
    pub(in crate::driver) fn acknowledge(
        &self,
        overflows: &Overflows,
        irqs: &LocalInterruptDisabled,
    ) {
        if overflows.status != 0 {
            Msr::AMD_GLOBAL_STATUS_CLR.write(overflows.status, irqs);
        }
    }

    #[inline]
    fn overflowed(&self, candidates: CounterMask, irqs: &LocalInterruptDisabled) -> CounterMask {
        if self.has_global {
            let status = ReadOnlyMsr::AMD_GLOBAL_STATUS.read(irqs);
            return CounterMask::from_bits(status) & candidates;
        }
        let is_over = |counter: &CounterId| self.read_counter(*counter, irqs) & self.top == 0;
        candidates.iter().filter(is_over).collect()
    }

    /// Waits, for at most [`WAIT`] microseconds, until the PMI has handled the overflows of the
    /// `candidates`, which must be stopped. Otherwise the NMI might come so late that there is
    /// nothing left to handle.
    ///
    /// Not in an NMI. Mainline: `amd_pmu_check_overflow()`, `arch/x86/events/amd/core.c`.
    #[cold]
    #[inline(never)]
    pub(super) fn await_overflows(
        &self,
        candidates: impl Fn() -> CounterMask,
        irqs: &LocalInterruptDisabled,
    ) {
        let handled = candidates();
        if handled.is_empty() || self.overflowed(handled, irqs).is_empty() {
            return;
        }
        for _ in 0..WAIT {
            udelay(Delta::from_micros(1));
            if self.overflowed(candidates(), irqs).is_empty() {
                return;
            }
        }
    }

    /// Acknowledges the overflows of all counters of this CPU.
    pub(super) fn acknowledge_all(&self, irqs: &LocalInterruptDisabled) {
        if self.has_global {
            Msr::AMD_GLOBAL_STATUS_CLR.write(self.present.bits() | LBRS_FROZEN, irqs);
        }
    }

    /// Returns the number of overflows to report to the kernel, given the number that the PMI has
    /// `handled`. An NMI without an overflow is claimed if it may be a late one.
    ///
    /// Mainline: `amd_pmu_adjust_nmi_window()`, `arch/x86/events/amd/core.c`.
    #[inline]
    pub(in crate::driver) fn claim(&self, handled: u32, irqs: &LocalInterruptDisabled) -> u32 {
        let cpu = self.cpus.this_cpu(irqs);
        if handled != 0 {
            cpu.handled.store(Ticks::now().number(), Relaxed);
            cpu.has_handled.store(true, Relaxed);
            return handled;
        }
        let last = Ticks::from_number(cpu.handled.load(Relaxed));
        u32::from(cpu.has_handled.load(Relaxed) && last.age() <= WINDOW_MS)
    }

    pub(super) fn find_broken_counter(
        &self,
        mut counters: impl Iterator<Item = CounterId>,
        irqs: &LocalInterruptDisabled,
    ) -> Result<Option<CounterId>> {
        Ok(counters.find(|counter| !self.holds_a_value(*counter, irqs).unwrap_or(false)))
    }

    /// Returns whether the counter holds a written value. Fails if the counter does not exist.
    fn holds_a_value(&self, counter: CounterId, irqs: &LocalInterruptDisabled) -> Result<bool> {
        let counter = self.counter(counter).ok_or(ENODEV)?;
        let (select, value) = (counter.select(), counter.value());
        // Firmware may have left the counter running: its value would change.
        let select_before = select.read_safe(irqs)?;
        select.write_safe(0, irqs)?;
        let before = value.read_safe(irqs)?;
        let other = before ^ 0xffff;
        value.write_safe(other, irqs)?;
        let after = value.read_safe(irqs)?;
        value.write_safe(before, irqs)?;
        select.write_safe(select_before, irqs)?;
        Ok(after == other)
    }
}
