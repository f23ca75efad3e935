// SPDX-License-Identifier: GPL-2.0

//! The circuit breaker: gives the PMUs up if one of them does not work.
//!
//! [`logic::breaker`] decides. Whatever finds the cause, in an NMI or not, only
//! [trips](Breaker::trip) the breaker, and leaves counters off that it has stopped. Work in process
//! context then [switches off](hotplug::switch_off) the counters of all CPUs, as for a shutdown. On
//! such a CPU the callbacks do nothing, so they need not check anything before. The work also logs
//! the cause, and puts the events into the error state. New events are refused until the driver is
//! loaded again.
//!
//! The same work resets the PMU of a CPU with overflows that cannot be acknowledged
//! ([`Driver::recover`]), if nothing has disabled the PMU meanwhile.
//!
//! [`logic::breaker`]: crate::logic::breaker

use super::{
    cpu::Cpu,
    hotplug,
    Driver,
    Machine, //
};
use crate::{
    kern::{
        cpu::on_each_cpu,
        deferred::Deferred,
        delayed::Run,
        lent::{
            Lent,
            Loan, //
        },
        nmi::in_nmi,
        ticks::Ticks, //
    },
    logic::{
        breaker::{
            self,
            always_occurs,
            is_plausible,
            Cause,
            Tripped,
            STILL_NS, //
        },
        model::Quirk, //
    },
    perf::Event, //
};
use core::sync::atomic::{
    AtomicBool,
    Ordering::Relaxed, //
};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    prelude::*,
    sync::Arc, //
};

/// The breaker of the machine.
pub(in crate::driver) struct Breaker {
    state: breaker::Breaker,
    work: Deferred<GiveUp>,
}

/// The work that follows once the breaker has tripped.
struct GiveUp {
    /// The machine, of which the breaker is a part, while the breaker is [armed](Armed::new).
    machine: Pin<KBox<Lent<Machine>>>,
    /// Set once the counters are off. Only the work uses it, which does not run twice at a time.
    is_off: AtomicBool,
}

impl Breaker {
    /// Makes a breaker that has not tripped. Fails with `ENOMEM`. Process context.
    pub(in crate::driver) fn new() -> Result<Self> {
        let work = GiveUp {
            machine: KBox::pin_init(Lent::new(), GFP_KERNEL)?,
            is_off: AtomicBool::new(false),
        };
        Ok(Self {
            state: breaker::Breaker::new(),
            work: Deferred::new(work)?,
        })
    }

    /// Gives the PMUs up soon. `cause` was found on this CPU. Any context.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn trip(&self, cause: Cause) {
        self.state.trip(cause, CpuId::current().as_u32());
        self.work.request();
    }

    /// Requests a reset of the PMUs whose overflows came without end; once the breaker has tripped,
    /// requests that events which were enabled again go to the error state. Any context.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn request(&self) {
        self.work.request();
    }

    /// Returns whether the breaker has tripped. Any context.
    pub(in crate::driver) fn has_tripped(&self) -> bool {
        self.state.has_tripped()
    }

    /// Returns the cause and the CPU if the breaker has tripped. Any context.
    pub(in crate::driver) fn tripped(&self) -> Option<Tripped> {
        self.state.tripped()
    }

    /// Returns the cause if the breaker has tripped. Any context.
    pub(in crate::driver) fn cause(&self) -> Option<Cause> {
        self.tripped().map(|it| it.cause)
    }
}

/// Lets the breaker give the PMUs up. Dropping prevents it, and waits if it is under way.
pub(crate) struct Armed {
    _machine: Loan<Machine>,
}

impl Armed {
    /// Arms the breaker of `machine`. Process context.
    pub(crate) fn new(machine: &Arc<Machine>) -> Self {
        let lent = Loan::new(machine.clone(), |it| {
            &it.common().breaker.work.value().machine
        });
        let breaker = &machine.common().breaker;
        if breaker.has_tripped() {
            breaker.request();
        }
        Self { _machine: lent }
    }
}

