// SPDX-License-Identifier: GPL-2.0

//! The branch stack of a sample: the recorded branches that its event requests.
//!
//! Context: any, NMIs included.

use super::{
    filter::{
        Kinds,
        Request, //
    },
    record::{
        Branch,
        Flags, //
    },
    MAX_BRANCHES, //
};

/// A branch in the perf core's format (`struct perf_branch_entry`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The address of the branch.
    pub from: u64,
    /// The address of its target.
    pub to: u64,
    /// Flags, cycles and type.
    pub flags: u64,
}

/// The kinds of branches by their number in LBR_INFO (SDM volume 3, table 18-3).
pub const ARCH_TYPES: [Kinds; 6] = [
    Kinds::CONDITIONAL,
    Kinds::INDIRECT_JUMP,
    Kinds::JUMP,
    Kinds::INDIRECT_CALL,
    Kinds::CALL,
    Kinds::RETURN,
];

/// The number of each kind in an entry (`PERF_BR_*`). Other kinds have the number 0.
///
/// Mainline: `branch_map`, `arch/x86/events/utils.c`.
const TYPES: [(Kinds, u64); 11] = [
    (Kinds::CALL, 4),
    (Kinds::RETURN, 6),
    (Kinds::SYSCALL, 7),
    (Kinds::SYSRET, 8),
    (Kinds::IRET, 11),
    (Kinds::CONDITIONAL, 1),
    (Kinds::JUMP, 2),
    (Kinds::IRQ, 12),
    (Kinds::INDIRECT_CALL, 5),
    (Kinds::ZERO_CALL, 4),
    (Kinds::INDIRECT_JUMP, 3),
];

/// Returns the number of `kind` in an entry.
fn type_number(kind: Kinds) -> u64 {
    let known = TYPES.iter().find(|(it, _)| kind.contains(*it));
    known.map_or(0, |(_, number)| *number)
}

/// Returns whether an address belongs to the kernel.
const fn is_kernel(address: u64) -> bool {
    address >> 63 != 0
}

/// The branches that the records contained at one moment, the latest first.
#[derive(Clone, Copy, Debug)]
pub struct Branches {
    branches: [Branch; MAX_BRANCHES],
    /// The kind of each branch, once it is known.
    kinds: [Option<Kinds>; MAX_BRANCHES],
    len: usize,
}

impl Branches {
    /// No branch.
    pub const NONE: Self = Self {
        branches: [Branch {
            from: 0,
            to: 0,
            flags: Flags::NONE,
            arch_type: None,
        }; MAX_BRANCHES],
        kinds: [None; MAX_BRANCHES],
        len: 0,
    };

    /// Forgets all branches.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds an older branch. Does nothing beyond [`MAX_BRANCHES`].
    #[inline]
    pub fn push(&mut self, branch: Branch) {
        self.push_known(branch, None);
    }

    /// Adds an older branch whose kind is known, with the privilege level of its target.
    /// Pass [`Kinds::NONE`] if it is unknown.
    pub fn push_classified(&mut self, branch: Branch, kind: Kinds) {
        self.push_known(branch, Some(kind));
    }

    #[inline]
    fn push_known(&mut self, branch: Branch, kind: Option<Kinds>) {
        let slots = self.branches.get_mut(self.len);
        if let Some((slot, known)) = slots.zip(self.kinds.get_mut(self.len)) {
            *slot = branch;
            *known = kind;
            self.len = self.len.wrapping_add(1);
        }
    }

    /// Returns the addresses of the latest branch and of its target, if there is a branch.
    pub fn latest(&self) -> Option<(u64, u64)> {
        let latest = self.branches.first().filter(|_| self.len > 0)?;
        Some((latest.from, latest.to))
    }

