// SPDX-License-Identifier: GPL-2.0

//! Sharing of the northbridge's counters with the other CPUs of the node, on AMD's processors up to
//! family 14h.
//!
//! [`logic::smt::northbridge`](crate::logic::smt::northbridge) decides; this file takes the node's
//! lock. A node uses the lock of the CPU with the node's number.
//!
//! # Locks
//!
//! A node's lock is taken with interrupts off, by callbacks of the perf core and by CPUs that go
//! offline. No other lock is taken within it, and the PMI does not take it. On these processors,
//! cores have no locks.

use super::hooks::{
    PlanAndShadow,
    Platform,
    Site,
    Unit, //
};
use crate::{
    driver::hw::Hardware,
    kern::{
        cpu::possible_cpus,
        lock::{
            RawSpinLock,
            RawSpinLockGuard, //
        },
        percpu::PerCpu, //
    },
    logic::{
        capabilities::Interface,
        refusal::Refusal,
        regs::counter::CounterMask,
        sched::{
            cpu_schedule::CpuSchedule,
            limits::Limits, //
        },
        smt::{
            northbridge::Northbridge,
            protocol::ThreadState, //
        },
    },
    perf::EventId,
    x86::{
        builtin::Builtin,
        topology::amd_node, //
    },
};
use kernel::{
    cpu::CpuId,
    prelude::*, //
};

/// The northbridges of the machine, if CPUs have to agree on the northbridge's counters.
pub(in crate::driver) struct Northbridges {
    /// By CPU number: the northbridge of the node with the same number, if there is one.
    nodes: PerCpu<RawSpinLock<Northbridge>>,
}

impl Northbridges {
    fn node_of<'a>(&'a self, site: Site<'a>) -> Option<RawSpinLockGuard<'a, Northbridge>> {
        let lender = CpuId::from_u32(amd_node(site.id)?)?;
        Some(self.nodes.get(lender)?.lock(site.irqs))
    }

    /// Calls `change` to add to the plan of this CPU, without the counters that the northbridge
    /// uses for other CPUs. On these processors a core has one thread, and TSX does not exist.
    /// Records the limits of a refusal in `thread`.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn plan(
        &self,
        site: Site<'_>,
        schedule: &mut CpuSchedule<EventId>,
        thread: &mut ThreadState,
        change: impl FnOnce(&mut CpuSchedule<EventId>, &Limits) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut node = self.node_of(site);
        let number = site.id.as_u32();
        let limits = Limits {
            closed_to_sharing: node
                .as_ref()
                .map_or(CounterMask::EMPTY, |node| node.closed_to(number)),
            ..Limits::NONE
        };
        change(schedule, &limits).inspect_err(|_| thread.set_refused_under(limits))?;
        if let Some(node) = &mut node {
            node.claim(number, schedule.northbridge());
        }
        Ok(())
    }

    /// Releases the northbridge's counters that this CPU uses, except those in `kept`.
    #[cold]
    fn release_all_but(&self, kept: CounterMask, site: Site<'_>) {
        if let Some(mut node) = self.node_of(site) {
            node.release(site.id.as_u32(), kept);
        }
    }
}

impl Unit for Northbridges {
    type Own = ();
    type PmiState = ();
    type TaskData = ();

    fn find(platform: &mut Platform<'_>) -> Result<Option<Self>> {
        let interface = platform.hardware.pmu.capabilities.interface;
        if interface != Interface::AmdLegacy || possible_cpus().count() <= 1 {
            return Ok(None);
        }
        let nodes = PerCpu::new(|_| RawSpinLock::new(Northbridge::new()))?;
        Ok(Some(Self { nodes }))
    }

    fn pmi_state(_cpu: CpuId, _hardware: &Hardware, _builtin: Option<&Builtin>) -> Result {
        Ok(())
    }

    fn restore(&self, _own: &mut (), _pmi_state: &(), site: Site<'_>) {
        self.release_all_but(CounterMask::EMPTY, site);
    }

    #[inline(always)]
    fn release(&self, _own: &mut (), site: Site<'_>, counters: PlanAndShadow<'_>) {
        self.release_all_but(counters.schedule.northbridge(), site);
    }
}
