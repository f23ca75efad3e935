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

use core::fmt;

use super::constraint::Constraint;
use crate::logic::regs::{
    event_select::EventSelect,
    extra_register::ExtraRegister,
    global::CountsIn, //
};

/// An event's requirement of a certain value in an extra register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// A reason why an event does not share the counter of an event that counts the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unshared {
    /// Events share no counters: `share=0` or `policy=mainline`.
    Off,
    /// One of the two belongs to an exclusive group.
    Exclusive,
    /// One of the two is precise.
    Precise,
    /// Events of this kind share no counters.
    Kind,
    /// Both are sampled.
    Sampled,
    /// Branches are recorded for the event.
    Branches,
}

impl fmt::Display for Unshared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "with share=0 or policy=mainline, no events share a counter",
            Self::Exclusive => "an exclusive group shares no counters",
            Self::Precise => "precise events share no counters",
            Self::Kind => "events of this kind share no counters",
            Self::Sampled => "both are sampled",
            Self::Branches => "it takes branch stacks",
        })
    }
}

/// The part of an event's configuration that determines, together with its constraint and its extra
/// register, what a counter counts. Events that agree in all three can share a counter if at most
/// one of them is sampled, unless an event's key is [unshared](Self::unshared).
///
/// # Invariants
///
/// The value has `HOST`, `GUEST` or both bits, or is that of [`NONE`](Self::NONE). It has a
/// [number](Self::BIT) other than 0 only without `UNSHARED`, and a [reason](Self::REASON) only with
/// it.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::model::demand::{Key, Unshared};
/// use logic::regs::{event_select::EventSelect, global::CountsIn};
///
/// let cycles = EventSelect::event(0x3c, 0).counting_user(true);
/// let key = |samples| Key::new(cycles, CountsIn::EVERYWHERE, samples);
/// assert!(key(false).is_equal(key(true)));
/// assert!(!Key::NONE.is_equal(Key::NONE));
///
/// let alone = key(false).unshared(Unshared::Exclusive);
/// assert!(!alone.is_equal(alone) && alone.counts_same(key(true)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    /// The key of an event that shares no counter, and of which nothing is known.
    pub const NONE: Self = Self(Self::UNSHARED);

    // No event select has these bits. The first is the sign, which is tested most often.
    const UNSHARED: u64 = 1 << 63;
    const HOST: u64 = 1 << 62;
    const GUEST: u64 = 1 << 61;
    const SAMPLES: u64 = 1 << 60;
    /// Six bits: the number of the [bit](Self::bit), which is stored so that it need not be
    /// computed each time that the event is added. 0 if the event shares no counter.
    const BIT: u32 = 54;
    /// Three bits: why the event shares no counter, as an [`Unshared`].
    const REASON: u32 = 51;
    const SELECT: u64 = (1 << Self::REASON) - 1;

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
        let bit = match Self(key).number(64) as u64 {
            0 => 1,
            bit => bit,
        };
        // INVARIANT: At least one of the two bits is set.
        Self(key | bit.wrapping_shl(Self::BIT)).with_samples(samples)
    }

    /// Returns the key of the same event, if it shares no counter for this reason, which is not
    /// [`Sampled`](Unshared::Sampled) or [`Branches`](Unshared::Branches). An event that shares no
    /// counter already keeps its reason.
    #[must_use]
    pub const fn unshared(self, why: Unshared) -> Self {
        if !self.shares() {
            return self;
        }
        let reason = match why {
            Unshared::Off => 0,
            Unshared::Exclusive => 1,
            Unshared::Precise => 2,
            Unshared::Kind | Unshared::Sampled | Unshared::Branches => 3,
        };
        // INVARIANT: The key has a reason and no number.
        let same = self.0 & (Self::SELECT | Self::HOST | Self::GUEST);
        Self(same | Self::UNSHARED | (reason << Self::REASON))
    }

    /// Returns why the event shares no counter; [`None`] if it may share one.
    const fn why_unshared(self) -> Option<Unshared> {
        if self.shares() {
            return None;
        }
        Some(match (self.0 >> Self::REASON) & 0b111 {
            0 => Unshared::Off,
            1 => Unshared::Exclusive,
            2 => Unshared::Precise,
            _ => Unshared::Kind,
        })
    }

    /// Returns whether the event may share a counter.
    #[inline]
    pub const fn shares(self) -> bool {
        self.0 & Self::UNSHARED == 0
    }

    /// Returns whether the event is sampled. `false` if it shares no counter.
    pub const fn samples(self) -> bool {
        self.0 & Self::SAMPLES != 0
    }

    /// Returns whether this is the key of an event that may share a counter and is not sampled.
    #[inline]
    pub const fn counts_only(self) -> bool {
        self.0 & (Self::UNSHARED | Self::SAMPLES) == 0
    }

    /// Returns this key with the mark of sampled events set to `samples`. The key of an event that
    /// shares no counter stays the same.
    #[must_use]
    pub const fn with_samples(self, samples: bool) -> Self {
        match samples && self.shares() {
            true => Self(self.0 | Self::SAMPLES),
            false => Self(self.0 & !Self::SAMPLES),
        }
    }

    /// Returns whether events with the two keys can share a counter: the keys are equal, except
    /// that one of the events may be sampled.
    #[inline]
    pub const fn is_equal(self, other: Self) -> bool {
        let both_sample = self.0 & other.0 & Self::SAMPLES != 0;
        (self.0 ^ other.0) & !Self::SAMPLES == 0 && self.shares() && !both_sample
    }

    /// Returns whether events with the two keys count the same, whether they can share a counter or
    /// not.
    pub const fn counts_same(self, other: Self) -> bool {
        const PLACES: u64 = Key::HOST | Key::GUEST;
        self.0 & PLACES != 0 && (self.0 ^ other.0) & (Self::SELECT | PLACES) == 0
    }

    /// Returns one bit: the same for equal keys, mostly another for different keys; 0 for the key
    /// of an event that shares no counter.
    #[inline]
    pub const fn bit(self) -> u64 {
        match self.shares() {
            false => 0,
            // CAST: cuts off all but the lower bits of the number, of which the shift takes six.
            true => 1u64.wrapping_shl(self.0.wrapping_shr(Self::BIT) as u32),
        }
    }

    /// Returns whether `keys` has the [bit](Self::bit) of this key, which is not that of an event
    /// that shares no counter.
    #[inline]
    pub const fn is_in(self, keys: u64) -> bool {
        // CAST: as in `bit()`.
        // The number of an event that shares no counter is 0, which no key's bit has.
        keys.wrapping_shr(self.0.wrapping_shr(Self::BIT) as u32) & 1 != 0
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    #[inline]
    pub fn can_ride_on(&self, other: &Self) -> bool {
        self.key.is_equal(other.key)
            && self.lbr_select.is_none()
            && self.requirement == other.requirement
            && self.constraint.is_equal(&other.constraint)
    }

    /// Returns why an event with this demand cannot ride on the counter of one with the demand
    /// `other`, although both count the same. [`None`] if it can ride, or the counts differ.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::model::{constraint::Constraint, demand::{Demand, Key, Unshared}};
    /// use logic::regs::{counter::CounterMask, event_select::EventSelect, global::CountsIn};
    ///
    /// let branches = |samples| Demand {
    ///     key: Key::new(EventSelect::event(0xc4, 0), CountsIn::EVERYWHERE, samples),
    ///     ..Constraint::any_of(CounterMask::first_gp(4)).into()
    /// };
    /// assert_eq!(branches(true).why_unshared(&branches(true)), Some(Unshared::Sampled));
    /// assert_eq!(branches(true).why_unshared(&branches(false)), None);
    /// ```
    pub fn why_unshared(&self, other: &Self) -> Option<Unshared> {
        if !self.key.counts_same(other.key) || self.requirement != other.requirement {
            return None;
        }
        let why = self.key.why_unshared().or(other.key.why_unshared());
        if why.is_none() && self.key.samples() && other.key.samples() {
            return Some(Unshared::Sampled);
        }
        why.or(self.lbr_select.map(|_| Unshared::Branches))
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

    #[test]
    fn reasons_why_events_share_no_counter() {
        let select = EventSelect::event(0xc4, 0);
        let event = |samples, why: Option<Unshared>| {
            let key = Key::new(select, CountsIn::EVERYWHERE, samples);
            Demand {
                key: why.map_or(key, |why| key.unshared(why)),
                ..Constraint::any_of(CounterMask::first_gp(4)).into()
            }
        };
        let (counts, samples) = (event(false, None), event(true, None));
        let reasons = [
            Unshared::Off,
            Unshared::Exclusive,
            Unshared::Precise,
            Unshared::Kind,
        ];
        // An event that shares no counter is not taken for one whose key has the bit 0.
        let keys = (0..4096)
            .map(|select| Key::new(EventSelect::from_bits(select), CountsIn::EVERYWHERE, false))
            .inspect(|key| assert!(key.is_in(key.bit()) && !key.is_in(!key.bit())))
            .fold(0, |keys, key| keys | key.bit());
        assert_eq!(keys, !1);
        for why in reasons {
            assert!(!event(true, Some(why)).key.is_in(keys), "{why:?}");
            let alone = event(true, Some(why));
            let key = alone.key;
            assert!(
                !key.shares() && !key.counts_only() && key.bit() == 0,
                "{why:?}"
            );
            assert!(!key.is_equal(key) && !counts.can_ride_on(&alone), "{why:?}");
            assert_eq!(alone.fingerprint(), 0, "{why:?}");
            assert_eq!(counts.why_unshared(&alone), Some(why));
            assert_eq!(alone.why_unshared(&samples), Some(why));
            assert_eq!(key.unshared(Unshared::Off), key);
            assert_eq!(key.with_samples(true), key);
        }
        assert_eq!(samples.why_unshared(&samples), Some(Unshared::Sampled));
        let branches = Demand {
            lbr_select: Some(1),
            ..samples
        };
        assert_eq!(branches.why_unshared(&counts), Some(Unshared::Branches));
        assert_eq!(counts.why_unshared(&branches), None);
        // These count something else.
        let other = Demand {
            key: Key::new(EventSelect::event(0xc5, 0), CountsIn::EVERYWHERE, true),
            ..samples
        };
        assert_eq!(samples.why_unshared(&other), None);
        let unknown = Demand {
            key: Key::NONE,
            ..samples
        };
        assert_eq!(unknown.why_unshared(&unknown), None);
    }
}
