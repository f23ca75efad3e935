// SPDX-License-Identifier: GPL-2.0

//! The hardware: the registers of a PMU, by the names that [`logic`](crate::logic) gives them.
//!
//! A PMU's [`Interface`] knows its registers, where they are and what they mean; the rest of the
//! driver uses the methods of [`Hardware`]. There is a file per kind of PMU and an arm in each
//! `match`: no call goes through a pointer, on any path, NMIs included.

mod amd;
mod arch_perfmon;
mod lbr;

use crate::{
    kern::{
        call::call_on_or_here,
        init::moved, //
    },
    logic::{
        capabilities,
        pmu::Pmu,
        regs::{
            counter::{
                CounterId,
                CounterMask, //
            },
            extra_register::ExtraRegister,
            global::Status,
            metrics::Metrics,
            period::PeriodLimits,
            register::RegisterWrite, //
        },
        sched::assign::Policy, //
    },
    x86::{
        builtin::Builtin,
        msr::Msr,
        reserve::{
            NotReserved,
            Reservation, //
        },
    },
};
pub(in crate::driver) use amd::Amd;
use arch_perfmon::ArchPerfmon;
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};
pub(in crate::driver) use lbr::LbrRegisters;

/// How the PMU is driven.
enum Interface {
    /// Architectural performance monitoring, version 2 or later.
    ArchPerfmon(ArchPerfmon),
    /// AMD's PMUs, with PerfMonV2 and without.
    Amd(Amd),
}

/// What let counters run before the driver came.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Control(u64);

/// The PMU of the CPUs with cores of one type.
pub(crate) struct Hardware {
    /// The model and the machine's counters.
    pub(in crate::driver) pmu: Pmu,
    /// How events get counters.
    pub(in crate::driver) policy: Policy,
    /// The limits of start values.
    pub(in crate::driver) limits: PeriodLimits,
    interface: Interface,
    /// The registers of the branch records, if the machine has them.
    lbr: Option<LbrRegisters>,
}

impl Hardware {
    /// Finds the counters of `pmu` on `cpu`, or here if that is [`None`]. `ENODEV`, with a line in
    /// the log, if the kernel has hidden them, `ENXIO` if the CPU is offline, or `ENOMEM`. Changes
    /// nothing. Process context.
    ///
    /// A `max_period` other than 0 limits what a counter is started with.
    pub(in crate::driver) fn new(
        mut pmu: KBox<Pmu>,
        policy: Policy,
        max_period: u64,
        cpu: Option<CpuId>,
    ) -> Result<KBox<Self>> {
        let mut limits = pmu.period_limits();
        if max_period != 0 {
            limits.max_period = limits.max_period.min(max_period);
        }
        let capabilities = &pmu.capabilities;
        let freezes = capabilities.amd_lbr.is_none_or(|it| it.freezes);
        let mut registers = None;
        if let Some(lbr) = pmu.lbr {
            call_on_or_here(cpu, |irqs| {
                registers = LbrRegisters::find(lbr, freezes, irqs);
            })?;
        }
        let interface = match capabilities.interface {
            capabilities::Interface::ArchPerfmon => {
                let mut found = Err(ENXIO);
                call_on_or_here(cpu, |irqs| found = ArchPerfmon::new(capabilities, irqs))?;
                let found = found?;
                if !found.has_metrics() {
                    pmu.capabilities.metrics = CounterMask::EMPTY;
                }
                Interface::ArchPerfmon(found)
            }
            _ => Interface::Amd(Amd::new(capabilities)?),
        };
        let hardware = try_init!(Self {
            interface,
            lbr: registers,
            pmu <- moved(pmu),
            policy,
            limits,
        }? Error);
        KBox::try_init(hardware, GFP_KERNEL)
    }

