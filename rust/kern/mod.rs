// SPDX-License-Identifier: GPL-2.0

//! What any driver could use and the kernel crate does not have: per-CPU data, locks, calls to other
//! CPUs, CPU hotplug, suspend and resume, symbols.
//!
//! Nothing in here knows of a processor's registers or of events. Each module is written as if it
//! were to go into the kernel crate, but for [`symbols`] and [`parameter`], which say why not.

pub mod call;
pub mod caller;
pub mod cpu;
pub mod hotplug;
pub mod lock;
pub mod parameter;
pub mod percpu;
pub mod symbols;
pub mod syscore;
pub mod ticks;
