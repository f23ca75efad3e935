// SPDX-License-Identifier: GPL-2.0

//! Sharing of the northbridge's counters with the other CPUs of the node, on AMD's processors up to family 14h.
//!
//! [`logic::smt::northbridge`](crate::logic::smt::northbridge) decides; this file takes the node's lock. Of all
//! CPUs, the one with the node's number lends its lock to the node.
//!
//! # Locks
//!
//! A node's lock is taken with interrupts off, by callbacks of the perf core and by CPUs that go offline. No
//! other lock is taken within it, and the PMI does not take it. On these processors, cores have no locks.

use crate::{
    driver::{
        cpu::{Cpu, Own},
        Driver,
    },
    kern::{
        cpu::possible_cpus,
        lock::{RawSpinLock, RawSpinLockGuard},
    },
    logic::{
        capabilities::Interface,
        pmu::Pmu,
        refusal::Refusal,
        regs::counter::CounterMask,
        sched::{cpu_schedule::CpuSchedule, limits::Limits},
        smt::northbridge::Northbridge,
    },
    perf::EventId,
    x86::topology::amd_node,
};
use kernel::{cpu::CpuId, interrupt::LocalInterruptDisabled, prelude::*};

/// The counters of the northbridge of the node with this CPU's number, if there is one.
pub(in crate::driver) type Node = RawSpinLock<Northbridge>;

/// Makes the counters of a node.
pub(in crate::driver) fn node() -> impl PinInit<Node> {
    RawSpinLock::new(Northbridge::new())
}

/// Returns whether CPUs have to agree on the northbridge's counters.
pub(in crate::driver) fn is_shared(pmu: &Pmu) -> bool {
    pmu.capabilities.interface == Interface::AmdLegacy && possible_cpus().count() > 1
}

impl Driver {
    fn node_of<'a>(
        &'a self,
        cpu: CpuId,
        irqs: &'a LocalInterruptDisabled,
    ) -> Option<RawSpinLockGuard<'a, Northbridge>> {
        let lender = CpuId::from_u32(amd_node(cpu)?)?;
        Some(self.cpus.get(lender)?.northbridge.lock(irqs))
    }

    /// Calls `change` to add to the plan of `cpu`, this CPU, without the counters that the northbridge uses for
    /// other CPUs. On these processors a core has one thread, and TSX does not exist.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn plan_in_node(
        &self,
        cpu: &Cpu,
        irqs: &LocalInterruptDisabled,
        own: &mut Own,
        change: impl FnOnce(&mut CpuSchedule<EventId>, &Limits) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let Own { schedule, smt, .. } = own;
        let mut node = self.node_of(cpu.id, irqs);
        let number = cpu.id.as_u32();
        let limits = Limits {
            closed_to_sharing: node
                .as_ref()
                .map_or(CounterMask::EMPTY, |node| node.closed_to(number)),
            ..Limits::NONE
        };
        change(schedule, &limits).inspect_err(|_| smt.set_refused_under(limits))?;
        if let Some(node) = &mut node {
            node.claim(number, schedule.northbridge());
        }
        Ok(())
    }

    /// Releases the northbridge's counters of `cpu`, this CPU, but those in `kept`.
    pub(in crate::driver) fn release_in_node(
        &self,
        cpu: &Cpu,
        kept: CounterMask,
        irqs: &LocalInterruptDisabled,
    ) {
        if !self.shares_northbridge {
            return;
        }
        if let Some(mut node) = self.node_of(cpu.id, irqs) {
            node.release(cpu.id.as_u32(), kept);
        }
    }
}
