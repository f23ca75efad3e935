// SPDX-License-Identifier: GPL-2.0

//! The parts of a sample: bits of `attr.sample_type` (`PERF_SAMPLE_*`).

use crate::bindings;

pub(super) const READ: u64 = bindings::perf_event_sample_format_PERF_SAMPLE_READ as u64;
pub(super) const TIME: u64 = bindings::perf_event_sample_format_PERF_SAMPLE_TIME as u64;
pub(super) const ADDR: u64 = bindings::perf_event_sample_format_PERF_SAMPLE_ADDR as u64;
pub(super) const CALLCHAIN: u64 = bindings::perf_event_sample_format_PERF_SAMPLE_CALLCHAIN as u64;
pub(super) const PERIOD: u64 = bindings::perf_event_sample_format_PERF_SAMPLE_PERIOD as u64;
pub(super) const BRANCH_STACK: u64 =
    bindings::perf_event_sample_format_PERF_SAMPLE_BRANCH_STACK as u64;
pub(super) const REGS_USER: u64 = bindings::perf_event_sample_format_PERF_SAMPLE_REGS_USER as u64;
pub(super) const WEIGHT: u64 = bindings::perf_event_sample_format_PERF_SAMPLE_WEIGHT as u64;
pub(super) const DATA_SRC: u64 = bindings::perf_event_sample_format_PERF_SAMPLE_DATA_SRC as u64;
pub(super) const TRANSACTION: u64 =
    bindings::perf_event_sample_format_PERF_SAMPLE_TRANSACTION as u64;
pub(super) const REGS_INTR: u64 = bindings::perf_event_sample_format_PERF_SAMPLE_REGS_INTR as u64;
pub(super) const PHYS_ADDR: u64 = bindings::perf_event_sample_format_PERF_SAMPLE_PHYS_ADDR as u64;
pub(super) const DATA_PAGE_SIZE: u64 =
    bindings::perf_event_sample_format_PERF_SAMPLE_DATA_PAGE_SIZE as u64;
pub(super) const WEIGHT_STRUCT: u64 =
    bindings::perf_event_sample_format_PERF_SAMPLE_WEIGHT_STRUCT as u64;