    /// Removes the branch that was added last.
    pub fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
    }

    /// Returns the entries for the branches in `request`.
    ///
    /// `classify` returns the kind of a branch with the privilege level of its target;
    /// [`Kinds::NONE`] if it is unknown. It is called at most once for each branch, whatever the
    /// number of requests. Mainline: `intel_pmu_lbr_filter()`, `arch/x86/events/intel/lbr.c`, which
    /// only knows the filter of the event that was added last.
    pub fn select<'a>(
        &'a mut self,
        request: &'a Request,
        mut classify: impl FnMut(&Branch) -> Kinds + 'a,
    ) -> impl Iterator<Item = Entry> + 'a {
        let whole = request.kinds.is_all() && !request.saves_type;
        let all = self
            .branches
            .iter()
            .zip(self.kinds.iter_mut())
            .take(self.len);
        all.filter_map(move |(branch, known)| {
            if whole {
                return Some(entry(branch, request, Kinds::NONE));
            }
            let kind = *known.get_or_insert_with(|| kind_of(branch, &mut classify));
            is_requested(branch, kind, request.kinds).then(|| entry(branch, request, kind))
        })
    }
}

/// Returns the kind of `branch`, which the processor may have recorded.
fn kind_of(branch: &Branch, classify: &mut impl FnMut(&Branch) -> Kinds) -> Kinds {
    let recorded = branch
        .arch_type
        .and_then(|it| ARCH_TYPES.get(usize::from(it)));
    match recorded {
        Some(kind) if is_kernel(branch.to) => kind.or(Kinds::KERNEL),
        Some(kind) => kind.or(Kinds::USER),
        None => classify(branch),
    }
}

/// Returns whether a branch of `kind` is among the `requested` ones.
fn is_requested(branch: &Branch, mut kind: Kinds, requested: Kinds) -> bool {
    if kind == Kinds::NONE {
        return false;
    }
    if requested.selects_by_tx() {
        kind = kind.or(if branch.flags.has(Flags::IN_TX) {
            Kinds::IN_TX
        } else {
            Kinds::NO_TX
        });
    }
    // Do not show a branch's kernel address to users who may not see it.
    requested.contains(kind) && (requested.contains(Kinds::KERNEL) || !is_kernel(branch.from))
}

