// SPDX-License-Identifier: GPL-2.0

//! Generic cache events: `PERF_TYPE_HW_CACHE`.
//!
//! An id names a cache, an operation on it and its result. What event that is, a model's table
//! says; an event that asks beyond the core needs a value for the offcore response register too.

use crate::logic::regs::event_select::EventSelect;

/// What is accessed: `perf_hw_cache_id` of `include/uapi/linux/perf_event.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cache {
    /// First level data cache.
    L1d = 0,
    /// First level instruction cache.
    L1i = 1,
    /// Last level cache.
    LastLevel = 2,
    /// Data TLB.
    Dtlb = 3,
    /// Instruction TLB.
    Itlb = 4,
    /// Branch prediction unit.
    Branch = 5,
    /// Memory; a miss goes to another node.
    Node = 6,
}

/// How it is accessed: `perf_hw_cache_op_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// A load.
    Read = 0,
    /// A store.
    Write = 1,
    /// A prefetch.
    Prefetch = 2,
}

/// What comes of it: `perf_hw_cache_op_result_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// Whatever comes of it.
    Access = 0,
    /// It is not there.
    Miss = 1,
}

/// A generic cache event's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheId {
    /// What.
    pub cache: Cache,
    /// How.
    pub operation: Operation,
    /// With what result.
    pub outcome: Outcome,
}

impl CacheId {
    /// The id in `attr.config`: one byte each, the rest is ignored; `None` where there is no such
    /// id. Mainline: `set_ext_hw_attr()`, `arch/x86/events/core.c:376`.
    pub const fn from_config(config: u64) -> Option<Self> {
        let [cache, operation, outcome, ..] = config.to_le_bytes();
        let cache = match cache {
            0 => Cache::L1d,
            1 => Cache::L1i,
            2 => Cache::LastLevel,
            3 => Cache::Dtlb,
            4 => Cache::Itlb,
            5 => Cache::Branch,
            6 => Cache::Node,
            _ => return None,
        };
        let operation = match operation {
            0 => Operation::Read,
            1 => Operation::Write,
            2 => Operation::Prefetch,
            _ => return None,
        };
        let outcome = match outcome {
            0 => Outcome::Access,
            1 => Outcome::Miss,
            _ => return None,
        };
        Some(Self {
            cache,
            operation,
            outcome,
        })
    }

    /// The `attr.config` of the id.
    pub const fn config(self) -> u64 {
        self.cache as u64 | ((self.operation as u64) << 8) | ((self.outcome as u64) << 16)
    }

    /// Whether there can be no such thing on any CPU: writing code, or prefetching a translation
    /// of it, or doing either to a branch prediction.
    const fn is_impossible(self) -> bool {
        matches!(
            (self.cache, self.operation),
            (Cache::L1i, Operation::Write)
                | (
                    Cache::Itlb | Cache::Branch,
                    Operation::Write | Operation::Prefetch
                )
        )
    }
}

/// One line of a model's table: this id, this event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheEvent {
    id: CacheId,
    /// `None` where the model says that there can be no such thing.
    select: Option<EventSelect>,
    config1: u64,
}

impl CacheEvent {
    /// The id is the event `config`.
    pub const fn new(cache: Cache, operation: Operation, outcome: Outcome, config: u64) -> Self {
        assert!(config != 0, "an event that is none");
        Self {
            id: CacheId {
                cache,
                operation,
                outcome,
            },
            select: Some(EventSelect::from_bits(config)),
            config1: 0,
        }
    }

    /// The same with `config1` in the offcore response register.
    pub const fn offcore(mut self, config1: u64) -> Self {
        self.config1 = config1;
        self
    }

    /// The id makes no sense on this model.
    pub const fn impossible(cache: Cache, operation: Operation, outcome: Outcome) -> Self {
        let mut this = Self::new(cache, operation, outcome, 1);
        this.select = None;
        this
    }
}

/// A model's cache events.
#[derive(Clone, Copy, Debug)]
pub struct CacheEvents {
    events: &'static [CacheEvent],
    changes: &'static [CacheEvent],
}

/// Why there is no event for a cache event's config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCacheEvent {
    /// No such cache, operation or result. EINVAL.
    NoSuchId,
    /// It makes no sense on this CPU. EINVAL.
    Impossible,
    /// This CPU does not count it. ENOENT.
    Absent,
    /// The offcore response register of this CPU does not take the value. EINVAL.
    ExtraRegister,
}

impl CacheEvents {
    /// For models without a table: every id is absent.
    pub const NONE: Self = Self {
        events: &[],
        changes: &[],
    };

    /// The table, if no id is in it twice. A wrong one does not compile.
    ///
    /// # Panics
    ///
    /// When the table is wrong; so call it in a constant.
    pub const fn checked(events: &'static [CacheEvent]) -> Self {
        assert_unique(events);
        Self {
            events,
            changes: &[],
        }
    }

    /// The same table with other events for the ids in `changes`.
    ///
    /// # Panics
    ///
    /// When an id is in there twice, or the table has changes already.
    #[must_use]
    pub const fn with(mut self, changes: &'static [CacheEvent]) -> Self {
        assert!(self.changes.is_empty(), "changes upon changes");
        assert_unique(changes);
        self.changes = changes;
        self
    }

    /// The event select, without privilege levels, and the offcore response register's value of
    /// the cache event `id`.
    ///
    /// # Errors
    ///
    /// `Impossible` or `Absent`.
    pub fn get(&self, id: CacheId) -> Result<(EventSelect, u64), NoCacheEvent> {
        if self.events.is_empty() {
            return Err(NoCacheEvent::Absent);
        }
        let mut lines = self.changes.iter().chain(self.events);
        match lines.find(|line| line.id == id) {
            Some(line) => match line.select {
                Some(select) => Ok((select, line.config1)),
                None => Err(NoCacheEvent::Impossible),
            },
            None if id.is_impossible() => Err(NoCacheEvent::Impossible),
            None => Err(NoCacheEvent::Absent),
        }
    }
}

const fn assert_unique(events: &[CacheEvent]) {
    let mut i = 0;
    while i < events.len() {
        let mut j = 0;
        while j < i {
            let same = events[i].id.config() == events[j].id.config();
            assert!(!same, "a cache event twice");
            j += 1;
        }
        i += 1;
    }
}

#[cfg(test)]
mod tests;
