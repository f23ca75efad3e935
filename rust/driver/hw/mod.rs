// SPDX-License-Identifier: GPL-2.0

//! The hardware: access to the registers that [`logic`](crate::logic) names.
//!
//! [`PmuRegisters`] knows a PMU's registers, their addresses and their meaning. The rest of the
//! driver uses the methods of [`Hardware`]. Each kind of PMU has a file, and an arm in each
//! `match`: no call goes through a pointer, on any path, including NMIs.

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
        pmu::PmuInfo,
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

/// The registers of a PMU, by kind of PMU.
enum PmuRegisters {
    /// Architectural performance monitoring, version 2 or later.
    ArchPerfmon(ArchPerfmon),
    /// AMD's PMUs, with PerfMonV2 and without.
    Amd(Amd),
}

/// The value of the register that lets counters run, as it was before this driver used the CPU.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Control(u64);

/// The PMU of the CPUs with cores of one type.
pub(crate) struct Hardware {
    /// The model and the machine's counters.
    pub(in crate::driver) pmu: PmuInfo,
    /// The policy of assigning counters.
    pub(in crate::driver) policy: Policy,
    /// The limits of start values.
    pub(in crate::driver) limits: PeriodLimits,
    interface: PmuRegisters,
    /// The registers of the branch records, if the machine has them.
    lbr: Option<LbrRegisters>,
}

impl Hardware {
    /// Finds the counters of `pmu` on `cpu`, or on this CPU if `cpu` is [`None`]. Fails with
    /// `ENODEV`, and a line in the log, if the kernel has hidden them, with `ENXIO` if the CPU is
    /// offline, or with `ENOMEM`. Changes nothing. Process context.
    ///
    /// A `max_period` other than 0 limits the periods for which counters are programmed.
    pub(in crate::driver) fn new(
        mut pmu: KBox<PmuInfo>,
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
                PmuRegisters::ArchPerfmon(found)
            }
            _ => PmuRegisters::Amd(Amd::new(capabilities)?),
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

    /// Reserves the counters' registers, together with the built-in driver if it has `initialised`.
    pub(in crate::driver) fn reserve(&self, initialised: bool) -> Result<Reservation, NotReserved> {
        match &self.interface {
            PmuRegisters::ArchPerfmon(it) => it.reserve(initialised),
            PmuRegisters::Amd(it) => it.reserve(initialised),
        }
    }

    /// Returns the first of the counters' registers that something has reserved. This driver and
    /// the built-in one must not have reserved any.
    pub(in crate::driver) fn first_reserved(&self) -> Option<Msr> {
        match &self.interface {
            PmuRegisters::ArchPerfmon(it) => it.first_reserved(),
            PmuRegisters::Amd(it) => it.first_reserved(),
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
            PmuRegisters::ArchPerfmon(it) => it.write(write, irqs),
            PmuRegisters::Amd(it) => it.write(write, irqs),
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
            PmuRegisters::ArchPerfmon(it) => it.read_counter(counter, irqs),
            PmuRegisters::Amd(it) => it.read_counter(counter, irqs),
        }
    }

    /// Reads the slots and the topdown metrics of this CPU. The values are consistent if neither
    /// counts.
    pub(in crate::driver) fn read_metrics(&self, irqs: &LocalInterruptDisabled) -> Metrics {
        match &self.interface {
            PmuRegisters::ArchPerfmon(it) => it.read_metrics(irqs),
            PmuRegisters::Amd(_) => Metrics::default(),
        }
    }

    /// Lets `counters` of this CPU run, and stops all others.
    #[inline]
    pub(in crate::driver) fn run(&self, counters: CounterMask, irqs: &LocalInterruptDisabled) {
        match &self.interface {
            PmuRegisters::ArchPerfmon(it) => it.run(counters, irqs),
            PmuRegisters::Amd(it) => it.run(counters, irqs),
        }
    }

    /// Stops all counters of this CPU.
    #[inline]
    pub(in crate::driver) fn stop(&self, irqs: &LocalInterruptDisabled) {
        self.run(CounterMask::EMPTY, irqs);
    }

    /// Returns whether other code may have let counters run that this driver has stopped.
    #[inline]
    pub(in crate::driver) fn others_run_counters(&self) -> bool {
        self.amd().is_some_and(|it| !it.keeps_values())
    }

    /// Returns the register value that lets counters of this CPU run.
    pub(in crate::driver) fn control(&self, irqs: &LocalInterruptDisabled) -> Control {
        match &self.interface {
            PmuRegisters::ArchPerfmon(it) => Control(it.control(irqs)),
            PmuRegisters::Amd(it) => Control(it.control(irqs)),
        }
    }

    /// Restores the register value that let counters of this CPU run.
    pub(in crate::driver) fn restore(&self, before: Control, irqs: &LocalInterruptDisabled) {
        match &self.interface {
            PmuRegisters::ArchPerfmon(it) => it.set_control(before.0, irqs),
            PmuRegisters::Amd(it) => it.set_control(before.0, irqs),
        }
    }

