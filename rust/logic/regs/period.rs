// SPDX-License-Identifier: GPL-2.0

//! Arithmetic on counter values and sample periods.
//!
//! A counter counts up and overflows to 0. To overflow after `left` events it starts at `-left`.
//! Counting events do the same with the longest possible period, so that every wrap of their
//! counters is seen. Units: occurrences of the event.
//!
//! Any context, NMI included: the module only contains wrapping integer arithmetic.

use super::event_select::EventSelect;

/// Width of the counters in bits, and arithmetic modulo that width.
///
/// # Invariants
///
/// The width is from 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterWidth(u8);

impl CounterWidth {
    /// Makes a width of `bits`; `None` for 0 or more than 64.
    pub const fn new(bits: u8) -> Option<Self> {
        if bits == 0 || bits > 64 {
            None
        } else {
            // INVARIANT: the width has just been checked.
            Some(Self(bits))
        }
    }

    /// Returns the width in bits (`pmc_width` in the user page).
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the mask of all values of a counter (`cntval_mask`).
    pub const fn mask(self) -> u64 {
        u64::MAX.wrapping_shr(64u32.wrapping_sub(self.0 as u32))
    }

    /// Returns the number of events between two readings of a counter.
    ///
    /// The counter may have wrapped once in between. Bits above the width are ignored, because not
    /// all hardware sign-extends there. Mainline: `x86_perf_event_update()`,
    /// `arch/x86/events/core.c`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::regs::period::CounterWidth;
    ///
    /// let width = CounterWidth::new(48).unwrap();
    /// // From five before the overflow to three after it.
    /// assert_eq!(width.delta(-5i64 as u64, 3), 8);
    /// ```
    pub const fn delta(self, previous: u64, now: u64) -> u64 {
        now.wrapping_sub(previous) & self.mask()
    }

    /// Sign-extends a counter's value: it is negative until the overflow.
    ///
    /// User space sign-extends what `rdpmc` returns in the same way (`pmc_width`), and adds the
    /// `offset` of the mmap page, which the perf core computes from `hw.prev_count`. That has to be
    /// sign-extended, too.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::regs::period::CounterWidth;
    ///
    /// let width = CounterWidth::new(48).unwrap();
    /// assert_eq!(width.sign_extend(0xffff_ffff_fffe), -2);
    /// assert_eq!(width.sign_extend(7), 7);
    /// ```
    pub const fn sign_extend(self, value: u64) -> i64 {
        let above = 64u32.wrapping_sub(self.0 as u32);
        (value.wrapping_shl(above) as i64).wrapping_shr(above)
    }

    /// Returns whether a counter's [sign-extended](Self::sign_extend) value is above 0.
    pub const fn is_positive(self, value: u64) -> bool {
        value.wrapping_shl(64u32.wrapping_sub(self.0 as u32)) as i64 > 0
    }

    /// Returns the value to remember for a counter that was written with `value`. `remembered` is
    /// the previous one.
    ///
    /// The bits above the width number the writes, so that two successive writes of the same value
    /// differ. [`delta`](Self::delta) ignores these bits. The number wraps, and a width of 64
    /// leaves no room for it.
    pub const fn remember_written(self, remembered: u64, value: u64) -> u64 {
        // With all bits of the width set, adding 1 carries into the bits above.
        (remembered | self.mask()).wrapping_add(1) | (value & self.mask())
    }

    /// Returns the value to remember for a counter that was read as `now`. `remembered` is the
    /// previous one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::regs::period::CounterWidth;
    ///
    /// let width = CounterWidth::new(48).unwrap();
    /// let first = width.remember_written(0, 5);
    /// let later = width.remember_read(first, 9);
    /// assert_eq!(width.delta(first, later), 4);
    ///
    /// // The counter reads 5 again, but the value shows that it was written in between.
    /// let second = width.remember_written(later, 5);
    /// assert_ne!(first, second);
    /// assert_eq!(width.delta(first, second), 0);
    /// ```
    pub const fn remember_read(self, remembered: u64, now: u64) -> u64 {
        (remembered & !self.mask()) | (now & self.mask())
    }
}

/// A model's limits of sample periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodRule {
    /// Shortest period of any event.
    shortest: i64,
    /// Shortest period of INST_RETIRED.ALL (0x01c0).
    shortest_inst_retired_all: i64,
    /// Periods of INST_RETIRED.ALL have to be a multiple of this power of two.
    multiple_inst_retired_all: i64,
    /// Shortest period of events with a `precise_ip` of 3; 0 if the limits above hold for these,
    /// too.
    shortest_evenly: i64,
}

impl PeriodRule {
    /// No limits beyond those of [`PeriodLimits::start`] on every model: at least 2, and at most
    /// `max_period`.
    pub const NONE: Self = Self {
        shortest: 0,
        shortest_inst_retired_all: 0,
        multiple_inst_retired_all: 1,
        shortest_evenly: 0,
    };

    /// Every period is at least 32; Westmere has no such limit. Mainline: `nhm_limit_period()`,
    /// `arch/x86/events/intel/core.c`.
    pub const NEHALEM: Self = Self {
        shortest: 32,
        shortest_inst_retired_all: 32,
        multiple_inst_retired_all: 1,
        shortest_evenly: 0,
    };

    /// INST_RETIRED.ALL needs a period of more than 100 (erratum HSW11), here of 128. With periods
    /// below 32, two counters that overflow in the same NMI can keep the CPU in its handler.
    /// Mainline: `hsw_limit_period()`, `arch/x86/events/intel/core.c`.
    pub const HASWELL: Self = Self {
        shortest: 32,
        shortest_inst_retired_all: 128,
        multiple_inst_retired_all: 1,
        shortest_evenly: 0,
    };

