// SPDX-License-Identifier: GPL-2.0

//! `perf_event_open()`: checks whether the event can be counted, alone and with its group.

use super::{
    event::EventData,
    explain::refusals::Refused,
    Driver, //
};
use crate::{
    kern,
    logic::{
        model::{
            constraint::Constraint,
            demand::{
                Key,
                Unshared, //
            },
        },
        open::{
            attr::{
                Attributes,
                EventType,
                Leader,
                LOAD_LATENCY_AUXILIARY, //
            },
            configure,
            event::Event as Configured,
            topdown, //
        },
        refusal::Refusal,
        regs::counter::CounterMask,
        sample::{
            lbr,
            random_period::RandomPeriods, //
        },
        sched::{
            assign::Policy,
            explanation::Explanation,
            group::Group,
            limits::Limits, //
        },
    },
    perf::{
        self,
        Place,
        Placed, //
    },
    perf_core::Ibs,
    x86::branches::NoTracers, //
};
use kernel::prelude::*;

/// Makes the driver's data of a new event, or refuses the event and records the refusal, unless the
/// event is for another PMU. Inherited events are not checked.
pub(super) fn event_init(
    driver: &Driver,
    event: &perf::NewEvent<'_, Driver>,
) -> Result<Placed<Driver>> {
    if let Some(parent) = event.inherited_from() {
        return inherit(driver, event, parent);
    }
    let mut attr = attributes(&event.attr(), event.own_type());
    attr.is_member = event.is_member();
    attr.has_auxiliary =
        event.any_group_member(|member| member.data().select.code() == LOAD_LATENCY_AUXILIARY);
    attr.leader = match event.leader_of_pmu() {
        Some(leader) if leader.data().select.code() != topdown::SLOTS => Leader::Other,
        Some(leader) if leader.is_sampling() => Leader::SampledSlots,
        Some(_) => Leader::Slots,
        None => Leader::Other,
    };
    // IBS has no extensions: a precise event with extensions is refused below.
    let forwards = |ibs: &Ibs| attr.is_precise() && !attr.has_extensions() && ibs.forward(event);
    if driver.common.ibs.as_ref().is_some_and(forwards) {
        return Err(Refusal::OtherType.into());
    }
    decide(driver, event, &attr, Place::new()?).map_err(|explanation| {
        refuse(driver, event, &attr, &explanation);
        explanation.refusal.into()
    })
}

/// Records the refusal of an event.
// A separate function: an event that fits does not need its stack.
#[cold]
#[inline(never)]
fn refuse(
    driver: &Driver,
    event: &perf::NewEvent<'_, Driver>,
    attr: &Attributes,
    explanation: &Explanation,
) {
    // The perf core offers an event of another type to other PMUs, so it is not refused yet.
    if explanation.refusal != Refusal::OtherType {
        let refused = Refused::now(*attr, event, *explanation);
        refused.trace(event);
        if let Some(refusals) = &driver.units.refusals {
            refusals.push(refused);
        }
    }
}

// The large error type costs little here: it passes through one call, in process context.
#[allow(clippy::result_large_err)]
fn decide(
    driver: &Driver,
    event: &perf::NewEvent<'_, Driver>,
    attr: &Attributes,
    place: Place<Driver>,
) -> Result<Placed<Driver>, Explanation> {
    let hardware = &driver.hardware;
    let pmu = &hardware.pmu;
    // A microcode update may have changed the precision since the driver was loaded.
    let precision = driver
        .units
        .pebs
        .as_ref()
        .map(|pebs| pebs.max_precise(hardware));
    if attr.is_precise() && precision.is_some_and(|most| attr.precise_ip > most) {
        return Err(Refusal::Precise.into());
    }
    let configured = configure(
        pmu,
        attr,
        |register| hardware.has(register),
        || perf::allow_cpu().is_ok(),
    )?;
    // An event that comes meanwhile gets no counter, and goes to the error state.
    if let Some(cause) = driver.common.breaker.cause() {
        return Err(Refusal::Tripped(cause).into());
    }
    if attr.sample_period != 0 && !driver.common.samples {
        return Err(Refusal::Sampling.into());
    }
    let no_tracers = exclude_tracers(driver, configured.branches)?;
    if configured.switches && !driver.common.can_switch {
        return Err(Refusal::SwitchUntried.into());
    }
    let random_state = begin_first_period(event, configured.period, configured.random);
    let constraint = configured.constraint(pmu);
    if configured.precise.is_some() && constraint.counters.is_empty() {
        return Err(Refusal::NeverPrecise.into());
    }
    let page = driver.common.user_read.page(event);
    let key = key(driver, event, &configured, constraint);
    let data = EventData::new(configured, constraint, random_state, page, no_tracers, key);
    let data = place.fill(data);

    let mut corrupting = data.demand.constraint.corrupting;
    event.for_each_group_member(|member| {
        corrupting |= member.data().demand.constraint.corrupting;
    });
    let limits = if corrupting && driver.always_has_sibling(event.cpu()) {
        Limits::beside_sibling(pmu.capabilities.gp())
    } else {
        Limits::NONE
    };

    // Check the group on an idle PMU, within the present limits: a group that does not fit there
    // would only wait.
    let transactions = driver.left_to_tsx();
    let limits = limits.closing(transactions);
    validate(driver, event, &data, &limits).map_err(|refusal| Explanation {
        refusal,
        constraint: data.demand.constraint,
        limits,
        tfa: transactions,
    })?;
    join_slots(event, &data);
    Ok(data)
}