    /// Returns AMD's registers; its PMI handler differs.
    #[inline]
    pub(in crate::driver) fn amd(&self) -> Option<&Amd> {
        match &self.interface {
            PmuRegisters::ArchPerfmon(_) => None,
            PmuRegisters::Amd(it) => Some(it),
        }
    }

    /// Returns the causes of a PMI on this CPU that are not acknowledged yet. Intel's PMUs.
    #[inline]
    pub(in crate::driver) fn status(&self, irqs: &LocalInterruptDisabled) -> Status {
        match &self.interface {
            PmuRegisters::ArchPerfmon(it) => it.status(irqs),
            PmuRegisters::Amd(_) => Status::from_bits(0),
        }
    }

    /// Acknowledges the causes of a PMI on this CPU. Intel's PMUs.
    #[inline]
    pub(in crate::driver) fn acknowledge(&self, status: Status, irqs: &LocalInterruptDisabled) {
        match &self.interface {
            PmuRegisters::ArchPerfmon(it) => it.acknowledge(status, irqs),
            PmuRegisters::Amd(_) => {}
        }
    }

    /// Acknowledges the overflows of all counters of this CPU.
    pub(in crate::driver) fn acknowledge_all(&self, irqs: &LocalInterruptDisabled) {
        match &self.interface {
            PmuRegisters::ArchPerfmon(it) => {
                let counters = self.pmu.capabilities.reporting().bits();
                it.acknowledge(Status::from_bits(counters), irqs);
            }
            PmuRegisters::Amd(it) => it.acknowledge_all(irqs),
        }
    }

    /// Returns whether a counter of this CPU has an overflow that is not acknowledged. Intel's
    /// PMUs.
    pub(in crate::driver) fn has_overflow(&self, irqs: &LocalInterruptDisabled) -> bool {
        let counters = self.pmu.capabilities.reporting();
        !self.status(irqs).overflowed(counters).is_empty()
    }

    /// Connects the hardware with the built-in driver's data. The built-in driver need not have
    /// initialised.
    pub(in crate::driver) fn use_builtin(&mut self, builtin: &Builtin) {
        match &mut self.interface {
            PmuRegisters::ArchPerfmon(_) => {}
            PmuRegisters::Amd(it) => it.use_builtin(builtin),
        }
    }

    /// Prepares this CPU, which comes up, resumes, or is online at load.
    pub(in crate::driver) fn starting(&self, irqs: &LocalInterruptDisabled) {
        match &self.interface {
            PmuRegisters::ArchPerfmon(_) => {}
            PmuRegisters::Amd(it) => it.starting(irqs),
        }
    }

    /// Stops all counters of this CPU, and waits until the PMI has handled the overflows of the
    /// counters that it `handles`. Not in an NMI.
    #[inline]
    pub(in crate::driver) fn suspend(
        &self,
        handles: impl Fn() -> CounterMask,
        irqs: &LocalInterruptDisabled,
    ) {
        match &self.interface {
            // No wait: a late NMI is recognised, since LVTPC has masked itself (`pmi::handle()`).
            PmuRegisters::ArchPerfmon(it) => it.run(CounterMask::EMPTY, irqs),
            PmuRegisters::Amd(it) => {
                it.run(CounterMask::EMPTY, irqs);
                it.await_overflows(handles, irqs);
            }
        }
    }

    /// Returns whether this machine has the extra register, which must be one of the model's.
    pub(in crate::driver) fn has(&self, register: ExtraRegister) -> bool {
        match &self.interface {
            PmuRegisters::ArchPerfmon(it) => it.has(register),
            PmuRegisters::Amd(_) => false,
        }
    }

    /// Finds out which of the model's extra registers the machine has.
    ///
    /// Hypervisors may leave them out, or discard writes to them. Real hardware has all of the
    /// model's registers and is not tried. The PMU must not be in use. Mainline: `check_msr()`,
    /// `intel_pmu_check_extra_regs()`, `arch/x86/events/intel/core.c`.
    pub(in crate::driver) fn find_extra_registers(&self, irqs: &LocalInterruptDisabled) {
        for register in self.pmu.model.extra_register_events.registers() {
            match &self.interface {
                PmuRegisters::ArchPerfmon(it) => it.try_extra_register(register, irqs),
                PmuRegisters::Amd(_) => {}
            }
        }
    }

    /// Returns the first counter in CPUID that is absent or does not keep a written value. Some
    /// hypervisors describe a PMU whose registers accept any write and read as 0.
    ///
    /// The PMU must not be in use, and its registers are restored. Fails if it cannot be stopped.
    /// Mainline: `check_hw_exists()`, `arch/x86/events/core.c`, which tries one counter.
    pub(in crate::driver) fn find_broken_counter(
        &self,
        irqs: &LocalInterruptDisabled,
    ) -> Result<Option<CounterId>> {
        let counters = self.pmu.capabilities.counters.iter();
        match &self.interface {
            PmuRegisters::ArchPerfmon(it) => it.find_broken_counter(counters, irqs),
            PmuRegisters::Amd(it) => it.find_broken_counter(counters, irqs),
        }
    }
}
