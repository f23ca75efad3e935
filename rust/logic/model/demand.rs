// SPDX-License-Identifier: GPL-2.0

//! The demand of an event: the counters that it may use, and the extra registers that it needs.
//!
//! An extra register's value is the `attr.config1` of a raw event, and from the model's table for a
//! cache event. Events whose branches are recorded also need LBR_SELECT, whose value is from a
//! [request](crate::logic::sample::lbr::Request). Two events can share a register if they need the
//! same value. On a model with two offcore response registers, an event can use either register
//! that accepts its value, with the event code that belongs to the register.
//! [`register_plan`](crate::logic::sched::register_plan) chooses the register, anew whenever events
//! are added.
//!
//! Events with equal [keys](Key), and otherwise equal demands, count the same on one counter.

use super::constraint::Constraint;
use crate::logic::regs::{
    event_select::EventSelect,
    extra_register::ExtraRegister,
    global::CountsIn, //
};

/// An event's requirement of a certain value in an extra register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The value: `attr.config1`, a cache event's value in the model's table, or LBR_SELECT's.
    pub value: u64,
    /// The register that belongs to the event code.
    pub register: ExtraRegister,
    /// Another register that can be used instead, if there is one and it accepts the value.
    pub alternative: Option<ExtraRegister>,
}

impl Requirement {
    /// Returns the registers that can be used, the event's own first.
    pub fn registers(self) -> impl Iterator<Item = ExtraRegister> {
        [Some(self.register), self.alternative]
            .into_iter()
            .flatten()
    }
}

/// The part of an event's configuration that determines, together with its constraint and its extra
/// register, what a counter counts. Events that agree in all three can share a counter if at most
/// one of them is sampled.
///
/// # Invariants
///
/// The value is 0 for [`NONE`](Self::NONE); otherwise it has `HOST`, `GUEST` or both bits.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::model::demand::Key;
/// use logic::regs::{event_select::EventSelect, global::CountsIn};
///
/// let cycles = EventSelect::event(0x3c, 0).counting_user(true);
/// let key = |samples| Key::new(cycles, CountsIn::EVERYWHERE, samples);
/// assert!(key(false).is_equal(key(true)));
/// assert!(!Key::NONE.is_equal(Key::NONE));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// The key of an event that shares no counter.
    pub const NONE: Self = Self(0);

    // No event select has these bits.
    const HOST: u64 = 1 << 63;
    const GUEST: u64 = 1 << 62;
    const SAMPLES: u64 = 1 << 61;
    /// Six bits: the number of the [bit](Self::bit), which is stored so that it need not be
    /// computed each time that the event is added.
    const BIT: u32 = 55;
    const SELECT: u64 = (1 << Self::BIT) - 1;

    /// Returns the key of an event. `samples` is set if the event is sampled: its period has to be
    /// in the counter. An event that counts nowhere shares no counter.
    pub const fn new(select: EventSelect, counts_in: CountsIn, samples: bool) -> Self {
        let CountsIn { host, guest } = counts_in;
        if !host && !guest {
            return Self::NONE;
        }
        let mut key = select.bits() & Self::SELECT;
        if host {
            key |= Self::HOST;
        }
        if guest {
            key |= Self::GUEST;
        }
        // CAST: more bits.
        let bit = Self(key).number(64) as u64;
        // INVARIANT: At least one of the two bits is set.
        Self(key | bit.wrapping_shl(Self::BIT)).with_samples(samples)
    }

    /// Returns whether the event is sampled.
    pub const fn samples(self) -> bool {
        self.0 & Self::SAMPLES != 0
    }

    /// Returns whether this is the key of an event that may share a counter and is not sampled.
    #[inline]
    pub const fn counts_only(self) -> bool {
        self.0 != 0 && !self.samples()
    }

    /// Returns this key with the mark of sampled events set to `samples`. [`NONE`](Self::NONE)
    /// stays the same.
    #[must_use]
    pub const fn with_samples(self, samples: bool) -> Self {
        match samples && self.0 != 0 {
            true => Self(self.0 | Self::SAMPLES),
            false => Self(self.0 & !Self::SAMPLES),
        }
    }

    /// Returns whether events with the two keys can share a counter: the keys are equal, except
    /// that one of the events may be sampled.
    pub const fn is_equal(self, other: Self) -> bool {
        let both_sample = self.0 & other.0 & Self::SAMPLES != 0;
        self.0 != 0 && (self.0 ^ other.0) & !Self::SAMPLES == 0 && !both_sample
    }

    /// Returns one bit: the same for equal keys, mostly another for different keys; 0 for the key
    /// of an event that shares no counter.
    #[inline]
    pub const fn bit(self) -> u64 {
        match self.0 {
            0 => 0,
            // CAST: cuts off all but the lower bits of the number, of which the shift takes six.
            _ => 1u64.wrapping_shl(self.0.wrapping_shr(Self::BIT) as u32),
        }
    }

    /// Returns a number below `limit`, a power of two above 1: the same for equal keys, mostly
    /// another for different keys.
    #[inline]
    pub const fn number(self, limit: usize) -> usize {
        // The golden ratio of 64 bits: bits of the product's upper part depend on all bits.
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (self.0 & !Self::SAMPLES).wrapping_mul(MIX);
        // CAST: below `limit`.
        mixed.wrapping_shr(64 - limit.trailing_zeros()) as usize
    }
}