/// Returns the key of the events that can share a counter with a new event. With `policy=mainline`
/// or `share=0`, and in an exclusive group, the event shares no counter.
fn key(
    driver: &Driver,
    event: &perf::NewEvent<'_, Driver>,
    configured: &Configured,
    constraint: Constraint,
) -> Key {
    let key = configured.key(constraint, event.attr().sample_period() != 0);
    if driver.hardware.policy == Policy::Mainline || !kern::parameter::share() {
        return key.unshared(Unshared::Off);
    }
    match event.is_of_exclusive_group() {
        true => key.unshared(Unshared::Exclusive),
        false => key,
    }
}

/// Makes the data of an inherited event from the data of its `parent`.
///
/// The event is not checked again, because fork() would fail with the error. CPUs, settings,
/// privileges and the group may have changed since `parent` was accepted. Mainline checks it.
fn inherit(
    driver: &Driver,
    event: &perf::NewEvent<'_, Driver>,
    parent: &perf::Event<Driver>,
) -> Result<Placed<Driver>> {
    let (place, from) = (Place::new()?, parent.data());
    // This succeeds, because `parent` already excludes them.
    let no_tracers = exclude_tracers(driver, from.branches)?;
    let random_state = begin_first_period(event, parent.sample_period(), from.periods.random);
    let page = driver.common.user_read.page(event);
    let mut constraint = from.demand.constraint;
    if from.is_metric() && !event.is_member() {
        // The slots event was closed, so `parent` does not count any more either.
        constraint = Constraint::any_of(CounterMask::EMPTY);
    }
    let configured = from.configured(parent.sample_period());
    let key = from.demand.key;
    let data = EventData::new(configured, constraint, random_state, page, no_tracers, key);
    let data = place.fill(data);
    join_slots(event, &data);
    Ok(data)
}

/// Excludes Intel PT and BTS for an event with `branches`, if it has any.
fn exclude_tracers(
    driver: &Driver,
    branches: Option<lbr::Request>,
) -> Result<Option<NoTracers>, Refusal> {
    match (&driver.units.lbr, branches) {
        (Some(branches), Some(_)) => branches
            .exclude_tracers()
            .map_err(|_| Refusal::BranchStackExcluded),
        _ => Ok(None),
    }
}

/// Sets the period of a new event, and its first period, which may be random. Returns the
/// generator's state.
fn begin_first_period(
    event: &perf::NewEvent<'_, Driver>,
    period: u64,
    random: RandomPeriods,
) -> u64 {
    let (mut first, mut state) = (period, 0);
    if random.vary() {
        (first, state) = random.draw(period, random.first_state(kern::random::word()));
    }
    event.set_period(period, first);
    state
}

/// Binds a new event to the slots event of its group, if it is a metric.
fn join_slots(event: &perf::NewEvent<'_, Driver>, data: &EventData) {
    if data.is_metric() {
        event.bind_to_leader();
        if let Some(leader) = event.leader_of_pmu() {
            leader.data().lead_metrics();
        }
    }
}

/// Checks that a new event with its `data` fits beside its group, under `limits`.
#[inline(never)]
fn validate(
    driver: &Driver,
    event: &perf::NewEvent<'_, Driver>,
    data: &EventData,
    limits: &Limits,
) -> Result<(), Refusal> {
    let mut group = Group::new(&driver.hardware.pmu.capabilities, limits);
    group.set_policy(driver.hardware.policy);
    let mut verdict = Ok(());
    event.for_each_group_member(|member| {
        if verdict.is_ok() {
            verdict = group.push_demand(&member.data().demand);
        }
    });
    verdict?;
    group.push_demand(&data.demand)?;
    group.validate()
}

/// Checks a new `period` of a sampling event (`PERF_EVENT_IOC_PERIOD`).
///
/// Mainline: `x86_pmu_check_period()`, `arch/x86/events/core.c`, and `intel_pmu_check_period()`.
pub(super) fn check_period(
    driver: &Driver,
    event: &perf::Event<Driver>,
    period: u64,
) -> Result<(), Refusal> {
    let (hardware, data) = (&driver.hardware, event.data());
    // As in mainline, the error blames the period, not the missing BTS.
    if data.is_too_short(hardware, period) || period == 1 && data.counts_branches(hardware) {
        return Err(Refusal::PeriodTooShort);
    }
    if !data.periods.random.suit(period) {
        return Err(Refusal::RandomMaskTooWide);
    }
    Ok(())
}

/// Copies the attributes that this driver uses. `own_type` is the type of the PMU's own events. The
/// caller sets `is_member`, `has_auxiliary` and `leader`.
fn attributes(attr: &perf::Attr<'_>, own_type: u32) -> Attributes {
    Attributes {
        event_type: EventType::decode(attr.event_type(), own_type),
        config: attr.config(),
        config1: attr.config1(),
        config2: attr.config2(),
        config3: attr.config3(),
        config4: attr.config4(),
        pinned: attr.pinned(),
        is_member: false,
        has_auxiliary: false,
        leader: Leader::Other,
        sample_period: attr.sample_period(),
        freq: attr.freq(),
        precise_ip: attr.precise_ip(),
        wakeup_events: attr.wakeup_events(),
        watermark: attr.watermark(),
        use_clockid: attr.use_clockid(),
        has_aux_action: attr.has_aux_action(),
        exclude_user: attr.exclude_user(),
        exclude_kernel: attr.exclude_kernel(),
        exclude_host: attr.exclude_host(),
        exclude_guest: attr.exclude_guest(),
        aux_output: attr.aux_output(),
        sample_type: attr.sample_type(),
        branch_sample_type: attr.branch_sample_type(),
        sample_regs_user: attr.sample_regs_user(),
        sample_regs_intr: attr.sample_regs_intr(),
    }
}
