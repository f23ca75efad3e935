// SPDX-License-Identifier: GPL-2.0

//! The checks of attributes for AMD's PMUs.
//!
//! There are fewer checks than for Intel's: no extra registers, no topdown events, no counting for
//! all threads of a core, no limit on periods. The driver first offers precise events without
//! extensions to IBS, if the machine has it; these checks refuse all precise events. Branch stacks
//! need LbrExtV2: the driver does not use BRS. Mainline: `amd_pmu_hw_config()` and
//! `amd_core_hw_config()`, `arch/x86/events/amd/core.c`; `x86_pmu_hw_config()`,
//! `arch/x86/events/core.c`.
//!
//! Context: as for [`configure`](super::configure).

use super::{
    attr::{
        sample_type,
        Attributes,
        EventType,
        EXTENDED_REGISTERS, //
    },
    event::{
        period,
        Event, //
    },
    extensions::Extensions, //
};
use crate::logic::{
    model::HardwareId,
    pmu::PmuInfo,
    refusal::Refusal,
    regs::{
        event_select::EventSelect,
        global::CountsIn, //
    },
};

/// Translates `attr`, whose type must not be another PMU's, to an event of `pmu` with these
/// `extensions`.
///
/// # Errors
///
/// The first check that fails, in mainline's order.
pub(super) fn configure(
    pmu: &PmuInfo,
    attr: &Attributes,
    extensions: Extensions,
) -> Result<Event, Refusal> {
    let has_branch_stack = attr.sample_type & sample_type::BRANCH_STACK != 0;
    if has_branch_stack && pmu.lbr.is_none() {
        return Err(Refusal::BranchStack);
    }
    if attr.precise_ip > 0 {
        return Err(Refusal::Precise);
    }
    if (attr.sample_regs_user | attr.sample_regs_intr) & EXTENDED_REGISTERS != 0 {
        return Err(Refusal::ExtendedRegisters);
    }

    let event = match attr.event_type {
        EventType::Hardware => {
            let id = HardwareId::from_config(attr.config).ok_or(Refusal::NoSuchHardwareId)?;
            pmu.hardware_event(id).ok_or(Refusal::HardwareEventAbsent)?
        }
        EventType::HwCache => pmu.cache_event(attr.config)?.0,
        EventType::Raw => EventSelect::from_bits(attr.config & EventSelect::AMD_RAW),
        EventType::Other => return Err(Refusal::OtherType),
    };
    let select = event
        .with(EventSelect::INT, true)
        .counting_user(!attr.exclude_user)
        .counting_kernel(!attr.exclude_kernel);
    // With both bits, the hardware would count in both places.
    let select = match (attr.exclude_host, attr.exclude_guest) {
        (true, true) => select.counting_user(false).counting_kernel(false),
        (true, false) => select.with(EventSelect::GUEST_ONLY, true),
        (false, true) => select.with(EventSelect::HOST_ONLY, true),
        (false, false) => select,
    };
    let branches = match &pmu.lbr {
        Some(lbr) if has_branch_stack => Some(lbr.request(attr.branch_sample_type)?),
        _ => None,
    };
    Ok(Event {
        select,
        requirement: None,
        branches,
        precise: None,
        period: period(attr, pmu.period_limits(), select),
        random: extensions.random,
        switches: extensions.switches,
        // The event select contains the restriction, and all counters are enabled together.
        counts_in: CountsIn::EVERYWHERE,
    })
}

#[cfg(test)]
mod tests;
