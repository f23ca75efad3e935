// SPDX-License-Identifier: GPL-2.0

//! The registers of the PMU, by the names that [`logic`](crate::logic) gives them.

use crate::{
    logic::{
        pmu::Pmu,
        regs::{
            counter::{CounterId, CounterKind, CounterMask},
            period::PeriodLimits,
            shadow::{Register, RegisterWrite},
        },
        sched::{assign::Policy, extra_register::ExtraRegister},
    },
    x86::{
        intel::perfmon::Counters,
        msr::{Msr, ReadOnlyMsr},
    },
};
use kernel::{
    interrupt::LocalInterruptDisabled,
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
};

/// The PMU that all CPUs have.
pub(crate) struct Hardware {
    /// What is decided by.
    pub(in crate::driver) pmu: Pmu,
    /// How far to go for an assignment.
    pub(in crate::driver) policy: Policy,
    /// What a counter can be started with.
    pub(in crate::driver) limits: PeriodLimits,
    counters: Counters,
    /// A bit for each extra register that the model has and this machine has not.
    missing: Atomic<u32>,
}

impl Hardware {
    /// A `max_period` other than 0 limits what a counter is started with.
    pub(in crate::driver) fn new(
        pmu: Pmu,
        counters: Counters,
        policy: Policy,
        max_period: u64,
    ) -> Self {
        let mut limits = pmu.period_limits();
        if max_period != 0 {
            limits.max_period = limits.max_period.min(max_period);
        }
        Self {
            pmu,
            policy,
            limits,
            counters,
            missing: Atomic::new(0),
        }
    }

    /// The counters, which have to be reserved while the PMU is in use.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The register's number. [`None`] for a counter that the CPU does not have.
    fn msr(&self, register: Register) -> Option<Msr> {
        match register {
            Register::GlobalControl => Some(Msr::IA32_PERF_GLOBAL_CTRL),
            Register::FixedControl => Some(Msr::IA32_FIXED_CTR_CTRL),
            Register::Extra(register) => Some(extra(register)),
            Register::EventSelect(counter) => match counter.kind() {
                CounterKind::Gp(n) => self.counters.gp(n.into()).map(Msr::perfevtsel),
                CounterKind::Fixed(_) | CounterKind::Metric(_) => None,
            },
            Register::Counter(counter) => match counter.kind() {
                CounterKind::Gp(n) if self.pmu.capabilities.full_width_write => {
                    self.counters.gp(n.into()).map(Msr::a_pmc)
                }
                CounterKind::Gp(n) => self.counters.gp(n.into()).map(Msr::pmc),
                CounterKind::Fixed(n) => self.counters.fixed(n.into()).map(Msr::fixed_ctr),
                CounterKind::Metric(_) => None,
            },
        }
    }

    /// Writes a register of this CPU.
    pub(in crate::driver) fn write(&self, write: RegisterWrite, irqs: &LocalInterruptDisabled) {
        if let Some(msr) = self.msr(write.register) {
            msr.write(write.value, irqs);
        }
    }

    /// Reads a counter of this CPU, in its full width.
    pub(in crate::driver) fn read_counter(
        &self,
        counter: CounterId,
        irqs: &LocalInterruptDisabled,
    ) -> u64 {
        let value = match counter.kind() {
            CounterKind::Gp(n) => self.counters.gp(n.into()).map(|gp| gp.rdpmc(irqs)),
            CounterKind::Fixed(n) => self.counters.fixed(n.into()).map(|fixed| fixed.rdpmc(irqs)),
            CounterKind::Metric(_) => None,
        };
        value.unwrap_or(0)
    }

    /// Writes GLOBAL_CTRL of this CPU: the counters that count.
    pub(in crate::driver) fn write_global_control(
        &self,
        value: u64,
        irqs: &LocalInterruptDisabled,
    ) {
        Msr::IA32_PERF_GLOBAL_CTRL.write(value, irqs);
    }

    /// Reads GLOBAL_CTRL of this CPU.
    pub(in crate::driver) fn read_global_control(&self, irqs: &LocalInterruptDisabled) -> u64 {
        Msr::IA32_PERF_GLOBAL_CTRL.read(irqs)
    }

