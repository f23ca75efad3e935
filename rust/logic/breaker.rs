// SPDX-License-Identifier: GPL-2.0

//! The circuit breaker: the signs of a PMU that does not work, and the decision to give it up.
//!
//! ```text
//!         enough signs of a Cause, on any CPU
//!  closed ───────────────────────────────────► tripped, until the driver is loaded again
//! ```
//!
//! | Sign | Limit | Without a defect |
//! |---|---|---|
//! | an interrupt of a counter without an overflow | [`EMPTY_INTERRUPTS`] in a row, within [`WINDOW_MS`] | 1: an NMI that was pending while an earlier one handled its overflow |
//! | overflows that come without end, so that the PMU is reset | [`RESETS`] within [`WINDOW_MS`] | 0, except with [`Quirk::StatusSticks`], where the sign is ignored |
//! | an overflow that is set after such a reset | 1 | the same |
//! | an increment that the counter cannot have counted ([`is_plausible`]) | 1 | 0 |
//! | no occurrence of an event that [always occurs](always_occurs) in [`STILL_NS`] | 1 | 0 |
//! | a register that faults or holds no value as a CPU starts | 1 | 0 |
//!
//! A limit is ten times what a PMU without a defect shows, or more, or 1 if such a PMU never shows
//! the sign. Context: a [`Signs`] is a CPU's own, and each function of it is for one context of the
//! CPU. A [`Breaker`] may be used in any context, NMIs included.
//!
//! [`Quirk::StatusSticks`]: super::model::Quirk::StatusSticks

use core::{
    fmt,
    sync::atomic::{
        AtomicU64,
        Ordering::Relaxed, //
    },
};

use super::regs::{
    event_select::EventSelect,
    period::CounterWidth, //
};

/// The number of interrupts without an overflow, one after another, that trips the breaker.
pub const EMPTY_INTERRUPTS: u64 = 100;

/// The number of resets because of overflows without end that trips the breaker.
pub const RESETS: u64 = 10;

/// The milliseconds after which a series of signs begins anew.
pub const WINDOW_MS: u64 = 1000;

/// The nanoseconds on a counter in which an event that always occurs must have occurred.
pub const STILL_NS: u64 = 100_000_000;

/// The most occurrences of an event in a nanosecond: 16 at 4 GHz.
const OCCURRENCES_PER_NS: u64 = 64;

/// The reason why the breaker has tripped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Interrupts without overflows, one after another.
    Interrupts,
    /// Overflows that cannot be acknowledged.
    Overflows,
    /// A counter that ran backwards or jumped.
    Jump,
    /// A counter that does not count.
    Still,
    /// A register that faults or holds no value.
    Register,
}

impl Cause {
    const ALL: [Self; 5] = [
        Self::Interrupts,
        Self::Overflows,
        Self::Jump,
        Self::Still,
        Self::Register,
    ];

    /// Returns the number of the cause, from 1 on.
    const fn number(self) -> u64 {
        // CAST: the discriminants are below 5.
        self as u64 + 1
    }

    /// Returns the cause with this [number](Self::number).
    fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.number() == number)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupts => "counters raise interrupts without an overflow, one after another",
            Self::Overflows => "overflows of counters cannot be acknowledged",
            Self::Jump => "a counter ran backwards or jumped",
            Self::Still => "a counter of cycles or instructions does not count",
            Self::Register => "a register of the PMU faults or does not hold what is written to it",
        })
    }
}

/// The cause for which the breaker has tripped first, and the CPU that showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tripped {
    /// The cause.
    pub cause: Cause,
    /// The CPU that showed it.
    pub cpu: u32,
}

/// The breaker of a machine.
pub struct Breaker(
    /// 0, or the number of the cause in the low byte and the CPU above it.
    AtomicU64,
);

impl Breaker {
    const CAUSE_BITS: u32 = 8;
    const CAUSE: u64 = (1 << Self::CAUSE_BITS) - 1;

    /// Makes a breaker that has not tripped.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Trips the breaker, unless it has tripped already. Any context.
    pub fn trip(&self, cause: Cause, cpu: u32) {
        let word = u64::from(cpu).wrapping_shl(Self::CAUSE_BITS) | cause.number();
        // It fails if the breaker has tripped; the first cause is kept.
        let _ = self.0.compare_exchange(0, word, Relaxed, Relaxed);
    }

