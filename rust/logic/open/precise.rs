// SPDX-License-Identifier: GPL-2.0

//! Precise events: attr.precise_ip, and its consequences for the event select, the branch stack and
//! the records.
//!
//! Context: as for [`configure`](super::configure).

use super::attr::{
    sample_type as st,
    Attributes, //
};
use crate::logic::{
    capabilities::PebsFormat,
    model::pebs_events::PebsData,
    pmu::PmuInfo,
    refusal::Refusal,
    regs::event_select::EventSelect,
    sample::{
        lbr::filter::sample_type as branches,
        pebs::record::Groups, //
    },
};

/// The general registers, RFLAGS and RIP of `attr.sample_regs_intr` (`PEBS_GP_REGS`,
/// `arch/x86/events/perf_event.h`).
const GENERAL_REGISTERS: u64 = 0xff_03ff;

/// RTM_RETIRED.ABORTED. The weight of its samples depends on a register.
const TRANSACTION_ABORTED: u64 = 0x04c9;

/// The parts of a sample, besides the instruction's address and the time, that need data of the
/// record or of the interrupted code.
const PARTS: u64 = st::MEMORY | st::REGS_INTR | st::REGS_USER | st::BRANCH_STACK | st::CALLCHAIN;

/// The way in which an event's precise samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precise {
    /// attr.precise_ip: 1 to 3. From 2 on, a sample has the address of the instruction itself.
    pub level: u8,
    /// Set if the processor reloads the counter when it writes a record, so that all periods have
    /// the same length.
    pub reloads: bool,
    /// Set if records can wait until the buffer is almost full, or another task is switched in
    /// ("large PEBS").
    pub records_can_wait: bool,
    /// The groups that adaptive records need.
    pub groups: Groups,
    /// The format of a record's data source field.
    pub data: PebsData,
    /// Set if samples only need the record's address of the instruction itself, and the time.
    pub needs_address_only: bool,
}

/// Checks whether the event can have the precision in `attr`. Mainline: `x86_pmu_hw_config()`,
/// `arch/x86/events/core.c`.
pub(super) fn check(pmu: &PmuInfo, attr: &Attributes) -> Result<(), Refusal> {
    if attr.precise_ip == 0 {
        return Ok(());
    }
    if attr.precise_ip > pmu.max_precise() {
        return Err(Refusal::Precise);
    }
    if !attr.is_sampling() {
        return Err(Refusal::PreciseCounting);
    }
    let requested = attr.sample_type & st::BRANCH_STACK != 0;
    if needs_branches(pmu, attr) && requested && !are_all(attr.branch_sample_type, attr) {
        return Err(Refusal::PreciseBranches);
    }
    Ok(())
}

/// Returns whether the last branch is needed to find a sample's address, because the record only
/// has the address of the next instruction.
pub(super) fn needs_branches(pmu: &PmuInfo, attr: &Attributes) -> bool {
    let has_ip = |format: PebsFormat| format.has_ip();
    attr.precise_ip > 1 && !pmu.capabilities.pebs_format.is_some_and(has_ip)
}

/// Returns the branches that are recorded for an event: for its branch stack, or to find addresses.
pub(super) fn branch_sample_type(pmu: &PmuInfo, attr: &Attributes) -> u64 {
    if attr.sample_type & st::BRANCH_STACK != 0 || !needs_branches(pmu, attr) {
        return attr.branch_sample_type;
    }
    branches::ANY | privilege_levels(attr)
}

/// Returns the privilege levels of the event, as bits of `attr.branch_sample_type`.
fn privilege_levels(attr: &Attributes) -> u64 {
    let user = if attr.exclude_user { 0 } else { branches::USER };
    let kernel = if attr.exclude_kernel {
        0
    } else {
        branches::KERNEL
    };
    user | kernel
}

/// Returns whether `branch_sample_type` selects all branches at the privilege levels of the event.
/// Mainline: `precise_br_compat()`, `arch/x86/events/core.c`.
fn are_all(branch_sample_type: u64, attr: &Attributes) -> bool {
    let recorded = branch_sample_type & (branches::USER | branches::KERNEL);
    branch_sample_type & branches::ANY != 0 && recorded == privilege_levels(attr)
}

