// SPDX-License-Identifier: GPL-2.0

//! Samples that the processor writes (PEBS): decoding records, and correcting the addresses in
//! them.
//!
//! A model's table of [precise events](crate::logic::model::pebs_events) lists the events that the
//! processor can sample.

pub mod fixup;
pub mod record;
