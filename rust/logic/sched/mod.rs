// SPDX-License-Identifier: GPL-2.0

//! Scheduling: the counter and the extra register of each event.

pub mod assign;
pub mod cpu_schedule;
pub mod explanation;
pub mod group;
pub mod limits;
pub mod register_plan;
pub mod riders;
pub mod room;
pub mod usage;