    /// Reserves the counters' registers, where the built-in driver has `initialised` together with
    /// it.
    pub(in crate::driver) fn reserve(&self, initialised: bool) -> Result<Reservation, NotReserved> {
        match &self.interface {
            Interface::ArchPerfmon(it) => it.reserve(initialised),
            Interface::Amd(it) => it.reserve(initialised),
        }
    }

    /// Returns the first of the counters' registers that something has reserved. None may be
    /// reserved for this driver or the built-in one.
    pub(in crate::driver) fn first_reserved(&self) -> Option<Msr> {
        match &self.interface {
            Interface::ArchPerfmon(it) => it.first_reserved(),
            Interface::Amd(it) => it.first_reserved(),
        }
    }

    /// Returns the registers of the branch records, if the machine has them.
    pub(in crate::driver) fn lbr_registers(&self) -> Option<LbrRegisters> {
        self.lbr
    }

    /// Writes a register of this CPU.
    #[inline]
    pub(in crate::driver) fn write(&self, write: RegisterWrite, irqs: &LocalInterruptDisabled) {
        match &self.interface {
            Interface::ArchPerfmon(it) => it.write(write, irqs),
            Interface::Amd(it) => it.write(write, irqs),
        }
    }

    /// Reads a counter of this CPU, in its full width.
    #[inline(never)]
    pub(in crate::driver) fn read_counter(
        &self,
        counter: CounterId,
        irqs: &LocalInterruptDisabled,
    ) -> u64 {
        match &self.interface {
            Interface::ArchPerfmon(it) => it.read_counter(counter, irqs),
            Interface::Amd(it) => it.read_counter(counter, irqs),
        }
    }

    /// Reads the slots and the topdown metrics of this CPU. They belong together if neither counts.
    pub(in crate::driver) fn read_metrics(&self, irqs: &LocalInterruptDisabled) -> Metrics {
        match &self.interface {
            Interface::ArchPerfmon(it) => it.read_metrics(irqs),
            Interface::Amd(_) => Metrics::default(),
        }
    }

    /// Lets `counters` of this CPU run, and stops all others.
    #[inline]
    pub(in crate::driver) fn run(&self, counters: CounterMask, irqs: &LocalInterruptDisabled) {
        match &self.interface {
            Interface::ArchPerfmon(it) => it.run(counters, irqs),
            Interface::Amd(it) => it.run(counters, irqs),
        }
    }

    /// Stops all counters of this CPU.
    #[inline]
    pub(in crate::driver) fn stop(&self, irqs: &LocalInterruptDisabled) {
        self.run(CounterMask::EMPTY, irqs);
    }

    /// Returns whether others may have let counters run that this driver has stopped.
    #[inline]
    pub(in crate::driver) fn others_run_counters(&self) -> bool {
        self.amd().is_some_and(|it| !it.keeps_values())
    }

    /// Returns what lets counters of this CPU run.
    pub(in crate::driver) fn control(&self, irqs: &LocalInterruptDisabled) -> Control {
        match &self.interface {
            Interface::ArchPerfmon(it) => Control(it.control(irqs)),
            Interface::Amd(it) => Control(it.control(irqs)),
        }
    }

    /// Restores what let counters of this CPU run.
    pub(in crate::driver) fn restore(&self, before: Control, irqs: &LocalInterruptDisabled) {
        match &self.interface {
            Interface::ArchPerfmon(it) => it.set_control(before.0, irqs),
            Interface::Amd(it) => it.set_control(before.0, irqs),
        }
    }

    /// Returns AMD's PMU, whose PMI is another than Intel's.
    #[inline]
    pub(in crate::driver) fn amd(&self) -> Option<&Amd> {
        match &self.interface {
            Interface::ArchPerfmon(_) => None,
            Interface::Amd(it) => Some(it),
        }
    }

    /// Returns what has raised a PMI on this CPU and was not acknowledged. Intel's PMUs.
    #[inline]
    pub(in crate::driver) fn status(&self, irqs: &LocalInterruptDisabled) -> Status {
        match &self.interface {
            Interface::ArchPerfmon(it) => it.status(irqs),
            Interface::Amd(_) => Status::from_bits(0),
        }
    }

