// SPDX-License-Identifier: GPL-2.0

//! Checks of new events: from a `perf_event_attr` to a configured event or a refusal.
//!
//! ```text
//!  attr           the requested event
//!    extensions   the fields that only this driver has
//!    topdown      the rules of topdown metrics
//!    precise      attr.precise_ip
//!    intel, amd   the checks of each vendor's PMUs ──► event
//! ```

mod amd;
pub mod attr;
pub mod event;
mod extensions;
mod intel;
pub mod precise;
#[cfg(test)]
mod tests;
pub mod topdown;

use super::{
    pmu::PmuInfo,
    refusal::Refusal,
    regs::extra_register::ExtraRegister, //
};
use attr::{
    Attributes,
    EventType, //
};
use event::Event;
use extensions::Extensions;

/// Translates `attr` to an event of `pmu`.
///
/// `has_register` returns whether this machine has an extra register. `allow_any_thread` is
/// `perf_allow_cpu()`; it is called at most once, and only if a raw event requests any-thread
/// counting and no other check has failed before.
///
/// # Errors
///
/// The first check that fails. Checks of this driver's own fields come first, then mainline's
/// checks in mainline's order.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::open::{attr::{Attributes, EventType}, configure};
/// use logic::refusal::Refusal;
/// # use logic::capabilities::Cpuid;
/// # use logic::pmu::PmuInfo;
/// # let cpuid = Cpuid::intel(4, 4, 3).with_signature(0x506e3);
/// # let pmu = PmuInfo::probe(&cpuid, None).unwrap();
/// let mut instructions = Attributes::counting(EventType::Hardware, 1);
/// instructions.exclude_kernel = true;
/// let event = configure(&pmu, &instructions, |_| true, || false).unwrap();
/// assert_eq!(event.select.bits(), 0x11_00c0);
///
/// let stalls = Attributes::counting(EventType::Hardware, 7);
/// let refused = configure(&pmu, &stalls, |_| true, || false);
/// assert_eq!(refused, Err(Refusal::HardwareEventAbsent));
/// ```
///
/// Context: process, in `perf_event_open()`. Inherited events are not checked again.
pub fn configure(
    pmu: &PmuInfo,
    attr: &Attributes,
    has_register: impl Fn(ExtraRegister) -> bool,
    allow_any_thread: impl FnOnce() -> bool,
) -> Result<Event, Refusal> {
    if attr.event_type == EventType::Other {
        return Err(Refusal::OtherType);
    }
    let extensions = Extensions::of(attr)?;
    if pmu.capabilities.interface.is_amd() {
        amd::configure(pmu, attr, extensions)
    } else {
        intel::configure(pmu, attr, extensions, has_register, allow_any_thread)
    }
}
