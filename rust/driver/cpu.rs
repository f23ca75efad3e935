// SPDX-License-Identifier: GPL-2.0

//! The state of a CPU.

use super::{
    explain::failures::Failures,
    hw::{Control, Hardware},
    pmi::shared::Shared,
    rotation::known::RotationState,
    unit::{
        lbr,
        northbridge::{node, Node},
        pebs,
        smt::seat::Sharing,
        tfa,
    },
};
use crate::{
    kern::{init::copied, percpu::CpuCell},
    logic::{
        regs::{counter::CounterMask, dirty::Dirty, shadow::Shadow},
        sched::cpu_schedule::CpuSchedule,
        smt::protocol::ThreadState,
    },
    perf::EventId,
    x86::{
        apic::{self, Lvtpc},
        builtin::Builtin,
    },
};
use kernel::{cpu::CpuId, interrupt::LocalInterruptDisabled, prelude::*};

/// The state of a CPU.
///
/// In this order, so that `own` has the address of the whole, whatever its size: a callback keeps both at
/// hand, and one register is enough.
#[pin_data]
#[repr(C)]
pub(super) struct Cpu {
    /// The part that only callbacks use.
    pub(super) own: CpuCell<Own>,
    /// The CPU's number.
    pub(super) id: CpuId,
    /// The part that callbacks share with the PMI.
    pub(super) shared: Shared,
    /// The branch records, as far as the PMI uses them.
    pub(super) lbr: lbr::Shared,
    /// The precise events.
    pub(super) pebs: pebs::Shared,
    /// The part that the CPU shares with its sibling. Not for the PMI.
    #[pin]
    pub(super) sharing: Sharing,
    /// The part that the CPU lends to the node with its number. Not for the PMI.
    #[pin]
    pub(super) northbridge: Node,
}

/// The state of a CPU that its callbacks use, and the PMI does not.
pub(super) struct Own {
    /// The CPU's events and their counters.
    pub(super) schedule: KBox<CpuSchedule<EventId>>,
    /// The values of the registers.
    pub(super) shadow: Shadow,
    /// Set if the schedule has changed since it was programmed.
    pub(super) changed: bool,
    /// The branch records.
    pub(super) lbr: lbr::Own,
    /// The precise events.
    pub(super) pebs: pebs::Own,
    /// Makes TSX transactions abort while events use counter 3.
    pub(super) tfa: tfa::CpuState,
    /// Caches the demands of the groups that rotate.
    pub(super) rotation: RotationState,
    /// The usage that the sibling knows, and the needs of this CPU.
    pub(super) smt: ThreadState,
    /// The counters that counted when the machine was suspended.
    pub(super) asleep: CounterMask,
    /// The counters with counts that other tasks must not read.
    pub(super) dirty: Dirty,
    /// The last events that got no counter here.
    pub(super) failures: Failures,
    /// The registers as they were before the PMU was first used here.
    before: Option<Before>,
}

/// The registers as another driver has left them.
struct Before {
    control: Control,
    lvtpc: Lvtpc,
}

impl Cpu {
    /// `builtin` is the built-in driver, if it has initialised.
    pub(super) fn new<'a>(
        cpu: CpuId,
        hardware: &'a Hardware,
        builtin: Option<&'a Builtin>,
    ) -> impl PinInit<Self, Error> + use<'a> {
        try_pin_init!(Self {
            id: cpu,
            own <- CpuCell::init(cpu, Own::new(hardware)),
            shared: Shared::new(
                // AMD's does not know which counters run.
                builtin
                    .filter(|_| hardware.amd().is_none())
                    .map(|builtin| builtin.mirror(cpu))
            ),
            lbr: lbr::Shared::new(cpu, hardware, builtin)?,
            pebs: pebs::Shared::new(cpu, hardware)?,
            sharing <- Sharing::new(&hardware.pmu),
            northbridge <- node(),
        }? Error)
    }
}

impl Own {
    fn new(hardware: &Hardware) -> impl Init<Self, Error> + use<'_> {
        let (capabilities, policy) = (&hardware.pmu.capabilities, hardware.policy);
        let schedule = copied(const { &CpuSchedule::NOTHING }).chain(move |schedule| {
            schedule.set_up(capabilities, policy);
            Ok(())
        });
        let shadow = copied(const { &Shadow::NOTHING }).chain(move |shadow| {
            shadow.set_up(capabilities.counters);
            Ok(())
        });
        try_init!(Self {
            schedule: KBox::init(schedule, GFP_KERNEL)?,
            shadow <- shadow,
            changed: false,
            lbr: lbr::Own::default(),
            pebs: pebs::Own::default(),
            tfa: tfa::CpuState::default(),
            rotation: RotationState::new()?,
            smt: ThreadState::default(),
            dirty: Dirty::default(),
            asleep: CounterMask::EMPTY,
            failures: Failures::new()?,
            before: None,
        }? Error)
    }

    /// Brings the registers of this CPU into a known state. No event counts on it.
    ///
    /// Called before the first event on a CPU whose registers may hold anything, because another driver has
    /// used them or the CPU was off, and while events are [paused](super::Driver::pause) because the
    /// registers have lost their values.
    pub(super) fn reset(&mut self, hardware: &Hardware, irqs: &LocalInterruptDisabled) {
        self.before.get_or_insert_with(|| Before {
            control: hardware.control(irqs),
            lvtpc: apic::lvtpc(irqs),
        });
        self.clear(hardware, irqs);
        apic::lvtpc_arm(irqs);
    }

    /// Switches the counters of this CPU off, and restores the other registers. Forgets the events, none of
    /// which is on a counter any more.
    pub(super) fn restore(
        &mut self,
        shared: &Shared,
        hardware: &Hardware,
        irqs: &LocalInterruptDisabled,
    ) {
        self.schedule.clear();
        self.changed = false;
        self.smt = ThreadState::default();
        self.asleep = CounterMask::EMPTY;
        self.dirty = Dirty::default();
        if let Some(before) = self.before.take() {
            self.clear(hardware, irqs);
            shared.withdraw();
            apic::lvtpc_restore(before.lvtpc, irqs);
            hardware.restore(before.control, irqs);
        }
    }

    fn clear(&mut self, hardware: &Hardware, irqs: &LocalInterruptDisabled) {
        // Not the dirty counters: events may stay, and leave theirs behind later.
        self.shadow.reset(|write| hardware.write(write, irqs));
        hardware.acknowledge_all(irqs);
    }
}
