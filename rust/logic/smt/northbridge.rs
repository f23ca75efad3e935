// SPDX-License-Identifier: GPL-2.0

//! The rules by which the cores of a node share the counters of AMD's northbridge, up to family
//! 14h.
//!
//! A northbridge event on counter n of a core is counted by counter n of the northbridge, which all
//! cores of the node share. So no two CPUs may have such events on the same counter. Other events
//! may use the counter meanwhile.
//!
//! A CPU claims counters when it plans. When the plan is programmed, it releases the counters that
//! its events have left. A CPU whose events find no counter tries again when it rotates, as in
//! mainline (`__amd_get_nb_event_constraints()`, `arch/x86/events/amd/core.c`).
//!
//! Source: BKDG for family 10h, section 3.12.
//!
//! Context: any CPU of the node, interrupts off, under the node's lock.

use crate::logic::regs::counter::{
    CounterId,
    CounterMask, //
};

/// Number of counters of a PMU with such events.
const COUNTERS: usize = 4;

/// The counters of a node's northbridge.
#[derive(Clone, Debug)]
pub struct Northbridge {
    /// The CPU that has claimed each counter.
    owner: [Option<u32>; COUNTERS],
}

impl Default for Northbridge {
    fn default() -> Self {
        Self::new()
    }
}

impl Northbridge {
    /// Makes a northbridge of which no CPU has claimed a counter.
    pub const fn new() -> Self {
        Self {
            owner: [None; COUNTERS],
        }
    }

    /// Returns the counters that other CPUs than `cpu` have claimed.
    pub fn closed_to(&self, cpu: u32) -> CounterMask {
        let owners = self.owner.iter().enumerate();
        let others = owners.filter(|(_, owner)| owner.is_some_and(|owner| owner != cpu));
        others
            .filter_map(|(n, _)| CounterId::from_index(n))
            .collect()
    }

    /// Claims `counters` for `cpu`, in addition to those that it has. None of them may be
    /// [closed](Self::closed_to) to it.
    pub fn claim(&mut self, cpu: u32, counters: CounterMask) {
        for counter in counters {
            if let Some(owner) = self.owner.get_mut(counter.index()) {
                *owner = Some(cpu);
            }
        }
    }

    /// Releases all counters of `cpu` except those in `kept`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::regs::counter::CounterMask;
    /// use logic::smt::northbridge::Northbridge;
    ///
    /// let mut node = Northbridge::new();
    /// node.claim(0, CounterMask::from_bits(0b0011));
    /// assert_eq!(node.closed_to(1).bits(), 0b0011);
    /// // Its event moves from counter 0 to 1.
    /// node.release(0, CounterMask::from_bits(0b0010));
    /// assert_eq!(node.closed_to(1).bits(), 0b0010);
    /// ```
    pub fn release(&mut self, cpu: u32, kept: CounterMask) {
        for (n, owner) in self.owner.iter_mut().enumerate() {
            let keeps = CounterId::from_index(n).is_some_and(|counter| kept.contains(counter));
            if *owner == Some(cpu) && !keeps {
                *owner = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::{
        capabilities::{
            Capabilities,
            Cpuid, //
        },
        model::constraint::Constraint,
        refusal::Refusal,
        sched::{
            cpu_schedule::CpuSchedule,
            limits::Limits, //
        },
    };

    const ANY: Constraint = Constraint::any_of(CounterMask::first_gp(4));
    const NORTHBRIDGE: Constraint = Constraint {
        northbridge: true,
        ..ANY
    };

    /// Adds an event to the schedule of a CPU as the driver does.
    fn add(
        node: &mut Northbridge,
        (cpu, schedule): (u32, &mut CpuSchedule<u32>),
        event: u32,
        constraint: Constraint,
    ) -> Result<(), Refusal> {
        let limits = Limits {
            closed_to_sharing: node.closed_to(cpu),
            ..Limits::NONE
        };
        schedule.add(event, constraint, None, &limits)?;
        node.claim(cpu, schedule.northbridge());
        Ok(())
    }

    #[test]
    fn two_cpus_share_the_counters_of_their_node() {
        let capabilities = Capabilities::decode_amd(&Cpuid::default()).unwrap();
        let mut node = Northbridge::new();
        let [mut one, mut two] = [(); 2].map(|()| CpuSchedule::new(&capabilities));
        for event in 0..3 {
            add(&mut node, (0, &mut one), event, NORTHBRIDGE).unwrap();
        }
        // Counter 3 is left for northbridge events; other events may use all counters.
        add(&mut node, (1, &mut two), 10, NORTHBRIDGE).unwrap();
        assert_eq!(two.northbridge().bits(), 0b1000);
        let refused = add(&mut node, (1, &mut two), 11, NORTHBRIDGE).unwrap_err();
        assert!(refused.is_for_the_moment(), "{refused}");
        for event in 12..15 {
            add(&mut node, (1, &mut two), event, ANY).unwrap();
        }
        // A CPU keeps its counters while events come and go, and releases unused ones when the plan
        // is programmed.
        add(&mut node, (0, &mut one), 3, ANY).unwrap();
        assert_eq!(one.northbridge().bits(), 0b0111);
        one.remove(1);
        assert_eq!(node.closed_to(1).bits(), 0b0111);
        node.release(0, one.northbridge());
        assert_eq!(node.closed_to(1).bits(), 0b0101);
        two.remove(13);
        add(&mut node, (1, &mut two), 11, NORTHBRIDGE).unwrap();
        assert_eq!(two.northbridge().bits(), 0b1010);
        node.release(1, CounterMask::EMPTY);
        assert_eq!(node.closed_to(0).bits(), 0);
    }

    #[test]
    fn counters_that_the_northbridge_lacks_are_ignored() {
        let mut node = Northbridge::new();
        node.claim(0, CounterMask::ALL);
        assert_eq!(node.closed_to(1), CounterMask::first_gp(4));
        node.release(0, CounterMask::EMPTY);
        assert_eq!(node.closed_to(1), CounterMask::EMPTY);
    }
}
