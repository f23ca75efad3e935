// SPDX-License-Identifier: GPL-2.0

//! The driver: asks [`logic`](crate::logic) what is to be done, and does it through
//! [`perf`](crate::perf) and [`x86`](crate::x86).
//!
//! ```text
//!  probe       what CPU is this? ──► hardware      its registers
//!  takeover    the built-in driver's PMU, away and back
//!  event_init  open()            ──► event         what we keep with an event
//!  schedule    add, del, enable  ──► cpu           what we keep of a CPU
//!                                ──► sharing       and of its core
//!                                ──► transactions  which want counter 3, too
//!                                ──► user_read     who may read counters with rdpmc
//!  suspend     the machine sleeps and wakes up: events of the last CPU; or it ends: registers as they were
//!  smi         counters that stop in system management mode
//!                                ──► turns         which groups go first
//!  pmi         a counter has overflowed (NMI)
//!  hotplug     a CPU comes or goes, or the driver does: registers as they were
//!  sysfs       the PMU's files
//!  debugfs     what the driver says of itself
//!  snapshot    who has which counter of a CPU
//!  unplaced    who found none, and why
//!  refusals    the last events that were refused, and why
//!  errors      reason ──► errno
//! ```
//!
//! # Who may touch what
//!
//! | State | Who | How |
//! |---|---|---|
//! | [`cpu::Own`]: schedule and register shadow | callbacks on the CPU, not the PMI | [`CpuCell`] |
//! | [`pmi::Shared`]: active counters and their events | callbacks and the PMI on the CPU | atomics |
//! | [`sharing::Sharing`]: what the core's threads use | callbacks on both CPUs, not the PMI | a lock |
//! | [`event::EventData`] | callbacks and the PMI on the event's CPU | atomics |
//! | [`hw::Hardware`] | all | constant |
//!
//! These atomics are core's, of which each access is one instruction: no two CPUs have to agree on
//! the order of what they do to them, so it matters only what the compiler makes of them. (Each of
//! [`kernel::sync::atomic`]'s is a call of a C function. They are for what CPUs share.)
//!
//! A PMI that interrupts a callback finds the first one borrowed and the others consistent at each
//! single store; [`logic::registers`](crate::logic::regs::shadow) has the rules that make it so.
//!
//! [`CpuCell`]: crate::kern::percpu::CpuCell

mod announce;
mod core_pmu;
mod cpu;
mod errors;
mod event;
mod event_init;
mod explain;
mod facilities;
mod hotplug;
mod hw;
mod machine;
mod pmi;
mod probe;
mod rotation;
mod schedule;
mod suspend;
mod sysfs;
mod takeover;
mod unit;

pub(crate) use {
    core_pmu::{CorePmu, Driver},
    explain::debugfs::Files,
    machine::Machine,
    probe::probe,
    takeover::{find_predecessor, take_over},
};
