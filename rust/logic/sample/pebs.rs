// SPDX-License-Identifier: GPL-2.0

//! Samples that the processor writes (PEBS): their records, and the addresses in them.
//!
//! A model's table of [precise events](crate::logic::model::pebs_events) has the events that it can
//! do so for.

pub mod fixup;
pub mod record;