/// The demand of an event: everything that it needs to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The counters, one of which it needs.
    pub constraint: Constraint,
    /// The extra register that its code needs, if any.
    pub requirement: Option<Requirement>,
    /// The value of [`ExtraRegister::LbrSelect`] that it needs, if branches are recorded for it.
    pub lbr_select: Option<u32>,
    /// The key of events that can share its counter.
    pub key: Key,
}

impl Demand {
    /// Returns the extra registers that the event needs.
    pub fn requirements(self) -> impl Iterator<Item = Requirement> + Clone {
        let branches = self.lbr_select.map(|value| Requirement {
            value: value.into(),
            register: ExtraRegister::LbrSelect,
            alternative: None,
        });
        [self.requirement, branches].into_iter().flatten()
    }

    /// Returns whether an event with this demand can ride on the counter of one with the demand
    /// `other`: both count the same, and at most one is sampled. An event for which branches are
    /// recorded does not ride.
    pub fn can_ride_on(&self, other: &Self) -> bool {
        self.key.is_equal(other.key)
            && self.lbr_select.is_none()
            && self.requirement == other.requirement
            && self.constraint == other.constraint
    }

    /// Returns a number that is equal for events that can share a counter, and almost always
    /// different for others. Returns 0 for an event that shares no counter, is sampled, or has
    /// branches recorded.
    pub const fn fingerprint(&self) -> u64 {
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        if !self.key.counts_only() || self.lbr_select.is_some() {
            return 0;
        }
        let value = match self.requirement {
            Some(requirement) => requirement.value.wrapping_add(1),
            None => 0,
        };
        let counters = self.constraint.counters.bits().rotate_left(29);
        let mut sum = self.key.0;
        sum = (sum ^ sum.rotate_right(23)).wrapping_mul(MIX) ^ value;
        sum = (sum ^ sum.rotate_right(23)).wrapping_mul(MIX) ^ counters;
        (sum ^ sum.rotate_right(23)).wrapping_mul(MIX) | 1
    }

    /// Returns whether the event needs an extra register.
    #[inline]
    pub const fn needs_register(&self) -> bool {
        self.requirement.is_some() || self.lbr_select.is_some()
    }
}

impl From<Constraint> for Demand {
    fn from(constraint: Constraint) -> Self {
        Self {
            constraint,
            requirement: None,
            lbr_select: None,
            key: Key::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::regs::counter::CounterMask;

    #[test]
    fn only_events_that_count_the_same_ride() {
        let select = EventSelect::event(0xb7, 0x01);
        let offcore = |value, samples| Demand {
            requirement: Some(Requirement {
                value,
                register: ExtraRegister::OffcoreResponse0,
                alternative: None,
            }),
            key: Key::new(select, CountsIn::EVERYWHERE, samples),
            ..Constraint::any_of(CounterMask::first_gp(4)).into()
        };
        let event = offcore(1, false);
        assert!(event.can_ride_on(&event) && offcore(1, true).can_ride_on(&event));
        assert!(event.can_ride_on(&offcore(1, true)));
        assert!(!offcore(1, true).can_ride_on(&offcore(1, true)));
        // Another value in the extra register, other counters, another place.
        assert!(!event.can_ride_on(&offcore(2, false)));
        let elsewhere = CountsIn {
            guest: false,
            ..CountsIn::EVERYWHERE
        };
        let others = [
            Demand {
                constraint: Constraint::any_of(CounterMask::first_gp(2)),
                ..event
            },
            Demand {
                key: Key::new(select, elsewhere, false),
                ..event
            },
            Demand {
                key: Key::NONE,
                ..event
            },
        ];
        assert!(others.iter().all(|other| !event.can_ride_on(other)));
        // An event with branch stacks does not ride, but others can ride on its counter.
        let branches = Demand {
            lbr_select: Some(1),
            ..offcore(1, true)
        };
        assert!(!branches.can_ride_on(&event) && event.can_ride_on(&branches));
    }
}