/// Makes the event `select` precise. Returns the event select and the way in which samples are
/// taken; [`None`] if the event need not be precise. Mainline: `intel_pmu_hw_config()`,
/// `arch/x86/events/intel/core.c`.
pub(super) fn apply(
    pmu: &PmuInfo,
    attr: &Attributes,
    select: EventSelect,
) -> (EventSelect, Option<Precise>) {
    let Some(format) = pmu.capabilities.pebs_format.filter(|_| attr.precise_ip > 0) else {
        return (select, None);
    };
    let level = attr.precise_ip;
    let select = pmu.model.cycles_alias.apply(select, level);
    // The PEBS buffer raises the PMI, not the counter.
    let select = select.with(EventSelect::INT, false);
    let line = pmu.model.pebs_events.find(select);
    let wakes_by_samples = attr.wakeup_events != 0 && !attr.watermark;
    let reloads = !attr.freq && !wakes_by_samples;
    let precise = Precise {
        level,
        reloads,
        records_can_wait: reloads && records_can_wait(pmu, attr, format),
        groups: groups(pmu, attr),
        data: line.map_or(PebsData::None, |line| line.data()),
        needs_address_only: level >= 2 && format.has_ip() && attr.sample_type & PARTS == 0,
    };
    (
        select.with(EventSelect::ADAPTIVE, format == PebsFormat::Adaptive),
        Some(precise),
    )
}

/// Returns whether records can be read later: they contain all data for the samples of `attr`, and
/// no sample pauses or resumes an AUX trace or ends the turn. Mainline:
/// `intel_pmu_large_pebs_flags()`, `arch/x86/events/intel/core.c`. If the last branch is needed to
/// find addresses, mainline lets records wait, too, and uses the last branch at the PMI for all of
/// them.
fn records_can_wait(pmu: &PmuInfo, attr: &Attributes, format: PebsFormat) -> bool {
    if attr.has_aux_action || attr.ends_turns() || needs_branches(pmu, attr) {
        return false;
    }
    let mut kept = st::IP
        | st::TID
        | st::ADDR
        | st::ID
        | st::CPU
        | st::STREAM_ID
        | st::DATA_SRC
        | st::IDENTIFIER
        | st::TRANSACTION
        | st::PHYS_ADDR
        | st::PERIOD
        | st::CODE_PAGE_SIZE
        | st::WEIGHT;
    if format.has_time() && !attr.use_clockid {
        kept |= st::TIME;
    }
    if format == PebsFormat::Adaptive {
        kept |= st::BRANCH_STACK;
    }
    if attr.exclude_kernel && attr.sample_regs_user & !GENERAL_REGISTERS == 0 {
        kept |= st::REGS_USER;
    }
    if attr.sample_regs_intr & !GENERAL_REGISTERS == 0 {
        kept |= st::REGS_INTR;
    }
    attr.sample_type & !kept == 0
}

/// Returns the groups that adaptive records need for the samples of `attr`. Mainline:
/// `pebs_update_adaptive_cfg()`, `arch/x86/events/intel/ds.c`.
fn groups(pmu: &PmuInfo, attr: &Attributes) -> Groups {
    let has = |bits: u64| attr.sample_type & bits != 0;
    let samples_general =
        |sampled: u64, registers: u64| has(sampled) && registers & GENERAL_REGISTERS != 0;

    let mut groups = 0;
    if has(st::MEMORY) {
        groups |= Groups::MEMORY;
    }
    // The next instruction's address is in a register, and so is the code of an abort.
    let aborts =
        has(st::WEIGHT | st::TRANSACTION) && attr.config & EventSelect::CODE == TRANSACTION_ABORTED;
    if samples_general(st::REGS_INTR, attr.sample_regs_intr)
        || samples_general(st::REGS_USER, attr.sample_regs_user)
        || attr.precise_ip < 2
        || aborts
    {
        groups |= Groups::REGISTERS;
    }
    if has(st::REGS_INTR) && attr.sample_regs_intr & super::attr::EXTENDED_REGISTERS != 0 {
        groups |= Groups::XMM;
    }
    let groups = Groups::new(groups);
    match &pmu.lbr {
        Some(lbr) if has(st::BRANCH_STACK) => groups.with_branches(lbr.depth),
        _ => groups,
    }
}

#[cfg(test)]
mod tests;