    /// Returns whether the breaker has tripped. Any context.
    #[inline]
    pub fn has_tripped(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// Returns the cause and the CPU if the breaker has tripped. Any context.
    pub fn tripped(&self) -> Option<Tripped> {
        let word = self.0.load(Relaxed);
        Some(Tripped {
            cause: Cause::from_number(word & Self::CAUSE)?,
            // CAST: `trip()` has stored a `u32` there.
            cpu: word.wrapping_shr(Self::CAUSE_BITS) as u32,
        })
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Self::new()
    }
}

/// A series of signs of one kind.
#[derive(Default)]
struct Series {
    length: AtomicU64,
    /// The time of the first sign, in milliseconds.
    began: AtomicU64,
    /// The length of the longest series so far.
    longest: AtomicU64,
}

impl Series {
    /// Adds a sign at the time `now`, in milliseconds. Returns whether the series is as long as
    /// `limit`.
    fn add(&self, now: u64, limit: u64) -> bool {
        let mut length = self.length.load(Relaxed);
        if length == 0 || now.wrapping_sub(self.began.load(Relaxed)) >= WINDOW_MS {
            self.began.store(now, Relaxed);
            length = 0;
        }
        length = length.saturating_add(1);
        self.length.store(length, Relaxed);
        self.longest
            .store(self.longest.load(Relaxed).max(length), Relaxed);
        length >= limit
    }

    #[inline]
    fn end(&self) {
        self.length.store(0, Relaxed);
    }
}

/// The signs that a CPU shows.
#[derive(Default)]
pub struct Signs {
    empty_interrupts: Series,
    resets: Series,
}

impl Signs {
    /// Records that an interrupt has handled an overflow. In an NMI.
    #[inline]
    pub fn handled(&self) {
        self.empty_interrupts.end();
    }

    /// Records an interrupt of a counter without an overflow, at the time `now`, in milliseconds.
    /// Returns the cause if this is one too many. In an NMI.
    pub fn empty_interrupt(&self, now: u64) -> Option<Cause> {
        let too_many = self.empty_interrupts.add(now, EMPTY_INTERRUPTS);
        too_many.then_some(Cause::Interrupts)
    }

    /// Records a reset of the PMU because of overflows without end, at the time `now`, in
    /// milliseconds. `is_clear` is set if no overflow is set after it. Returns the cause to trip
    /// the breaker, if any. With the PMU disabled, not in an NMI.
    pub fn reset(&self, now: u64, is_clear: bool) -> Option<Cause> {
        let too_many = self.resets.add(now, RESETS);
        (too_many || !is_clear).then_some(Cause::Overflows)
    }

