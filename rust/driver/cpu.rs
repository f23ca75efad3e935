// SPDX-License-Identifier: GPL-2.0

//! The state of a CPU.

use super::{
    explain::failures::Failures,
    hw::{
        Control,
        Hardware, //
    },
    pmi::state::PmiState,
    rotation::known::RotationState,
    smt::core_thread::Sharing,
    unit::{
        self,
        hooks::{
            PlanAndShadow,
            Site, //
        },
        lbr::InPmi, //
    },
    Driver, //
};
use crate::{
    kern::{
        init::copied,
        percpu::CpuCell, //
    },
    logic::{
        model::Scope,
        regs::{
            counter::CounterMask,
            dirty::Dirty,
            shadow::Shadow, //
        },
        sched::{
            cpu_schedule::CpuSchedule,
            riders::{
                Ids,
                Riders, //
            },
        },
        smt::protocol::ThreadState, //
    },
    perf::{
        EventId,
        OnCpu, //
    },
    x86::{
        apic::{
            self,
            Lvtpc, //
        },
        builtin::Builtin, //
    },
};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// The state of a CPU.
///
/// `own` comes first, so that it has the address of the whole struct: a callback needs both
/// addresses, and one register is enough for them.
#[pin_data]
#[repr(C)]
pub(super) struct Cpu {
    /// The part that only callbacks use.
    pub(super) own: CpuCell<CallbackState>,
    /// The CPU's number.
    pub(super) id: CpuId,
    /// The part that callbacks share with the PMI.
    pub(super) pmi_state: PmiState,
    /// The units' state that the PMI uses too.
    pub(super) units: unit::UnitsPmiState,
    /// The part that the CPU shares with its sibling. The PMI does not use it.
    #[pin]
    pub(super) sharing: Sharing,
}

/// The state of a CPU that its callbacks use, and the PMI does not.
pub(super) struct CallbackState {
    /// The CPU's events and their counters.
    pub(super) schedule: KBox<CpuSchedule<EventId>>,
    /// The values of the registers.
    pub(super) shadow: Shadow,
    /// Set if the schedule has changed since it was programmed.
    pub(super) changed: bool,
    /// The units' state that only callbacks use.
    pub(super) units: unit::UnitsOwn,
    /// The events that share the counter of an equal event.
    pub(super) riders: Riders,
    /// The riders that the open txn has added. They are placed once the group fits.
    pub(super) riders_to_place: Ids,
    /// Caches the demands of the groups that rotate.
    pub(super) rotation: RotationState,
    /// The usage that this thread last reported to its core, its needs, and the limits of its last
    /// refusal.
    pub(super) smt: ThreadState,
    /// The counters that counted when the machine was suspended.
    pub(super) asleep: CounterMask,
    /// The counters with counts that other tasks must not read.
    pub(super) dirty: Dirty,
    /// The last failures here.
    pub(super) failures: Failures,
    /// The registers as they were before this driver used the CPU; [`None`] until it does, and
    /// after it has restored them.
    before: Option<Before>,
}

/// The registers as another driver left them.
struct Before {
    control: Control,
    lvtpc: Lvtpc,
}

impl Cpu {
    /// Creates the state of `cpu`. `builtin` is the built-in driver, if it has initialised.
    pub(super) fn new<'a>(
        cpu: CpuId,
        hardware: &'a Hardware,
        builtin: Option<&'a Builtin>,
    ) -> impl PinInit<Self, Error> + use<'a> {
        try_pin_init!(Self {
            id: cpu,
            own <- CpuCell::init_closed(cpu, CallbackState::new(hardware)),
            pmi_state <- PmiState::new(
                // AMD's built-in driver has no state of running counters that other code reads.
                builtin
                    .filter(|_| hardware.amd().is_none())
                    .map(|builtin| builtin.mirror(cpu))
            ),
            units <- unit::UnitsPmiState::new(cpu, hardware, builtin),
            sharing <- Sharing::new(&hardware.pmu),
        }? Error)
    }
}

