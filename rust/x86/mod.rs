// SPDX-License-Identifier: GPL-2.0

//! The x86 hardware, and the parts of the x86 kernel code that belong to it, as safe functions.
//!
//! All code that is specific to the processor is here: MSRs, `CPUID`, the local APIC's performance
//! counter entry, NMIs, the topology. None of it refers to events or schedules. It must not import
//! [`crate::perf`], the driver or a model.
//!
//! # Contexts
//!
//! An MSR belongs to the CPU that executes the instruction. Functions that access one take a
//! [`LocalInterruptDisabled`], so that the caller cannot be moved to another CPU meanwhile. Such a
//! token has five sources:
//!
//! - the callbacks of the perf core that run with interrupts off,
//! - [`hotplug::Callbacks`] and [`syscore::Callbacks`],
//! - the functions of [`call`] and [`cpu::on_each_cpu`], which pass it to a closure,
//! - [`nmi::NmiContext::irqs`] in the handler of an NMI,
//! - [`local_interrupt_disable()`] anywhere else, but not in an NMI.
//!
//! The token's documentation limits its guarantee to preemptible kernels. The implementation
//! (`include/linux/interrupt_rc.h`) turns interrupts off on all kernels.
//!
//! [`call`]: crate::kern::call
//! [`cpu::on_each_cpu`]: crate::kern::cpu::on_each_cpu
//! [`hotplug::Callbacks`]: crate::kern::hotplug::Callbacks
//! [`syscore::Callbacks`]: crate::kern::syscore::Callbacks
//! [`LocalInterruptDisabled`]: kernel::interrupt::LocalInterruptDisabled
//! [`local_interrupt_disable()`]: kernel::interrupt::local_interrupt_disable

pub mod amd;
pub mod apic;
pub mod branches;
pub mod builtin;
pub mod code;
pub mod cpuid;
mod debugctl;
pub mod guest;
pub mod intel;
pub mod msr;
pub mod nmi;
pub mod perf_regs;
pub mod reserve;
pub mod topology;
pub mod tsc;
