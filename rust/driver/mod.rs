// SPDX-License-Identifier: GPL-2.0

//! The driver: applies the decisions of [`logic`](crate::logic) through [`perf`](crate::perf) and
//! [`x86`](crate::x86).
//!
//! ```text
//!  Called by the kernel                 State
//!  machine     NMI, hotplug, suspend  ──► machine/common   the machine: the state that its PMUs share
//!              for all PMUs             machine/cpus     the machine: the PMU of each CPU
//!                                       core_pmu         a PMU: the state that its CPUs share
//!  event_init  perf_event_open()        cpu              a CPU: its schedule and register shadow
//!  schedule    add, del, start, …       pmi/state        a CPU: the counters that a PMI handles
//!  program     the counters of a plan   pmi/hypervisors  a CPU: values for hypervisors
//!  counting    values and counts        rotation/known   a CPU: the demand of its contexts
//!  rotation    the end of an interval   counter_use      a counter: its event, its last value
//!  pmi         an overflow (NMI)        event            an event: its demand and periods
//!  hotplug     a CPU comes or goes      hw               the registers
//!  suspend     suspend, resume
//!  sysfs       the PMU's files          Features of a PMU: unit, by its hooks
//!                                       unit/lbr         branch stacks
//!                                       unit/pebs        precise events
//!                                       unit/tfa         counter 3, which TSX uses too
//!                                       unit/northbridge a node: the counters that its cores share
//!
//!                                       Features of the machine
//!                                       machine/rdpmc    counters that user space reads
//!                                       machine/smi      counters that stop in firmware
//!                                       machine/tracing  Intel PT and BTS, which share the PMI
//!
//!                                       Steps of a callback
//!                                       riders           equal events on one counter
//!                                       smt              planning beside the core's other thread
//!                                       ways             events that need more than a counter
//!                                       ways/metrics     slots and topdown metrics
//!  Reports
//!  explain     refusals, failures, schedules and users in debugfs
//!  errors      a refusal's errno
//!
//!  Once, at load
//!  probe       CPUID and the counters ──► hw
//!  layouts     the kernel's structures
//!  takeover    the built-in driver's PMUs, all or none
//!  facilities  optional functions of the kernel and the machine
//!  dry_run     the checks alone, with their results in the log
//!  announce    the messages in the log
//!  trial       the end of a load for a limited time
//!
//!  If the PMU does not work
//!  breaker     the end of counting, until the driver is loaded again
//!```
//!
//! A new feature is a file in `unit/` and a line in the list in `unit/mod.rs`, whose documentation
//! says what a feature may use. An event that needs more than a counter has its own
//! [`Way`](counter_use::Way), and `ways` calls the feature that counts it.
//!
//! # Access to the state
//!
//! | State | Accessed by | Guarded by |
//! |---|---|---|
//! | [`cpu::CallbackState`]: schedule and register shadow | callbacks on the CPU, not the PMI | [`CpuCell`] |
//! | [`pmi::PmiState`]: active counters and their events | callbacks and the PMI on the CPU | atomics, by the protocols of [`logic::pmi`](crate::logic::pmi) |
//! | [`Sharing`]: the counters of a core's threads | callbacks on the core's CPUs, not the PMI | a lock |
//! | [`unit::UnitsOwn`]: features | callbacks on the CPU, not the PMI | as part of [`cpu::CallbackState`] |
//! | [`unit::UnitsPmiState`]: features | callbacks and the PMI on the CPU | each unit documents it |
//! | [`counter_use::Uses`]: the use of each counter | callbacks and the PMI on the CPU | atomics |
//! | [`event::EventData`] | callbacks and the PMI on its CPU; system calls on any CPU | atomics |
//! | [`machine::common`], [`Hardware`] | all | constant, except settings |
//! | [`machine::cpus`]: the PMU of each CPU | all | atomics; a CPU's changes when it comes up |
//!
//! The atomics are `core`'s, each access to which is one instruction. Except for settings,
//! [`machine::cpus`] and a few members of [`event::EventData`], only one CPU accesses them, so only
//! the compiler could reorder accesses. ([`kernel::sync::atomic`] calls a C function for each
//! access. It is for data that CPUs share.)
//!
//! A PMI that interrupts a callback finds [`cpu::CallbackState`] borrowed, and the rest consistent
//! after each single store, by the rules in [`logic::regs::shadow`](crate::logic::regs::shadow).
//!
//! [`CpuCell`]: crate::kern::percpu::CpuCell
//! [`Sharing`]: smt::core_thread::Sharing
//! [`Hardware`]: hw::Hardware

mod announce;
mod breaker;
mod core_pmu;
mod counter_use;
mod counting;
mod cpu;
mod dry_run;
mod errors;
mod event;
mod event_init;
mod explain;
mod facilities;
mod hotplug;
mod hw;
mod layouts;
mod machine;
mod pmi;
mod probe;
mod program;
mod riders;
mod rotation;
mod schedule;
mod smt;
mod suspend;
mod sysfs;
mod takeover;
mod trial;
mod unit;
mod ways;

pub(crate) use {
    breaker::Armed,
    core_pmu::{
        CorePmu,
        Driver, //
    },
    dry_run::dry_run,
    explain::debugfs::Files,
    layouts::check_layouts,
    machine::{
        Machine,
        Offered, //
    },
    probe::probe,
    takeover::{
        refuse_mediated_guests,
        Predecessors, //
    },
    trial::Trial, //
};