impl Run for GiveUp {
    fn run(&self) {
        self.machine.with(|machine| {
            let breaker = &machine.common().breaker;
            if !breaker.has_tripped() {
                on_each_cpu(&|irqs| recover(machine, irqs));
            }
            let Some(tripped) = breaker.tripped() else {
                return;
            };
            if !self.is_off.load(Relaxed) {
                on_each_cpu(&|irqs| switch_off(machine, irqs));
                report(tripped);
                self.is_off.store(true, Relaxed);
            }
            for pmu in machine.pmus() {
                pmu.fail_events();
            }
        });
    }
}

/// Resets the PMU of this CPU if its overflows came without end.
fn recover(machine: &Machine, irqs: &LocalInterruptDisabled) {
    let Some(pmu) = machine.this_cpu(irqs) else {
        return;
    };
    if pmu.ops().cpus.this_cpu(irqs).pmi_state.is_stuck() {
        // `Driver::disable()` does it.
        pmu.with_disabled(irqs, |_| {});
    }
}

/// Switches the counters of this CPU off, and takes them from their events.
fn switch_off(machine: &Machine, irqs: &LocalInterruptDisabled) {
    if let Some(pmu) = machine.this_cpu(irqs) {
        hotplug::switch_off(pmu, irqs);
        pmu.resched(CpuId::current());
    }
}

fn report(Tripped { cause, cpu }: Tripped) {
    pr_err!(
        "CPU {cpu}: {}. All counters are off, their events are in the error state, and new ones fail \
         with ENODEV, until rpmu is loaded again. Please report this line with the first CPU in \
         /proc/cpuinfo\n",
        format_args!("{cause}")
    );
}

impl Driver {
    /// Records an interrupt of a counter of `cpu`, which is this CPU, without an overflow. Returns
    /// whether it is one too many: then LVTPC must stay masked. In an NMI.
    #[inline(never)]
    pub(super) fn is_storm(&self, cpu: &Cpu) -> bool {
        let now = Ticks::now().milliseconds();
        let cause = cpu.pmi_state.signs.empty_interrupt(now);
        if let Some(cause) = cause {
            self.common.breaker.trip(cause);
        }
        cause.is_some()
    }

    /// Records that the PMU of `cpu`, which is this CPU, was reset because its overflows came
    /// without end. Says nothing about models on which status bits can stay set. Not in an NMI.
    pub(super) fn was_reset(&self, cpu: &Cpu, irqs: &LocalInterruptDisabled) {
        if self.hardware.pmu.model.has(Quirk::StatusSticks) {
            return;
        }
        let now = Ticks::now().milliseconds();
        let is_clear = !self.hardware.has_overflow(irqs);
        if let Some(cause) = cpu.pmi_state.signs.reset(now, is_clear) {
            self.common.breaker.trip(cause);
        }
    }

    /// Trips the breaker if a register of this CPU, whose PMU must not be in use, does not work.
    pub(super) fn check_registers(&self, irqs: &LocalInterruptDisabled) {
        if !matches!(self.hardware.find_broken_counter(irqs), Ok(None)) {
            self.common.breaker.trip(Cause::Register);
        }
    }
}

/// Judges an increment of the counter of `event` that is [not
/// common](crate::logic::breaker::is_common), and trips the breaker if it is impossible. Returns
/// whether it is to be counted.
///
/// On the event's CPU, in any context.
#[cold]
#[inline(never)]
pub(super) fn is_credible(event: &Event<Driver>, delta: u64) -> bool {
    if delta == 0 {
        check_still(event);
        return true;
    }
    let driver = event.pmu().ops();
    let width = driver.hardware.limits.width;
    let credible = is_plausible(delta, event.time_on_counters(), width);
    if !credible {
        driver.common.breaker.trip(Cause::Jump);
    }
    credible
}

/// Trips the breaker if `event`, which has not occurred since the last look, has never occurred
/// though it must have.
///
/// On the event's CPU, in any context. An NMI may look twice while the counter is stopped, so it
/// does not judge.
#[cold]
#[inline(never)]
pub(super) fn check_still(event: &Event<Driver>) {
    let (driver, data) = (event.pmu().ops(), event.data());
    if event.count() == 0
        && data.counts_in.host
        && always_occurs(data.select, driver.hardware.amd().is_some())
        && event.time_on_counters() >= STILL_NS
        && !in_nmi()
    {
        driver.common.breaker.trip(Cause::Still);
    }
}