impl CallbackState {
    fn new(hardware: &Hardware) -> impl Init<Self, Error> + use<'_> {
        let (capabilities, policy) = (&hardware.pmu.capabilities, hardware.policy);
        let shares_extra = hardware.pmu.model.offcore_scope == Scope::Core;
        let schedule = copied(const { &CpuSchedule::NOTHING }).chain(move |schedule| {
            schedule.set_up(capabilities, policy);
            if !shares_extra {
                schedule.own_registers();
            }
            Ok(())
        });
        let shadow = copied(const { &Shadow::NOTHING }).chain(move |shadow| {
            shadow.set_up(capabilities.counters);
            if shares_extra {
                shadow.share_extra_registers();
            }
            Ok(())
        });
        try_init!(Self {
            schedule: KBox::init(schedule, GFP_KERNEL)?,
            shadow <- shadow,
            changed: false,
            units: unit::UnitsOwn::default(),
            riders: Riders::NONE,
            riders_to_place: Ids::NONE,
            rotation: RotationState::new()?,
            smt: ThreadState::default(),
            dirty: Dirty::default(),
            asleep: CounterMask::EMPTY,
            failures: Failures::new()?,
            before: None,
        }? Error)
    }

    /// Switches the counters of this CPU off, and forgets the values of their registers.
    fn clear(&mut self, site: Site<'_>) {
        self.shadow
            .reset(|write| site.hardware.write(write, site.irqs));
        site.hardware.acknowledge_all(site.irqs);
    }
}

impl Driver {
    /// Returns the units' view of `cpu`, which is this CPU.
    #[inline(always)]
    pub(super) fn site<'a>(&'a self, cpu: &'a Cpu, irqs: &'a LocalInterruptDisabled) -> Site<'a> {
        Site {
            id: cpu.id,
            hardware: &self.hardware,
            pmi_state: &cpu.pmi_state,
            irqs,
        }
    }

    /// Reads the branch records in a PMI, if an event on one of `counters` wants them. Must be
    /// called before the PMI is acknowledged, since that may restart the recording of branches.
    #[inline]
    pub(super) fn read_branches<'a>(
        &'a self,
        cx: &'a OnCpu<'_, Self>,
        cpu: &'a Cpu,
        counters: CounterMask,
    ) -> Option<InPmi<'a>> {
        let branches = self.units.lbr.as_ref()?;
        branches.read_in_pmi(&cpu.units.lbr, cx, &cpu.pmi_state, counters)
    }

    /// Returns the buffer for branches from PEBS records. [`None`] if no branches are recorded, or
    /// while another part of the driver uses the buffer.
    pub(super) fn recorded_branches<'a>(
        &'a self,
        irqs: &'a LocalInterruptDisabled,
    ) -> Option<InPmi<'a>> {
        let branches = self.units.lbr.as_ref()?;
        branches.recorded(&self.cpus.this_cpu(irqs).units.lbr, irqs)
    }

    /// Brings the registers of this CPU into a known state. No event counts on it.
    ///
    /// Called before the first event on a CPU whose registers may hold anything, because another
    /// driver has used them or the CPU was off. Also called while events are [paused](Self::pause),
    /// because the registers have lost their values or overflows are stuck.
    #[cold]
    #[inline(never)]
    pub(super) fn reset(&self, cpu: &Cpu, own: &mut CallbackState, irqs: &LocalInterruptDisabled) {
        let site = self.site(cpu, irqs);
        own.before.get_or_insert_with(|| Before {
            control: self.hardware.control(irqs),
            lvtpc: apic::lvtpc(irqs),
        });
        own.clear(site);
        apic::lvtpc_arm(irqs);
        let counters = PlanAndShadow {
            schedule: &own.schedule,
            shadow: &mut own.shadow,
        };
        own.changed |= self.units.reset(&mut own.units, &cpu.units, site, counters);
    }

    /// Switches the counters of this CPU off, and keeps them from raising interrupts. No event is
    /// on a counter any more. The registers can still be [restored](Self::restore).
    pub(super) fn switch_off(
        &self,
        cpu: &Cpu,
        own: &mut CallbackState,
        irqs: &LocalInterruptDisabled,
    ) {
        own.clear(self.site(cpu, irqs));
        self.hardware.stop(irqs);
        cpu.pmi_state.withdraw();
        apic::lvtpc_mask(irqs);
    }

    /// Switches the counters of this CPU off, and restores GLOBAL_CTRL, LVTPC and the units'
    /// registers, if the driver has used this CPU. Forgets the events, none of which is on a
    /// counter any more.
    pub(super) fn restore(
        &self,
        cpu: &Cpu,
        own: &mut CallbackState,
        irqs: &LocalInterruptDisabled,
    ) {
        let site = self.site(cpu, irqs);
        own.schedule.clear();
        own.riders.clear();
        own.riders_to_place = Ids::NONE;
        own.changed = false;
        own.smt = ThreadState::default();
        own.asleep = CounterMask::EMPTY;
        own.dirty = Dirty::default();
        let Some(before) = own.before.take() else {
            return;
        };
        own.clear(site);
        self.units.restore(&mut own.units, &cpu.units, site);
        cpu.pmi_state.withdraw();
        apic::lvtpc_restore(before.lvtpc, irqs);
        // Last: this sets the enable bits in GLOBAL_CTRL as they were found. The event selects stay
        // 0.
        self.hardware.restore(before.control, irqs);
    }
}
