// SPDX-License-Identifier: GPL-2.0

//! What the driver keeps of a CPU.

use super::{
    explain::failures::UnplacedList,
    hw::{Control, Hardware},
    pmi::shared::Shared,
    rotation::known::RotationState,
    unit::{smt::seat::Sharing, tfa},
};
use crate::{
    kern::percpu::CpuCell,
    logic::{
        regs::{counter::CounterMask, dirty::Dirty, shadow::Shadow},
        sched::cpu_schedule::CpuSchedule,
        smt::protocol::ThreadState,
    },
    perf::EventId,
    x86::apic::{self, Lvtpc},
};
use kernel::{cpu::CpuId, interrupt::LocalInterruptDisabled, prelude::*};

/// One CPU.
#[pin_data]
pub(super) struct Cpu {
    /// Which one.
    pub(super) id: CpuId,
    /// What callbacks use and the PMI does not.
    pub(super) own: CpuCell<Own>,
    /// What callbacks share with the PMI.
    pub(super) shared: Shared,
    /// What the CPU shares with its sibling. Not for the PMI.
    #[pin]
    pub(super) sharing: Sharing,
}

/// What callbacks on a CPU use and the PMI does not.
pub(super) struct Own {
    /// The events that are here, and their counters.
    pub(super) schedule: KBox<CpuSchedule<EventId>>,
    /// What the registers hold.
    pub(super) shadow: Shadow,
    /// Whether the schedule has changed since the hardware was brought to its plan.
    pub(super) changed: bool,
    /// Whether transactions are made to abort.
    pub(super) tfa: tfa::CpuState,
    /// Caches the demands of the groups that rotate.
    pub(super) rotation: RotationState,
    /// What the sibling believes of this CPU, and what this CPU lacks because of the sibling.
    pub(super) smt: ThreadState,
    /// The counters that counted when the machine went to sleep.
    pub(super) asleep: CounterMask,
    /// What others must not read.
    pub(super) dirty: Dirty,
    /// Who found no place here.
    pub(super) unplaced: UnplacedList,
    /// What was in the way when the PMU was first used here.
    before: Option<Before>,
}

/// Registers as somebody else has left them.
struct Before {
    control: Control,
    lvtpc: Lvtpc,
}

impl Cpu {
    pub(super) fn new(cpu: CpuId, hardware: &Hardware) -> impl PinInit<Self, Error> + use<'_> {
        try_pin_init!(Self {
            id: cpu,
            own: CpuCell::new(cpu, Own::new(hardware)?),
            shared: Shared::new(),
            sharing <- Sharing::new(&hardware.pmu),
        }? Error)
    }
}

// Half of what there is of a CPU. It passes through the stack, where not much else may be then.
#[inline(never)]
fn new_schedule(hardware: &Hardware) -> Result<KBox<CpuSchedule<EventId>>> {
    let schedule = CpuSchedule::new(&hardware.pmu.capabilities).with_policy(hardware.policy);
    Ok(KBox::new(schedule, GFP_KERNEL)?)
}

impl Own {
    fn new(hardware: &Hardware) -> Result<Self> {
        let capabilities = &hardware.pmu.capabilities;
        Ok(Self {
            schedule: new_schedule(hardware)?,
            shadow: Shadow::new(capabilities),
            changed: false,
            tfa: tfa::CpuState::default(),
            rotation: RotationState::new()?,
            smt: ThreadState::default(),
            dirty: Dirty::default(),
            asleep: CounterMask::EMPTY,
            unplaced: UnplacedList::new()?,
            before: None,
        })
    }

    /// Brings the PMU of this CPU into a known state. No event counts on it.
    ///
    /// Done before the first event comes to a CPU that we know nothing about: another driver has
    /// used the PMU until now, or the CPU was off. And where events have been
    /// [paused](super::Driver::pause), because the registers have lost what they held.
    pub(super) fn reset(&mut self, hardware: &Hardware, irqs: &LocalInterruptDisabled) {
        self.before.get_or_insert_with(|| Before {
            control: hardware.control(irqs),
            lvtpc: apic::lvtpc(irqs),
        });
        self.clear(hardware, irqs);
        apic::lvtpc_arm(irqs);
    }

    /// Leaves the PMU of this CPU to others: everything off, and the rest as it was. Forgets the
    /// events, of which none is on a counter any more.
    pub(super) fn restore(&mut self, hardware: &Hardware, irqs: &LocalInterruptDisabled) {
        self.schedule.clear();
        self.changed = false;
        self.smt = ThreadState::default();
        self.asleep = CounterMask::EMPTY;
        self.dirty = Dirty::default();
        if let Some(before) = self.before.take() {
            self.clear(hardware, irqs);
            apic::lvtpc_restore(before.lvtpc, irqs);
            hardware.restore(before.control, irqs);
        }
    }

    fn clear(&mut self, hardware: &Hardware, irqs: &LocalInterruptDisabled) {
        // Events may stay, so the counters that they will leave behind stay known as in use.
        self.shadow.reset(|write| hardware.write(write, irqs));
        hardware.acknowledge(hardware.pmu.capabilities.counters, irqs);
    }
}