#[inline]
fn entry(branch: &Branch, request: &Request, kind: Kinds) -> Entry {
    let flags = if request.bare {
        branch.flags.bare()
    } else {
        branch.flags
    };
    let kind = if request.saves_type {
        type_number(kind) << 20
    } else {
        0
    };
    Entry {
        from: branch.from,
        to: branch.to,
        flags: flags.bits() | kind,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        filter::sample_type as st,
        record::{
            Format,
            Speculation, //
        },
        Filter,
        Lbr, //
    };
    use super::*;
    use crate::logic::model::LbrFilter;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;

    fn request(requested: u64) -> Request {
        let lbr = Lbr {
            depth: 16,
            format: Format::Flags,
            filter: Filter::Select(LbrFilter::Haswell),
        };
        lbr.request(requested).unwrap()
    }

    fn branch(from: u64, to: u64) -> Branch {
        Branch {
            from,
            to,
            flags: Flags::PREDICTED,
            ..Branch::default()
        }
    }

    /// A call, a conditional branch, a system call, one that cannot be classified, and a return to
    /// user mode.
    fn some() -> Branches {
        let mut branches = Branches::NONE;
        for (from, to) in [(1, 10), (2, 20), (3, KERNEL), (4, 40), (KERNEL, 50)] {
            branches.push(branch(from, to));
        }
        branches
    }

    fn classify(branch: &Branch) -> Kinds {
        match branch.from {
            1 => Kinds::CALL.or(Kinds::USER),
            2 => Kinds::CONDITIONAL.or(Kinds::USER),
            3 => Kinds::SYSCALL.or(Kinds::KERNEL),
            KERNEL => Kinds::SYSRET.or(Kinds::USER),
            _ => Kinds::NONE,
        }
    }

    fn from(requested: u64) -> Vec<u64> {
        let request = request(requested);
        some()
            .select(&request, classify)
            .map(|it| it.from)
            .collect()
    }

    #[test]
    fn only_requested() {
        assert_eq!(from(st::ANY | st::USER), [1, 2]);
        assert_eq!(from(st::COND | st::USER), [2]);
        assert_eq!(from(st::ANY_CALL | st::USER | st::KERNEL), [1, 3]);
        assert_eq!(from(st::ANY_RETURN | st::USER | st::KERNEL), [KERNEL]);
        assert_eq!(from(st::ANY | st::USER | st::NO_TX), [1, 2]);
        assert_eq!(from(st::ANY | st::USER | st::IN_TX), [0; 0]);
    }

    #[test]
    fn all_branches_include_unknown_ones() {
        let whole = request(st::ANY | st::USER | st::KERNEL);
        let mut branches = some();
        let never = |_: &Branch| -> Kinds { unreachable!() };
        assert_eq!(branches.select(&whole, never).count(), 5);
    }

    #[test]
    fn each_branch_is_classified_once() {
        let mut branches = some();
        let mut calls = 0;
        for requested in [st::COND | st::USER, st::ANY_CALL | st::USER] {
            let request = request(requested);
            let kept = branches.select(&request, |branch| {
                calls += 1;
                classify(branch)
            });
            assert_eq!(kept.count(), 1);
        }
        assert_eq!(calls, 5);
        branches.clear();
        branches.push(branch(2, 20));
        let request = request(st::COND | st::USER);
        assert_eq!(branches.select(&request, classify).count(), 1);
    }

    #[test]
    fn flags_and_types() {
        let mut branches = Branches::NONE;
        branches.push(Branch {
            flags: Flags::MISPREDICTED.or(Flags::IN_TX).or(Flags::of_cycles(9)),
            ..branch(2, 20)
        });
        let mut flags = |requested| {
            let request = request(st::COND | st::USER | requested);
            let entry = branches.select(&request, classify).next();
            entry.unwrap().flags
        };
        let mispredicted_in_tx = 0b101;
        let all = mispredicted_in_tx | (9 << 4);
        assert_eq!(flags(0), all);
        assert_eq!(flags(st::TYPE_SAVE), all | (1 << 20));
        assert_eq!(flags(st::NO_FLAGS), all);
        assert_eq!(flags(st::NO_FLAGS | st::NO_CYCLES), 0);
    }

    #[test]
    fn the_processor_records_types() {
        for (number, kind) in ARCH_TYPES.into_iter().enumerate() {
            let mut branches = Branches::NONE;
            branches.push(Branch {
                arch_type: Some(number as u8),
                ..branch(1, KERNEL)
            });
            let request = Request {
                kinds: kind.or(Kinds::KERNEL),
                ..request(st::TYPE_SAVE)
            };
            let never = |_: &Branch| -> Kinds { unreachable!() };
            let entry = branches.select(&request, never).next().unwrap();
            assert_eq!((entry.flags >> 20) & 0xf, type_number(kind));
        }
    }

    #[test]
    fn speculation_and_a_known_kind() {
        let mut branches = Branches::NONE;
        let wrong_path = Branch {
            flags: Flags::PREDICTED.or(Flags::of_speculation(Speculation::WrongPath)),
            ..branch(1, 10)
        };
        branches.push_classified(wrong_path, Kinds::CALL.or(Kinds::USER));
        branches.push_classified(branch(2, 20), Kinds::NONE);
        let never = |_: &Branch| -> Kinds { unreachable!() };
        let request = request(st::CALL | st::USER | st::TYPE_SAVE);
        let entries: Vec<_> = branches.select(&request, never).collect();
        let (predicted, call) = (1 << 1, 4 << 20);
        let flags = predicted | call | (1 << 24);
        assert_eq!(
            entries,
            [Entry {
                from: 1,
                to: 10,
                flags
            }]
        );
    }

    #[test]
    fn branches_beyond_the_maximum_are_dropped() {
        let mut branches = Branches::NONE;
        for n in 0..100 {
            branches.push(branch(n + 1, 1));
        }
        let whole = request(st::ANY | st::USER | st::KERNEL);
        assert_eq!(branches.select(&whole, classify).count(), MAX_BRANCHES);
    }
}