    /// INST_RETIRED.ALL needs a period of more than 100 (erratum BDM11) with the six lowest bits
    /// clear (BDM55). The low bits that are cut off stay in `hw.period_left`, and the counter is
    /// started once more for them: single periods vary, but their average is the requested one.
    /// Mainline: `bdw_limit_period()`, `arch/x86/events/intel/core.c`.
    pub const BROADWELL: Self = Self {
        shortest: 0,
        shortest_inst_retired_all: 128,
        multiple_inst_retired_all: 64,
        shortest_evenly: 0,
    };

    /// Events with a `precise_ip` of 3, whose samples are evenly distributed over instructions,
    /// need a period of at least 128. Mainline: `glc_limit_period()`,
    /// `arch/x86/events/intel/core.c`.
    pub const GOLDEN_COVE: Self = Self {
        shortest_evenly: 128,
        ..Self::NONE
    };

    /// Returns the rule for events with this `precise_ip`.
    #[inline]
    const fn for_precision(self, precise_ip: u8) -> Self {
        if precise_ip < 3 || self.shortest_evenly == 0 {
            return self;
        }
        Self {
            shortest: self.shortest_evenly,
            shortest_inst_retired_all: self.shortest_evenly,
            ..self
        }
    }

    /// Returns the period with which a counter of the event `select` is started for `left` more
    /// occurrences: at least the rule's shortest, and rounded down to its multiple.
    pub const fn apply(self, select: EventSelect, left: i64) -> i64 {
        let (shortest, multiple) = if select.code() == 0x01c0 {
            (
                self.shortest_inst_retired_all,
                self.multiple_inst_retired_all,
            )
        } else {
            (self.shortest, 1)
        };
        let left = if left < shortest { shortest } else { left };
        left & multiple.wrapping_neg()
    }
}

/// The limits of the periods with which a PMU's counters are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodLimits {
    /// The counters' width.
    pub width: CounterWidth,
    /// Longest period with which a counter is started: 2^(width - 1) - 1, or 2^31 - 1 if only 32
    /// bits of counters can be written; less if the module parameter `max_period` is less.
    pub max_period: u64,
    /// The model's rule.
    pub rule: PeriodRule,
}

/// The start value of a counter, and the state of the event's period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Value for the counter register, truncated to the counter's width.
    pub value: u64,
    /// The sign-extended start value: minus the period with which the counter starts.
    pub previous: u64,
    /// Events left of this period (`hw.period_left`). The counter may be started for fewer
    /// (`max_period`, rounding) or for more (the shortest period).
    pub left: i64,
    /// Set if a period was complete and the next one has begun: in a PMI, a sample is due. The new
    /// period becomes the event's `last_period`.
    pub expired: bool,
}

impl PeriodLimits {
    /// Returns the start value of a counter for an event with this `period` (`hw.sample_period`, or
    /// a random one), of which `left` occurrences remain (mostly `hw.period_left`). `left` is 0 or
    /// less if the period is over.
    ///
    /// Mainline: `x86_perf_event_set_period()`, `arch/x86/events/core.c`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::regs::event_select::EventSelect;
    /// use logic::regs::period::{CounterWidth, PeriodLimits, PeriodRule};
    ///
    /// let limits = PeriodLimits {
    ///     width: CounterWidth::new(48).unwrap(),
    ///     max_period: (1 << 47) - 1,
    ///     rule: PeriodRule::NONE,
    /// };
    /// let cycles = EventSelect::event(0x3c, 0x00);
    ///
    /// // Three events late: the next period is shorter by them.
    /// let start = limits.start(cycles, 1000, -3);
    /// assert_eq!(start.left, 997);
    /// assert_eq!(start.value, 0xffff_ffff_fc1b);
    /// assert!(start.expired);
    /// ```
    pub const fn start(&self, select: EventSelect, period: u64, left: i64) -> Start {
        // The perf core refuses periods with bit 63 set (kernel/events/core.c).
        let period = period as i64;
        let mut left = left;
        let mut expired = false;
        if Self::is_over(left) {
            // A whole period late, or more: do not try to catch up.
            if left <= period.wrapping_neg() {
                left = period;
            } else {
                left = left.wrapping_add(period);
            }
            expired = true;
        }
        // Some CPUs misbehave with a single event left.
        let mut programmed = if left < 2 { 2 } else { left };
        if programmed as u64 > self.max_period {
            programmed = self.max_period as i64;
        }
        programmed = self.rule.apply(select, programmed);
        let previous = programmed.wrapping_neg() as u64;
        Start {
            value: previous & self.width.mask(),
            previous,
            left,
            expired,
        }
    }

    /// Returns the limits for events with this `precise_ip`.
    #[inline]
    pub const fn for_precision(&self, precise_ip: u8) -> Self {
        Self {
            rule: self.rule.for_precision(precise_ip),
            ..*self
        }
    }

    /// Returns whether a period with `left` remaining events is over, so that
    /// [`start`](Self::start) begins the next.
    #[inline]
    pub const fn is_over(left: i64) -> bool {
        left <= 0
    }

    /// Returns whether `period`, as a fixed sample period, is shorter than the model allows.
    /// `perf_event_open()` and the period ioctl refuse such periods (`x86_pmu_hw_config()`,
    /// `x86_pmu_check_period()`, `arch/x86/events/core.c`).
    pub const fn is_too_short(&self, select: EventSelect, period: u64) -> bool {
        let period = period as i64;
        self.rule.apply(select, period) > period
    }
}

#[cfg(test)]
mod tests;
