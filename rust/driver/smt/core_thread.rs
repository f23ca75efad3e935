// SPDX-License-Identifier: GPL-2.0

//! The core of a CPU, and its thread in that core.

use crate::{
    kern::{
        cpu::{
            online_cpus,
            possible_cpus, //
        },
        init::copied,
        lock::RawSpinLock, //
    },
    logic::{
        model::{
            Model,
            Scope, //
        },
        pmu::PmuInfo,
        smt::siblings::{
            Core,
            Thread, //
        },
    },
    x86::topology::threads_per_core, //
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::Relaxed, //
};
use kernel::{
    cpu::CpuId,
    prelude::*, //
};

/// A CPU's part of the state by which the threads of a core share resources.
#[pin_data]
pub(in crate::driver) struct Sharing {
    /// The state of the core for both threads, if this CPU has gone online before its sibling and
    /// so is the *founder*. Otherwise unused.
    #[pin]
    pub(super) core: RawSpinLock<Core>,
    /// The CPU's core and thread: [`CoreThread::encode`], or [`NO_CORE`]. Only the CPU itself
    /// writes it.
    pub(super) core_thread: AtomicU64,
}

/// The code for a CPU that is in no core.
pub(super) const NO_CORE: u64 = u64::MAX;

/// A core, and a CPU's thread in that core.
#[derive(Clone, Copy)]
pub(in crate::driver) struct CoreThread {
    /// The CPU that has founded the core.
    pub(super) founder: CpuId,
    pub(super) thread: Thread,
}

impl CoreThread {
    pub(super) fn encode(self) -> u64 {
        let thread = match self.thread {
            Thread::First => 0,
            Thread::Second => 1,
        };
        (u64::from(self.founder.as_u32()) << 1) | thread
    }

    fn decode(code: u64) -> Option<Self> {
        // A founder's number fits in 32 bits; `NO_CORE` does not, and gives `None`.
        let founder = CpuId::from_u32(u32::try_from(code >> 1).ok()?)?;
        let thread = match code & 1 {
            0 => Thread::First,
            _ => Thread::Second,
        };
        Some(Self { founder, thread })
    }
}

impl Sharing {
    /// Creates the state of a CPU that is in no core yet.
    pub(in crate::driver) fn new(pmu: &PmuInfo) -> impl PinInit<Self, Error> + use<> {
        let gp = pmu.capabilities.gp();
        let shares_registers = pmu.model.offcore_scope == Scope::Core;
        let core = copied(const { &Core::NOTHING }).chain(move |core| {
            core.set_up(gp, shares_registers);
            Ok(())
        });
        try_pin_init!(Self {
            core <- RawSpinLock::new(core),
            core_thread: AtomicU64::new(NO_CORE),
        }? Error)
    }

    pub(super) fn core_thread(&self) -> Option<CoreThread> {
        CoreThread::decode(self.core_thread.load(Relaxed))
    }
}

/// Returns whether the threads of a core have to coordinate on this machine.
///
/// They need not if each core has one thread and no further CPU can go online.
pub(in crate::driver) fn threads_coordinate(model: &Model, ht_workaround: bool) -> bool {
    let counters = model.ht_erratum.is_some() && ht_workaround;
    let registers = model.offcore_scope == Scope::Core;
    (counters || registers)
        && (threads_per_core() > 1 || online_cpus().count() < possible_cpus().count())
}
