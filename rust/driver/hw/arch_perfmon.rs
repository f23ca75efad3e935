// SPDX-License-Identifier: GPL-2.0

//! Architectural performance monitoring from version 2 on: Intel's PMUs.
//!
//! GLOBAL_CTRL lets counters run. GLOBAL_STATUS has a bit for each counter that has overflowed,
//! which OVF_CTRL clears. Source: Intel SDM volume 3, section 20.2.

use crate::{
    logic::{
        capabilities::{
            Capabilities,
            ADDRESSABLE_GP, //
        },
        regs::{
            counter::{
                CounterId,
                CounterKind,
                CounterMask,
                MAX_FIXED, //
            },
            extra_register::ExtraRegister,
            global::Status,
            metrics::Metrics,
            register::{
                Register,
                RegisterWrite, //
            },
        },
    },
    x86::{
        cpuid::Feature,
        intel::perfmon::{
            self,
            Counters, //
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
use kernel::{
    interrupt::LocalInterruptDisabled,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

const _: () = {
    assert!(
        ADDRESSABLE_GP as u32 == perfmon::MAX_GP,
        "`logic` and `x86` differ in the number of general-purpose counters"
    );
    assert!(
        MAX_FIXED as u32 == perfmon::MAX_FIXED,
        "`logic` and `x86` differ in the number of fixed counters"
    );
};

/// The registers of a PMU with architectural performance monitoring.
pub(super) struct ArchPerfmon {
    counters: Counters,
    /// Set if general-purpose counters are written through IA32_A_PMCn.
    full_width: bool,
    /// A bit for each extra register of the model that this machine lacks.
    missing: Atomic<u32>,
}

impl ArchPerfmon {
    /// Finds the counters on this CPU. Fails with `ENODEV`, and a line in the log, if the kernel
    /// has hidden them.
    pub(super) fn new(capabilities: &Capabilities, irqs: &LocalInterruptDisabled) -> Result<Self> {
        if !Feature::ARCH_PERFMON.present() {
            pr_err!("the PMU is hidden (clearcpuid=arch_perfmon?); boot without that\n");
            return Err(ENODEV);
        }
        let named = capabilities.counters;
        // CAST: general-purpose counters are the low half, and fixed ones the 16 bits above it.
        let (gp, fixed) = (
            named.gp().bits() as u32,
            (named.fixed().bits() >> 32) as u32,
        );
        Ok(Self {
            counters: Counters::probe(gp, fixed, !capabilities.metrics.is_empty(), irqs),
            full_width: capabilities.full_width_write,
            missing: Atomic::new(0),
        })
    }

    pub(super) fn reserve(&self, initialised: bool) -> Result<Reservation, NotReserved> {
        let registers = self.counters.registers();
        if initialised {
            let reserved = Reservation::with_builtin(registers.clone(), self.full_width)?;
            if let Some(reserved) = reserved {
                return Ok(reserved);
            }
        }
        Reservation::new(registers)
    }

    pub(super) fn first_reserved(&self) -> Option<Msr> {
        first_reserved(self.counters.registers())
    }

    /// Returns the register's MSR; [`None`] for a counter that the CPU does not have.
    #[inline]
    fn msr(&self, register: Register) -> Option<Msr> {
        match register {
            Register::GlobalControl => Some(Msr::IA32_PERF_GLOBAL_CTRL),
            Register::FixedControl => Some(Msr::IA32_FIXED_CTR_CTRL),
            Register::Metrics => self.counters.metrics().map(perfmon::Metrics::register),
            Register::Extra(register) => Some(extra(register)),
            Register::EventSelect(counter) => match counter.kind() {
                CounterKind::Gp(n) => self.counters.gp(n.into()).map(Msr::perfevtsel),
                _ => None,
            },
            Register::Counter(counter) => match counter.kind() {
                CounterKind::Gp(n) if self.full_width => self.counters.gp(n.into()).map(Msr::a_pmc),
                CounterKind::Gp(n) => self.counters.gp(n.into()).map(Msr::pmc),
                CounterKind::Fixed(n) => self.counters.fixed(n.into()).map(Msr::fixed_ctr),
                CounterKind::Metric(_) | CounterKind::GuestBranches => None,
            },
        }
    }

    #[inline]
    pub(super) fn write(&self, write: RegisterWrite, irqs: &LocalInterruptDisabled) {
        if let Some(msr) = self.msr(write.register) {
            msr.write(write.value, irqs);
        }
    }

    #[inline]
    pub(super) fn read_counter(&self, counter: CounterId, irqs: &LocalInterruptDisabled) -> u64 {
        let value = match counter.kind() {
            CounterKind::Gp(n) => self.counters.gp(n.into()).map(|gp| gp.rdpmc(irqs)),
            CounterKind::Fixed(n) => self.counters.fixed(n.into()).map(|fixed| fixed.rdpmc(irqs)),
            CounterKind::Metric(_) | CounterKind::GuestBranches => None,
        };
        value.unwrap_or(0)
    }

    /// Returns whether the CPU has PERF_METRICS and the driver uses it.
    pub(super) fn has_metrics(&self) -> bool {
        self.counters.metrics().is_some()
    }

    /// Reads the slots and PERF_METRICS, in this order.
    pub(super) fn read_metrics(&self, irqs: &LocalInterruptDisabled) -> Metrics {
        let slots = self.read_counter(CounterId::SLOTS, irqs);
        let metrics = self.counters.metrics();
        let shares = metrics.map_or(0, |metrics| metrics.rdpmc(irqs));
        Metrics { slots, shares }
    }

    #[inline]
    pub(super) fn run(&self, counters: CounterMask, irqs: &LocalInterruptDisabled) {
        self.set_control(counters.bits(), irqs);
    }

    pub(super) fn control(&self, irqs: &LocalInterruptDisabled) -> u64 {
        Msr::IA32_PERF_GLOBAL_CTRL.read(irqs)
    }

    #[inline]
    pub(super) fn set_control(&self, value: u64, irqs: &LocalInterruptDisabled) {
        Msr::IA32_PERF_GLOBAL_CTRL.write(value, irqs);
    }

    #[inline]
    pub(super) fn status(&self, irqs: &LocalInterruptDisabled) -> Status {
        Status::from_bits(ReadOnlyMsr::IA32_PERF_GLOBAL_STATUS.read(irqs))
    }

    #[inline]
    pub(super) fn acknowledge(&self, status: Status, irqs: &LocalInterruptDisabled) {
        Msr::IA32_PERF_GLOBAL_OVF_CTRL.write(status.bits(), irqs);
    }

    pub(super) fn has(&self, register: ExtraRegister) -> bool {
        self.missing.load(Relaxed) & bit(register) == 0
    }

    /// Marks the extra register as missing if the machine does not have it.
    pub(super) fn try_extra_register(
        &self,
        register: ExtraRegister,
        irqs: &LocalInterruptDisabled,
    ) {
        if !extra_holds_a_value(extra(register), irqs).unwrap_or(false) {
            let missing = self.missing.load(Relaxed);
            self.missing.store(missing | bit(register), Relaxed);
        }
    }

    pub(super) fn find_broken_counter(
        &self,
        mut counters: impl Iterator<Item = CounterId>,
        irqs: &LocalInterruptDisabled,
    ) -> Result<Option<CounterId>> {
        let global_control = Msr::IA32_PERF_GLOBAL_CTRL;
        // Firmware may have left counters running: their values would change.
        let control_before = global_control.read_safe(irqs)?;
        global_control.write_safe(0, irqs)?;
        Msr::IA32_PERF_GLOBAL_OVF_CTRL.write_safe(0, irqs)?;
        let broken = counters.find(|counter| !self.holds_a_value(*counter, irqs).unwrap_or(false));
        global_control.write_safe(control_before, irqs)?;
        Ok(broken)
    }

    /// Returns whether the counter holds a written value. Fails if the counter or its event select
    /// does not exist.
    fn holds_a_value(&self, counter: CounterId, irqs: &LocalInterruptDisabled) -> Result<bool> {
        let msr = self.msr(Register::Counter(counter)).ok_or(ENODEV)?;
        if let Some(select) = self.msr(Register::EventSelect(counter)) {
            select.write_safe(select.read_safe(irqs)?, irqs)?;
        }
        let before = msr.read_safe(irqs)?;
        // Only the low 31 bits, so that sign extension has no influence.
        let value = (before ^ 0xffff) & 0x7fff_ffff;
        msr.write_safe(value, irqs)?;
        let after = msr.read_safe(irqs)?;
        msr.write_safe(before, irqs)?;
        Ok(after == value)
    }
}

/// Bits that every extra register has; `intel_pmu_init()` tries the same.
const SOME_BITS: u64 = 0x11;

/// Returns the MSR of an extra register.
const fn extra(register: ExtraRegister) -> Msr {
    match register {
        ExtraRegister::OffcoreResponse0 => Msr::MSR_OFFCORE_RSP_0,
        ExtraRegister::OffcoreResponse1 => Msr::MSR_OFFCORE_RSP_1,
        ExtraRegister::LoadLatency => Msr::MSR_PEBS_LD_LAT_THRESHOLD,
        ExtraRegister::Frontend => Msr::MSR_PEBS_FRONTEND,
        ExtraRegister::SnoopResponse0 => Msr::MSR_SNOOP_RSP_0,
        ExtraRegister::SnoopResponse1 => Msr::MSR_SNOOP_RSP_1,
        ExtraRegister::LbrSelect => Msr::MSR_LBR_SELECT,
    }
}

const fn bit(register: ExtraRegister) -> u32 {
    1 << register.index()
}

/// Returns whether the extra register holds a written value, and restores its value. Fails if the
/// register does not exist.
fn extra_holds_a_value(msr: Msr, irqs: &LocalInterruptDisabled) -> Result<bool> {
    let before = msr.read_safe(irqs)?;
    let value = before ^ SOME_BITS;
    msr.write_safe(value, irqs)?;
    let after = msr.read_safe(irqs)?;
    msr.write_safe(before, irqs)?;
    Ok(after == value)
}
