// SPDX-License-Identifier: GPL-2.0

//! Kernel interfaces that any driver could use and that the kernel crate lacks: per-CPU data,
//! locks, calls to other CPUs, deferred and delayed work, CPU hotplug, suspend and resume, kernel
//! symbols, random numbers, files in debugfs, references to the module, references that can be
//! taken back.
//!
//! Nothing here refers to the registers of the PMU or to events. Each module could be proposed for
//! the kernel crate, except [`symbols`], [`layout`] and [`parameter`], which say why not.

pub mod btf;
pub mod call;
pub mod caller;
pub mod cpu;
pub mod debugfs;
pub mod deferred;
pub mod delayed;
pub mod hotplug;
pub mod init;
pub mod layout;
pub mod lent;
pub mod lock;
pub mod module;
pub mod nmi;
pub mod parameter;
pub mod percpu;
pub mod random;
pub mod regs;
pub mod symbols;
pub mod syscore;
pub mod ticks;
