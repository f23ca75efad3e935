// SPDX-License-Identifier: GPL-2.0

//! Which event gets which counter and which extra register.

pub mod assign;
pub mod constraint;
pub mod cpu_schedule;
pub mod explanation;
pub mod extra_register;
pub mod limits;
pub mod register_plan;