    /// The counters of this CPU that have overflowed since that was last acknowledged.
    pub(in crate::driver) fn overflowed(&self, irqs: &LocalInterruptDisabled) -> CounterMask {
        let status = ReadOnlyMsr::IA32_PERF_GLOBAL_STATUS.read(irqs);
        // Above the counters there are other units' conditions, which are not ours to handle.
        CounterMask::from_bits(status) & self.pmu.capabilities.counters
    }

    /// Acknowledges that `counters` of this CPU have overflowed.
    pub(in crate::driver) fn acknowledge(
        &self,
        counters: CounterMask,
        irqs: &LocalInterruptDisabled,
    ) {
        Msr::IA32_PERF_GLOBAL_OVF_CTRL.write(counters.bits(), irqs);
    }

    /// Whether this machine has the extra register, one of the model's.
    pub(in crate::driver) fn has(&self, register: ExtraRegister) -> bool {
        self.missing.load(Relaxed) & bit(register) == 0
    }

    /// Finds out which extra registers the machine has.
    ///
    /// Hypervisors may leave them out, or let them swallow what is written; hardware has what the
    /// model has, and is not bothered. Nobody may be using the PMU. Mainline: `check_msr()`,
    /// `arch/x86/events/intel/core.c:6883`, `7770`.
    pub(in crate::driver) fn find_extra_registers(&self, irqs: &LocalInterruptDisabled) {
        for register in self.pmu.model.extra_register_events.registers() {
            if !extra_holds_a_value(extra(register), irqs).unwrap_or(false) {
                let missing = self.missing.load(Relaxed);
                self.missing.store(missing | bit(register), Relaxed);
            }
        }
    }

    /// The first counter that is not there or does not hold what is written to it, of those that CPUID
    /// tells of. Some hypervisors describe a PMU whose registers take any write and read as 0.
    ///
    /// Nobody may be using the PMU. It is left as it was. An error if it cannot be stopped. Mainline:
    /// `check_hw_exists()`, `arch/x86/events/core.c:269-371`, which tries one counter.
    pub(in crate::driver) fn unreal_counter(
        &self,
        irqs: &LocalInterruptDisabled,
    ) -> Result<Option<CounterId>> {
        let global_control = Msr::IA32_PERF_GLOBAL_CTRL;
        // Firmware may have left counters running: they would not hold still.
        let control_before = global_control.read_safe(irqs)?;
        global_control.write_safe(0, irqs)?;
        let mut counters = self.pmu.capabilities.counters.iter();
        let unreal = counters.find(|counter| !self.holds_a_value(*counter, irqs).unwrap_or(false));
        global_control.write_safe(control_before, irqs)?;
        Ok(unreal)
    }

    /// An error if the counter is not there.
    fn holds_a_value(&self, counter: CounterId, irqs: &LocalInterruptDisabled) -> Result<bool> {
        let msr = self.msr(Register::Counter(counter)).ok_or(ENODEV)?;
        let before = msr.read_safe(irqs)?;
        // In the low 31 bits, so that sign extension does not play a part.
        let value = (before ^ 0xffff) & 0x7fff_ffff;
        msr.write_safe(value, irqs)?;
        let after = msr.read_safe(irqs)?;
        msr.write_safe(before, irqs)?;
        Ok(after == value)
    }
}

/// Bits that every extra register has: `intel_pmu_init()` tries these too.
const SOME_BITS: u64 = 0x11;

/// The register of that name.
const fn extra(register: ExtraRegister) -> Msr {
    match register {
        ExtraRegister::OffcoreResponse0 => Msr::MSR_OFFCORE_RSP_0,
        ExtraRegister::OffcoreResponse1 => Msr::MSR_OFFCORE_RSP_1,
        ExtraRegister::LoadLatency => Msr::MSR_PEBS_LD_LAT_THRESHOLD,
        ExtraRegister::Frontend => Msr::MSR_PEBS_FRONTEND,
    }
}

const fn bit(register: ExtraRegister) -> u32 {
    1 << register.index()
}

/// An error if the register is not there. It is left as it was.
fn extra_holds_a_value(msr: Msr, irqs: &LocalInterruptDisabled) -> Result<bool> {
    let before = msr.read_safe(irqs)?;
    let value = before ^ SOME_BITS;
    msr.write_safe(value, irqs)?;
    let after = msr.read_safe(irqs)?;
    msr.write_safe(before, irqs)?;
    Ok(after == value)
}
