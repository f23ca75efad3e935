// SPDX-License-Identifier: GPL-2.0

//! The names of the PMU's registers. The hardware interface knows their addresses.

use super::{
    counter::CounterId,
    extra_register::ExtraRegister, //
};

/// A register of the PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// The event select of a general-purpose counter (IA32_PERFEVTSELn, AMD's PERF_CTLn).
    EventSelect(CounterId),
    /// The counter itself.
    Counter(CounterId),
    /// IA32_FIXED_CTR_CTRL.
    FixedControl,
    /// MSR_PERF_METRICS: the shares of the slots in fixed counter 3, which has to be written first.
    Metrics,
    /// IA32_PERF_GLOBAL_CTRL. On AMD's PMUs before PerfMonV2, the enable bits of all event selects.
    GlobalControl,
    /// A register that an event needs besides a counter.
    Extra(ExtraRegister),
}

/// A register write that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterWrite {
    /// The register.
    pub register: Register,
    /// The value.
    pub value: u64,
}

/// Writes `value` to `register` unless the register is known to have this value.
pub(super) fn set(
    held: &mut Option<u64>,
    register: Register,
    value: u64,
    write: &mut impl FnMut(RegisterWrite),
) {
    if *held != Some(value) {
        write(RegisterWrite { register, value });
        *held = Some(value);
    }
}