    /// Acknowledges what has raised a PMI on this CPU. Intel's PMUs.
    #[inline]
    pub(in crate::driver) fn acknowledge(&self, status: Status, irqs: &LocalInterruptDisabled) {
        match &self.interface {
            Interface::ArchPerfmon(it) => it.acknowledge(status, irqs),
            Interface::Amd(_) => {}
        }
    }

    /// Acknowledges the overflows of all counters of this CPU.
    pub(in crate::driver) fn acknowledge_all(&self, irqs: &LocalInterruptDisabled) {
        match &self.interface {
            Interface::ArchPerfmon(it) => {
                let counters = self.pmu.capabilities.reporting().bits();
                it.acknowledge(Status::from_bits(counters), irqs);
            }
            Interface::Amd(it) => it.acknowledge_all(irqs),
        }
    }

    /// Learns what the built-in driver, which need not have initialised, tells of the hardware.
    pub(in crate::driver) fn ask(&mut self, builtin: &Builtin) {
        match &mut self.interface {
            Interface::ArchPerfmon(_) => {}
            Interface::Amd(it) => it.ask(builtin),
        }
    }

    /// Prepares this CPU, which has come up.
    pub(in crate::driver) fn starting(&self, irqs: &LocalInterruptDisabled) {
        match &self.interface {
            Interface::ArchPerfmon(_) => {}
            Interface::Amd(it) => it.starting(irqs),
        }
    }

    /// Waits until the PMI has handled the overflows of the counters that it `handles`, after all
    /// were stopped. Not in an NMI.
    #[inline]
    pub(in crate::driver) fn await_overflows(
        &self,
        handles: impl Fn() -> CounterMask,
        irqs: &LocalInterruptDisabled,
    ) {
        match &self.interface {
            // The NMI comes before the counters are stopped, or LVTPC keeps it.
            Interface::ArchPerfmon(_) => {}
            Interface::Amd(it) => it.await_overflows(handles, irqs),
        }
    }

    /// Returns whether this machine has the extra register, one of the model's.
    pub(in crate::driver) fn has(&self, register: ExtraRegister) -> bool {
        match &self.interface {
            Interface::ArchPerfmon(it) => it.has(register),
            Interface::Amd(_) => false,
        }
    }

    /// Tries which of the model's extra registers the machine has.
    ///
    /// Hypervisors may leave them out, or drop what is written to them; hardware has all of the
    /// model's and need not be tried. The PMU must not be in use. Mainline: `check_msr()`,
    /// `intel_pmu_check_extra_regs()`, `arch/x86/events/intel/core.c`.
    pub(in crate::driver) fn find_extra_registers(&self, irqs: &LocalInterruptDisabled) {
        for register in self.pmu.model.extra_register_events.registers() {
            match &self.interface {
                Interface::ArchPerfmon(it) => it.try_extra_register(register, irqs),
                Interface::Amd(_) => {}
            }
        }
    }

    /// Returns the first counter that is absent or does not hold what is written to it, of those
    /// that CPUID names. Some hypervisors describe a PMU whose registers take any write and read as
    /// 0.
    ///
    /// The PMU must not be in use, and is left as it was. Fails if it cannot be stopped.
    /// Mainline: `check_hw_exists()`, `arch/x86/events/core.c`, which tries one counter.
    pub(in crate::driver) fn unreal_counter(
        &self,
        irqs: &LocalInterruptDisabled,
    ) -> Result<Option<CounterId>> {
        let counters = self.pmu.capabilities.counters.iter();
        match &self.interface {
            Interface::ArchPerfmon(it) => it.unreal_counter(counters, irqs),
            Interface::Amd(it) => it.unreal_counter(counters, irqs),
        }
    }
}