    /// Returns the longest series of interrupts without an overflow, and the most resets within a
    /// window. Any context.
    pub fn longest(&self) -> (u64, u64) {
        let longest = |series: &Series| series.longest.load(Relaxed);
        (longest(&self.empty_interrupts), longest(&self.resets))
    }
}

/// Returns whether `delta` occurrences between two readings of a counter are common: some, and not
/// so many that [`is_plausible`] must look at them. In one comparison, for the hot path.
#[inline(always)]
pub const fn is_common(delta: u64, width: CounterWidth) -> bool {
    width.is_positive(delta)
}

/// Returns whether an event that has spent `running` nanoseconds on counters can have occurred
/// `delta` times between two readings of a counter. A counter that has run backwards by a little
/// seems to have counted almost 2^width occurrences.
///
/// A counter raises an interrupt after half of its range, so more than that can only be a few
/// occurrences before the interrupt.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::breaker::is_plausible;
/// use logic::regs::period::CounterWidth;
///
/// let width = CounterWidth::new(48).unwrap();
/// let (second, day) = (1_000_000_000, 86_400_000_000_000);
/// assert!(is_plausible(1 << 30, second, width));
/// assert!(is_plausible((1 << 47) + 5, day, width));
/// assert!(!is_plausible((1 << 47) + 5, second, width));
/// assert!(!is_plausible(width.delta(1000, 990), day, width));
/// ```
pub const fn is_plausible(delta: u64, running: u64, width: CounterWidth) -> bool {
    let half = width.mask() >> 1;
    if delta <= half {
        return true;
    }
    delta <= half.saturating_add(half >> 3) && delta <= running.saturating_mul(OCCURRENCES_PER_NS)
}

/// Returns whether the event with this select must occur wherever the driver's own code runs: it
/// counts cycles or instructions of the kernel, all of them. `is_amd` is set for AMD's PMUs.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::breaker::always_occurs;
/// use logic::regs::event_select::EventSelect;
///
/// let instructions = EventSelect::from_bits(EventSelect::OS | 0xc0);
/// assert!(always_occurs(instructions, false));
/// assert!(!always_occurs(EventSelect::from_bits(EventSelect::USR | 0xc0), false));
/// assert!(!always_occurs(EventSelect::from_bits(EventSelect::OS | 0x1c0), true));
/// ```
pub const fn always_occurs(select: EventSelect, is_amd: bool) -> bool {
    const INSTRUCTIONS: u64 = 0xc0;
    const CYCLES: u64 = 0x3c;
    const AMD_CYCLES: u64 = 0x76;
    // The driver clears HOST_ONLY where it would keep the event from counting.
    const IRRELEVANT: u64 =
        EventSelect::USR | EventSelect::INT | EventSelect::ENABLE | EventSelect::HOST_ONLY;
    let cycles = if is_amd { AMD_CYCLES } else { CYCLES };
    let event = select.bits() & !IRRELEVANT;
    event == EventSelect::OS | INSTRUCTIONS || event == EventSelect::OS | cycles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_is_kept() {
        let breaker = Breaker::new();
        assert!(!breaker.has_tripped());
        assert_eq!(breaker.tripped(), None);
        for (number, cause) in Cause::ALL.into_iter().enumerate() {
            let breaker = Breaker::new();
            let cpu = u32::MAX - number as u32;
            breaker.trip(cause, cpu);
            breaker.trip(Cause::Jump, 1);
            assert!(breaker.has_tripped());
            assert_eq!(breaker.tripped(), Some(Tripped { cause, cpu }));
        }
    }

    #[test]
    fn empty_interrupts_trip_in_a_row_only() {
        let signs = Signs::default();
        for _ in 0..1000 {
            for _ in 1..EMPTY_INTERRUPTS {
                assert_eq!(signs.empty_interrupt(7), None);
            }
            signs.handled();
        }
        for _ in 1..EMPTY_INTERRUPTS {
            assert_eq!(signs.empty_interrupt(7), None);
        }
        assert_eq!(signs.empty_interrupt(7), Some(Cause::Interrupts));
        assert_eq!(signs.empty_interrupt(7), Some(Cause::Interrupts));
        assert_eq!(signs.longest(), (EMPTY_INTERRUPTS + 1, 0));
    }

    #[test]
    fn rare_signs_do_not_trip() {
        let signs = Signs::default();
        for now in 0..100 * WINDOW_MS {
            if now % (WINDOW_MS / (RESETS - 1) + 1) == 0 {
                assert_eq!(signs.reset(now, true), None, "{now}");
            }
            if now % 11 == 0 {
                assert_eq!(signs.empty_interrupt(now), None, "{now}");
            }
        }
    }

    #[test]
    fn resets_trip() {
        let signs = Signs::default();
        for now in 1..RESETS {
            assert_eq!(signs.reset(now, true), None);
        }
        assert_eq!(signs.reset(RESETS, true), Some(Cause::Overflows));
        let signs = Signs::default();
        assert_eq!(signs.reset(0, false), Some(Cause::Overflows));
        assert_eq!(signs.longest(), (0, 1));
    }

    #[test]
    fn common_increments_are_plausible() {
        for bits in [32, 40, 44, 48] {
            let Some(width) = CounterWidth::new(bits) else {
                continue;
            };
            let half = width.mask() >> 1;
            assert!(!is_common(0, width));
            assert!(is_common(1, width));
            assert!(is_common(half, width));
            assert!(!is_common(half + 1, width));
            assert!(!is_common(width.mask(), width));
            for delta in [0, 1, half] {
                assert!(is_plausible(delta, 0, width));
            }
            let year = 31_536_000_000_000_000;
            assert!(is_plausible(half + 1000, year, width));
            assert!(!is_plausible(width.mask(), year, width));
            assert!(!is_plausible(width.mask() - (half >> 1), year, width));
        }
    }

    #[test]
    fn events_that_always_occur() {
        let select = |bits| EventSelect::from_bits(bits);
        for levels in [EventSelect::OS, EventSelect::OS | EventSelect::USR] {
            for (code, intel, amd) in [
                (0xc0, true, true),
                (0x3c, true, false),
                (0x76, false, true),
                (0x13c, false, false),
                (0xc4, false, false),
            ] {
                assert_eq!(always_occurs(select(levels | code), false), intel);
                assert_eq!(always_occurs(select(levels | code), true), amd);
                for filter in [
                    EventSelect::INV,
                    1 << 24,
                    EventSelect::EDGE,
                    EventSelect::IN_TX,
                ] {
                    assert!(!always_occurs(select(levels | code | filter), false));
                }
                let guest = EventSelect::GUEST_ONLY | levels | code;
                assert!(!always_occurs(select(guest), true));
            }
        }
    }
}
