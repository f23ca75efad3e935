// SPDX-License-Identifier: GPL-2.0

//! The rules for topdown events.
//!
//! The topdown method classifies the pipeline's slots by how they were used.
//!
//! From Ice Lake on, fixed counter 3 counts the slots, and each byte of PERF_METRICS is the share
//! of a class, a *metric*. A metric has event code 0, and counts only in a group whose leader
//! counts slots.

use super::attr::{
    Attributes,
    Leader, //
};
use crate::logic::{
    pmu::PmuInfo,
    refusal::Refusal,
    regs::event_select::EventSelect, //
};

/// The pseudo code of TOPDOWN.SLOTS.
pub const SLOTS: u64 = 0x0400;
/// The first and the last pseudo code of metrics, which are 0x100 apart. Mainline:
/// `INTEL_TD_METRIC_RETIRING` and `INTEL_TD_METRIC_MAX`, `arch/x86/include/asm/perf_event.h`.
const FIRST_METRIC: u64 = 0x8000;
const LAST_METRIC: u64 = 0x8700;
/// The bit in attr.config1 of TOPDOWN.SLOTS by which RDPMC clears PERF_METRICS, on processors that
/// can do this. No supported model can, so the bit has no effect.
const METRICS_CLEAR: u64 = 1;

/// Refuses filters and values for topdown events, sampling metrics, and metrics in groups whose
/// leader does not count slots, on a PMU with PERF_METRICS. Without PERF_METRICS, a metric counts
/// all slots.
///
/// A metric that the model lacks is a meaningless event that may use any counter, as in mainline.
///
/// # Errors
///
/// In mainline's order: `intel_pmu_hw_config()`, `arch/x86/events/intel/core.c`. Unlike mainline,
/// this also recognises a metric whose attr.config has bits without effect, such as the one for
/// user mode.
pub(super) fn check(pmu: &PmuInfo, attr: &Attributes) -> Result<(), Refusal> {
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
