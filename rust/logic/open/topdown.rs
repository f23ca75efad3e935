// SPDX-License-Identifier: GPL-2.0

//! Topdown events: the rules of topdown metrics.
//!
//! The topdown method classifies the slots of the pipeline by their fate.
//!
//! From Ice Lake on, fixed counter 3 counts the slots, and each byte of PERF_METRICS is the share
//! of a class, a *metric*. A metric has event code 0, and counts only in a group that slots lead.

use super::attr::{
    Attributes,
    Leader, //
};
use crate::logic::{
    pmu::Pmu,
    refusal::Refusal,
    regs::event_select::EventSelect, //
};

/// The pseudo code of TOPDOWN.SLOTS.
pub const SLOTS: u64 = 0x0400;
/// The first and the last pseudo code of the events that are read from PERF_METRICS, 0x100 apart.
/// Mainline: `INTEL_TD_METRIC_RETIRING` and `INTEL_TD_METRIC_MAX`,
/// `arch/x86/include/asm/perf_event.h`.
const FIRST_METRIC: u64 = 0x8000;
const LAST_METRIC: u64 = 0x8700;
/// The bit of TOPDOWN.SLOTS' attr.config1 that has RDPMC clear PERF_METRICS, on processors that can
/// do it. No supported model can, so it has no effect.
const METRICS_CLEAR: u64 = 1;

/// Refuses filters and values for topdown events, and metrics without slots that lead them, on a
/// PMU with PERF_METRICS. Without, a metric counts all slots.
///
/// A metric that the model lacks is an event without a meaning on any counter, as in mainline.
///
/// # Errors
///
/// In mainline's order: `intel_pmu_hw_config()`, `arch/x86/events/intel/core.c`. Mainline takes a
/// metric with one of the bits that it ignores, like attr.config's bit for user mode, for another
/// event.
pub(super) fn check(pmu: &Pmu, attr: &Attributes) -> Result<(), Refusal> {
    const FILTERS: u64 = EventSelect::EDGE
        | EventSelect::INV
        | EventSelect::CMASK
        | EventSelect::ANY
        | EventSelect::PIN_CONTROL
        | EventSelect::IN_TX
        | EventSelect::IN_TX_CHECKPOINTED;

    let code = attr.config & EventSelect::CODE;
    // Metrics have event code 0; other events may have the same unit mask. Mainline:
    // `is_metric_event()`, `arch/x86/events/perf_event.h`.
    let is_metric = code & EventSelect::EVENT == 0 && (FIRST_METRIC..=LAST_METRIC).contains(&code);
    let values = match code {
        SLOTS => attr.config1 & !METRICS_CLEAR | attr.config2,
        _ if is_metric => attr.config1 | attr.config2,
        _ => return Ok(()),
    };
    if !pmu.capabilities.perf_metrics {
        return Ok(());
    }
    if values != 0 || attr.config & FILTERS != 0 {
        return Err(Refusal::TopdownFilter);
    }
    let number = code.wrapping_sub(FIRST_METRIC) >> 8;
    if !is_metric || number >= pmu.model.metrics().weight().into() {
        return Ok(());
    }
    if attr.sample_period != 0 {
        return Err(Refusal::MetricSampling);
    }
    match attr.leader {
        Leader::Slots => Ok(()),
        Leader::SampledSlots => Err(Refusal::MetricOfSampledSlots),
        Leader::Other => Err(Refusal::MetricWithoutSlots),
    }
}

#[cfg(test)]
mod tests;
