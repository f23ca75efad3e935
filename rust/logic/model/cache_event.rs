// SPDX-License-Identifier: GPL-2.0

//! Generic cache events: `PERF_TYPE_HW_CACHE`.
//!
//! An id consists of a cache, an operation on it and its result. A model's table maps it to an
//! event select and, for requests that leave the core, to a value for the offcore response
//! register.

use crate::logic::regs::event_select::EventSelect;

/// The cache that is accessed (`perf_hw_cache_id`, `include/uapi/linux/perf_event.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cache {
    /// First-level data cache.
    L1d = 0,
    /// First-level instruction cache.
    L1i = 1,
    /// Last-level cache.
    LastLevel = 2,
    /// Data TLB.
    Dtlb = 3,
    /// Instruction TLB.
    Itlb = 4,
    /// Branch prediction unit.
    Branch = 5,
    /// Local memory; a miss is an access to another node.
    Node = 6,
}

/// The operation (`perf_hw_cache_op_id`).
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

/// The outcome of the operation (`perf_hw_cache_op_result_id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// All accesses, hits and misses.
    Access = 0,
    /// Misses only.
    Miss = 1,
}

/// The id of a generic cache event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheId {
    /// The cache.
    pub cache: Cache,
    /// The operation.
    pub operation: Operation,
    /// The result.
    pub outcome: Outcome,
}

impl CacheId {
    /// Decodes the id from the three low bytes of attr.config; `None` if one of them is out of
    /// range. Mainline: `set_ext_hw_attr()`, `arch/x86/events/core.c`.
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

    /// Returns the attr.config of the id.
    pub const fn config(self) -> u64 {
        self.cache as u64 | ((self.operation as u64) << 8) | ((self.outcome as u64) << 16)
    }

    /// Returns whether no CPU can have the event: a write to the instruction cache, or a write to
    /// or a prefetch into the instruction TLB or the branch prediction unit.
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

/// An entry of a model's table: an id and its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheEvent {
    id: CacheId,
    /// `None` if the id makes no sense on this model.
    select: Option<EventSelect>,
    config1: u64,
}

impl CacheEvent {
    /// Maps an id to the event `config`.
    pub const fn new(cache: Cache, operation: Operation, outcome: Outcome, config: u64) -> Self {
        assert!(config != 0, "an id without an event");
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

    /// Adds a value for the offcore response register.
    pub const fn offcore(mut self, config1: u64) -> Self {
        self.config1 = config1;
        self
    }

    /// Marks an id that makes no sense on this model.
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

/// The reason why a cache event's config has no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCacheEvent {
    /// The cache, the operation or the result does not exist. EINVAL.
    NoSuchId,
    /// The combination makes no sense on this CPU. EINVAL.
    Impossible,
    /// This CPU does not have the event. ENOENT.
    Absent,
    /// The offcore response register of this CPU does not have the value's bits. EINVAL.
    ExtraRegister,
}

impl CacheEvents {
    /// The table of models without cache events: every id is absent.
    pub const NONE: Self = Self {
        events: &[],
        changes: &[],
    };

    /// Builds a table and checks, at compile time, that no id is in it twice.
    ///
    /// # Panics
    ///
    /// If an id is in the table twice; so call it in a constant.
    pub const fn checked(events: &'static [CacheEvent]) -> Self {
        assert_unique(events);
        Self {
            events,
            changes: &[],
        }
    }

    /// Replaces the events of the ids in `changes`.
    ///
    /// # Panics
    ///
    /// If an id is in `changes` twice, or the table already has changes.
    #[must_use]
    pub const fn with(mut self, changes: &'static [CacheEvent]) -> Self {
        assert!(self.changes.is_empty(), "changes upon changes");
        assert_unique(changes);
        self.changes = changes;
        self
    }

    /// Returns the event select of a cache event, without privilege levels, and its value for the
    /// offcore response register.
    ///
    /// # Errors
    ///
    /// [`NoCacheEvent::Impossible`] or [`NoCacheEvent::Absent`].
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
