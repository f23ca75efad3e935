// SPDX-License-Identifier: GPL-2.0

//! Requests for branch stacks: translating `attr.branch_sample_type` to a hardware filter and a
//! software filter.
//!
//! Context: process, in `perf_event_open()`.

use super::{
    Filter,
    Lbr,
    GUEST, //
};
use crate::logic::{
    capabilities::ArchLbr,
    model::LbrFilter,
    refusal::Refusal, //
};

/// Bits of `attr.branch_sample_type`: `enum perf_branch_sample_type`,
/// `include/uapi/linux/perf_event.h`.
pub mod sample_type {
    /// Branches to user addresses.
    pub const USER: u64 = 1 << 0;
    /// Branches to kernel addresses.
    pub const KERNEL: u64 = 1 << 1;
    /// Branches to hypervisor addresses, which x86 does not distinguish.
    pub const HV: u64 = 1 << 2;
    /// All kinds of branches.
    pub const ANY: u64 = 1 << 3;
    /// Calls of all kinds, system calls and interrupts.
    pub const ANY_CALL: u64 = 1 << 4;
    /// Returns of all kinds.
    pub const ANY_RETURN: u64 = 1 << 5;
    /// Indirect calls.
    pub const IND_CALL: u64 = 1 << 6;
    /// Aborts of TSX transactions.
    pub const ABORT_TX: u64 = 1 << 7;
    /// Branches in TSX transactions.
    pub const IN_TX: u64 = 1 << 8;
    /// Branches outside of TSX transactions.
    pub const NO_TX: u64 = 1 << 9;
    /// Conditional branches.
    pub const COND: u64 = 1 << 10;
    /// The calls that have not returned.
    pub const CALL_STACK: u64 = 1 << 11;
    /// Indirect jumps.
    pub const IND_JUMP: u64 = 1 << 12;
    /// Direct calls.
    pub const CALL: u64 = 1 << 13;
    /// Leaves the flags of branches out.
    pub const NO_FLAGS: u64 = 1 << 14;
    /// Leaves the cycles of branches out.
    pub const NO_CYCLES: u64 = 1 << 15;
    /// Adds the type of each branch.
    pub const TYPE_SAVE: u64 = 1 << 16;
    /// Adds counts of events to each branch.
    pub const COUNTERS: u64 = 1 << 19;
}

use sample_type as st;

/// A set of kinds of branches, by instruction, target, and TSX transaction.
///
/// The bits are those of the kernel's `branch_type()` (`X86_BR_*`, `set_linear_ip()`,
/// `arch/x86/events/perf_event.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u32);

impl Kinds {
    /// No branch.
    pub const NONE: Self = Self(0);
    /// The target is a user address.
    pub const USER: Self = Self(1 << 0);
    /// The target is a kernel address.
    pub const KERNEL: Self = Self(1 << 1);
    /// A call.
    pub const CALL: Self = Self(1 << 2);
    /// A return.
    pub const RETURN: Self = Self(1 << 3);
    /// A system call.
    pub const SYSCALL: Self = Self(1 << 4);
    /// A return from a system call.
    pub const SYSRET: Self = Self(1 << 5);
    /// A software interrupt.
    pub const INT: Self = Self(1 << 6);
    /// A return from an interrupt.
    pub const IRET: Self = Self(1 << 7);
    /// A conditional branch.
    pub const CONDITIONAL: Self = Self(1 << 8);
    /// A direct jump.
    pub const JUMP: Self = Self(1 << 9);
    /// An interrupt, trap or fault.
    pub const IRQ: Self = Self(1 << 10);
    /// An indirect call.
    pub const INDIRECT_CALL: Self = Self(1 << 11);
    /// An abort of a TSX transaction.
    pub const ABORT: Self = Self(1 << 12);
    /// In a TSX transaction.
    pub const IN_TX: Self = Self(1 << 13);
    /// Outside of TSX transactions.
    pub const NO_TX: Self = Self(1 << 14);
    /// A call of the next instruction, which does not return.
    pub const ZERO_CALL: Self = Self(1 << 15);
    /// An indirect jump.
    pub const INDIRECT_JUMP: Self = Self(1 << 17);

    const ANY: Self = Self::CALL
        .or(Self::RETURN)
        .or(Self::SYSCALL)
        .or(Self::SYSRET)
        .or(Self::INT)
        .or(Self::IRET)
        .or(Self::CONDITIONAL)
        .or(Self::JUMP)
        .or(Self::IRQ)
        .or(Self::INDIRECT_CALL)
        .or(Self::ABORT)
        .or(Self::ZERO_CALL)
        .or(Self::INDIRECT_JUMP);
    const ANY_CALL: Self = Self::CALL
        .or(Self::INDIRECT_CALL)
        .or(Self::ZERO_CALL)
        .or(Self::SYSCALL)
        .or(Self::IRQ)
        .or(Self::INT);
    const ANY_RETURN: Self = Self::RETURN.or(Self::IRET).or(Self::SYSRET);
    /// The kinds of branches in a call stack.
    const OF_CALL_STACK: Self = Self::CALL.or(Self::INDIRECT_CALL).or(Self::RETURN);
    const ANY_TX: Self = Self::IN_TX.or(Self::NO_TX);
    const ALL: Self = Self::ANY.or(Self::USER).or(Self::KERNEL);

    /// Makes a set from the kernel's bits.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the kernel's bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the kinds in either set.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether all of `other` are in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether the set contains all branches, so that they need no classification.
    pub const fn is_all(self) -> bool {
        self.contains(Self::ALL) && !self.intersects(Self::ANY_TX)
    }

    /// Returns whether the set selects branches by being in a TSX transaction or not.
    pub const fn selects_by_tx(self) -> bool {
        self.intersects(Self::ANY_TX)
    }
}

/// An event's request for a branch stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The needed value of LBR_SELECT, or of LBR_CTL without its enable bit.
    pub select: u32,
    /// The branches to keep.
    pub kinds: Kinds,
    /// Set if each branch gets its type.
    pub saves_type: bool,
    /// Set if the event requests the call stack.
    pub call_stack: bool,
    /// Set if the event wants neither flags nor cycles of branches.
    pub bare: bool,
}

impl Request {
    /// Returns the request of the event by which a guest of KVM owns the records.
    #[must_use]
    pub const fn of_guest(self) -> Self {
        Self {
            select: GUEST,
            ..self
        }
    }

    /// Returns whether a guest owns the records.
    pub const fn is_of_guest(&self) -> bool {
        self.select == GUEST
    }
}

// Bits of LBR_SELECT (SDM volume 3, tables 19-10 and 19-13). Each bit but the last suppresses
// branches.
const SELECT_KERNEL: u32 = 1 << 0;
const SELECT_USER: u32 = 1 << 1;
const SELECT_JCC: u32 = 1 << 2;
const SELECT_REL_CALL: u32 = 1 << 3;
const SELECT_IND_CALL: u32 = 1 << 4;
const SELECT_RETURN: u32 = 1 << 5;
const SELECT_IND_JMP: u32 = 1 << 6;
const SELECT_REL_JMP: u32 = 1 << 7;
const SELECT_FAR: u32 = 1 << 8;
const SELECT_CALL_STACK: u32 = 1 << 9;
/// The bits that suppress.
const SELECT_SUPPRESS: u32 = 0x1ff;
const SELECT_ANY: u32 = SELECT_SUPPRESS & !(SELECT_KERNEL | SELECT_USER);

// Bits of LBR_CTL (SDM volume 3, figure 18-1). Each bit enables the recording of branches.
const CONTROL_KERNEL: u32 = 1 << 1;
const CONTROL_USER: u32 = 1 << 2;
const CONTROL_CALL_STACK: u32 = 1 << 3;
const CONTROL_JCC: u32 = 1 << 16;
const CONTROL_REL_JMP: u32 = 1 << 17;
const CONTROL_IND_JMP: u32 = 1 << 18;
const CONTROL_REL_CALL: u32 = 1 << 19;
const CONTROL_IND_CALL: u32 = 1 << 20;
const CONTROL_RETURN: u32 = 1 << 21;
const CONTROL_OTHER: u32 = 1 << 22;
const CONTROL_ANY: u32 = CONTROL_JCC
    | CONTROL_REL_JMP
    | CONTROL_IND_JMP
    | CONTROL_REL_CALL
    | CONTROL_IND_CALL
    | CONTROL_RETURN
    | CONTROL_OTHER;

/// Returns the bits of LBR_SELECT that concern the branches of one bit of
/// `attr.branch_sample_type`: the bits that must be clear, so that these branches are not
/// suppressed, and SELECT_CALL_STACK, which must be set for a call stack. 0 for a bit without a
/// hardware filter.
///
/// Mainline: `nhm_lbr_sel_map`, `snb_lbr_sel_map`, `hsw_lbr_sel_map`,
/// `arch/x86/events/intel/lbr.c`.
const fn select_bits(filter: LbrFilter, requested: u64) -> u32 {
    let is_nehalem = matches!(filter, LbrFilter::Nehalem | LbrFilter::Silvermont);
    match requested {
        st::USER => SELECT_USER,
        st::KERNEL => SELECT_KERNEL,
        st::ANY => SELECT_ANY,
        // Erratum: returns are only recorded together with jumps, and calls together with jumps of
        // the same kind.
        st::ANY_RETURN if is_nehalem => {
            SELECT_RETURN | SELECT_REL_JMP | SELECT_IND_JMP | SELECT_FAR
        }
        st::ANY_RETURN => SELECT_RETURN | SELECT_FAR,
        st::ANY_CALL if is_nehalem => {
            SELECT_REL_CALL | SELECT_IND_CALL | SELECT_REL_JMP | SELECT_IND_JMP | SELECT_FAR
        }
        st::ANY_CALL => SELECT_REL_CALL | SELECT_IND_CALL | SELECT_FAR,
        st::IND_CALL if is_nehalem => SELECT_IND_CALL | SELECT_IND_JMP,
        st::IND_CALL => SELECT_IND_CALL,
        st::COND => SELECT_JCC,
        st::IND_JUMP => SELECT_IND_JMP,
        st::CALL if !is_nehalem => SELECT_REL_CALL,
        st::CALL_STACK => SELECT_REL_CALL | SELECT_IND_CALL | SELECT_RETURN | SELECT_CALL_STACK,
        _ => 0,
    }
}

/// Returns the bits of LBR_CTL for one bit of `attr.branch_sample_type`; [`None`] if the processor
/// cannot select these branches.
///
/// Mainline: `arch_lbr_ctl_map`, `intel_pmu_arch_lbr_init()`, `x86_perf_get_lbr()`,
/// `arch/x86/events/intel/lbr.c`. If the processor can filter neither kinds of branches nor
/// privilege levels, mainline accepts the request and does not filter.
const fn control_bits(arch: ArchLbr, requested: u64) -> Option<u32> {
    let bits = match requested {
        st::USER => CONTROL_USER,
        st::KERNEL => CONTROL_KERNEL,
        st::ANY => CONTROL_ANY,
        st::ANY_RETURN => CONTROL_RETURN | CONTROL_OTHER,
        st::ANY_CALL => CONTROL_REL_CALL | CONTROL_IND_CALL | CONTROL_OTHER,
        st::IND_CALL => CONTROL_IND_CALL,
        st::COND => CONTROL_JCC,
        st::IND_JUMP => CONTROL_IND_JMP,
        st::CALL => CONTROL_REL_CALL,
        st::CALL_STACK => CONTROL_REL_CALL | CONTROL_IND_CALL | CONTROL_RETURN | CONTROL_CALL_STACK,
        _ => return Some(0),
    };
    let possible = match requested {
        st::USER | st::KERNEL => arch.levels(),
        _ => arch.filters(),
    };
    if possible {
        Some(bits)
    } else {
        None
    }
}

/// The bits that AMD's processors do not support: they have no TSX and no call stacks, and always
/// record flags.
///
/// Mainline: `LBR_NOT_SUPP` in `lbr_select_map`, `arch/x86/events/amd/lbr.c`.
const ABSENT_ON_AMD: u64 =
    st::ABORT_TX | st::IN_TX | st::NO_TX | st::CALL_STACK | st::NO_FLAGS | st::NO_CYCLES;

/// The bits of `attr.branch_sample_type` that select kinds of branches, with these kinds.
const KIND_BITS: [(u64, Kinds); 13] = [
    (st::USER, Kinds::USER),
    (st::KERNEL, Kinds::KERNEL),
    (st::ANY, Kinds::ANY),
    (st::ANY_CALL, Kinds::ANY_CALL),
    (st::ANY_RETURN, Kinds::ANY_RETURN),
    (st::IND_CALL, Kinds::INDIRECT_CALL),
    (st::ABORT_TX, Kinds::ABORT),
    (st::IN_TX, Kinds::IN_TX),
    (st::NO_TX, Kinds::NO_TX),
    (st::COND, Kinds::CONDITIONAL),
    (st::IND_JUMP, Kinds::INDIRECT_JUMP),
    (st::CALL, Kinds::CALL.or(Kinds::ZERO_CALL)),
    (st::CALL_STACK, Kinds::OF_CALL_STACK),
];

impl Lbr {
    /// Returns whether the records are a call stack with `select`, a value of LBR_SELECT or
    /// LBR_CTL.
    pub const fn is_call_stack(&self, select: u32) -> bool {
        match self.filter {
            Filter::Select(_) => select & SELECT_CALL_STACK != 0,
            Filter::Control(_) => select & CONTROL_CALL_STACK != 0,
            Filter::Amd => false,
        }
    }

    /// Translates `attr.branch_sample_type`.
    ///
    /// Mainline: `intel_pmu_setup_lbr_filter()`, `arch/x86/events/intel/lbr.c`, and
    /// `amd_pmu_lbr_setup_filter()`, `arch/x86/events/amd/lbr.c`.
    ///
    /// # Errors
    ///
    /// [`Refusal::CallStackAbsent`], [`Refusal::CallStackFilter`] or
    /// [`Refusal::BranchFilterAbsent`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::model::LbrFilter;
    /// use logic::refusal::Refusal;
    /// use logic::sample::lbr::{filter::sample_type, record::Format, Filter, Lbr};
    ///
    /// let sandy_bridge = Lbr {
    ///     depth: 16,
    ///     format: Format::Flags,
    ///     filter: Filter::Select(LbrFilter::SandyBridge),
    /// };
    /// let any_user = sandy_bridge.request(sample_type::ANY | sample_type::USER).unwrap();
    /// assert_eq!(any_user.select, 1 << 0);
    /// let call_stack = sandy_bridge.request(sample_type::CALL_STACK | sample_type::USER);
    /// assert_eq!(call_stack, Err(Refusal::CallStackAbsent));
    /// ```
    pub fn request(&self, requested: u64) -> Result<Request, Refusal> {
        let call_stack = requested & st::CALL_STACK != 0;
        if call_stack {
            if !self.has_call_stack() {
                return Err(Refusal::CallStackAbsent);
            }
            // As in mainline, kinds that its table lists after the call stack do not conflict with
            // it.
            let conflicting = st::ANY
                | st::ANY_CALL
                | st::ANY_RETURN
                | st::IND_CALL
                | st::ABORT_TX
                | st::IN_TX
                | st::NO_TX
                | st::COND;
            if requested & conflicting != 0 {
                return Err(Refusal::CallStackFilter);
            }
        }
        if self.filter == Filter::Amd && requested & ABSENT_ON_AMD != 0 {
            return Err(Refusal::BranchFilterAbsent);
        }
        let mut kinds = Kinds::NONE;
        let mut bits = 0;
        for (bit, kind) in KIND_BITS
            .into_iter()
            .filter(|(bit, _)| requested & bit != 0)
        {
            kinds = kinds.or(kind);
            bits |= match self.filter {
                Filter::Select(filter) => select_bits(filter, bit),
                Filter::Control(arch) => {
                    control_bits(arch, bit).ok_or(Refusal::BranchFilterAbsent)?
                }
                Filter::Amd => select_bits(LbrFilter::SandyBridge, bit),
            };
        }
        Ok(Request {
            select: match self.filter {
                Filter::Select(_) | Filter::Amd => bits ^ SELECT_SUPPRESS,
                Filter::Control(_) => bits,
            },
            kinds,
            saves_type: requested & st::TYPE_SAVE != 0 || self.is_architectural(),
            call_stack,
            bare: requested & (st::NO_FLAGS | st::NO_CYCLES) == st::NO_FLAGS | st::NO_CYCLES,
        })
    }

    const fn has_call_stack(&self) -> bool {
        match self.filter {
            Filter::Select(filter) => matches!(filter, LbrFilter::Haswell),
            Filter::Control(arch) => arch.levels() && arch.filters() && arch.call_stack(),
            Filter::Amd => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Format;
    use super::*;

    fn select(filter: LbrFilter, requested: u64) -> Result<u32, Refusal> {
        let lbr = Lbr {
            depth: 16,
            format: Format::Flags,
            filter: Filter::Select(filter),
        };
        lbr.request(requested).map(|request| request.select)
    }

    #[test]
    fn bits_of_lbr_select_suppress() {
        use LbrFilter::{
            Haswell,
            Nehalem,
            SandyBridge, //
        };
        for filter in [Nehalem, SandyBridge, Haswell] {
            assert_eq!(select(filter, st::ANY | st::USER | st::KERNEL), Ok(0));
            assert_eq!(select(filter, st::ANY | st::KERNEL), Ok(0x2));
            // Everything but user mode and conditional branches.
            assert_eq!(select(filter, st::COND | st::USER), Ok(0x1f9));
        }
        assert_eq!(select(SandyBridge, st::ANY_RETURN | st::USER), Ok(0xdd));
        assert_eq!(select(Nehalem, st::ANY_RETURN | st::USER), Ok(0x1d));
        assert_eq!(select(Nehalem, st::CALL | st::USER), Ok(0x1fd));
        assert_eq!(select(SandyBridge, st::CALL | st::USER), Ok(0x1f5));
    }

    #[test]
    fn the_call_stack_bit_does_not_suppress() {
        let call_stack = st::CALL_STACK | st::USER;
        assert_eq!(select(LbrFilter::Haswell, call_stack), Ok(0x3c5));
        for filter in [
            LbrFilter::Nehalem,
            LbrFilter::Silvermont,
            LbrFilter::SandyBridge,
        ] {
            assert_eq!(select(filter, call_stack), Err(Refusal::CallStackAbsent));
        }
    }

    #[test]
    fn a_call_stack_takes_no_other_kinds() {
        for kind in [st::ANY, st::ANY_CALL, st::COND, st::NO_TX] {
            let requested = st::CALL_STACK | st::USER | kind;
            assert_eq!(
                select(LbrFilter::Haswell, requested),
                Err(Refusal::CallStackFilter)
            );
        }
        assert!(select(LbrFilter::Haswell, st::CALL_STACK | st::IND_JUMP).is_ok());
    }

    fn control(arch: ArchLbr, requested: u64) -> Result<u32, Refusal> {
        let lbr = Lbr {
            depth: 32,
            format: Format::Architectural(arch),
            filter: Filter::Control(arch),
        };
        lbr.request(requested).map(|request| request.select)
    }

    #[test]
    fn bits_of_lbr_ctl_record() {
        let all = ArchLbr::from_leaf(0x8, 0x7, 0x7);
        assert_eq!(control(all, st::ANY | st::USER), Ok(0x7f_0004));
        assert_eq!(control(all, st::CALL_STACK | st::USER), Ok(0x38_000c));
        let no_levels = ArchLbr::from_leaf(0x8, 0x6, 0x7);
        assert_eq!(
            control(no_levels, st::ANY | st::USER),
            Err(Refusal::BranchFilterAbsent)
        );
        let no_filters = ArchLbr::from_leaf(0x8, 0x5, 0x7);
        assert_eq!(
            control(no_filters, st::ANY | st::USER),
            Err(Refusal::BranchFilterAbsent)
        );
        assert_eq!(
            control(no_filters, st::CALL_STACK | st::USER),
            Err(Refusal::CallStackAbsent)
        );
    }

    #[test]
    fn amd_has_the_bits_of_sandy_bridge_and_lacks_some_kinds() {
        let lbr = Lbr {
            depth: 16,
            format: Format::Amd { virtual_bits: 48 },
            filter: Filter::Amd,
        };
        let select = |requested| lbr.request(requested).map(|request| request.select);
        for kind in [
            st::ANY,
            st::ANY_CALL,
            st::ANY_RETURN,
            st::IND_CALL,
            st::COND,
            st::CALL,
        ] {
            let sandy_bridge = self::select(LbrFilter::SandyBridge, kind | st::USER);
            assert_eq!(select(kind | st::USER), sandy_bridge);
        }
        for absent in [
            st::ABORT_TX,
            st::IN_TX,
            st::NO_TX,
            st::NO_FLAGS,
            st::NO_CYCLES,
        ] {
            let refused = Err(Refusal::BranchFilterAbsent);
            assert_eq!(select(st::ANY | absent), refused);
        }
        assert_eq!(select(st::CALL_STACK), Err(Refusal::CallStackAbsent));
    }

    #[test]
    fn all_branches_need_no_classification() {
        let lbr = Lbr {
            depth: 16,
            format: Format::Flags,
            filter: Filter::Select(LbrFilter::Haswell),
        };
        let kinds = |requested| lbr.request(requested).unwrap().kinds;
        assert!(kinds(st::ANY | st::USER | st::KERNEL).is_all());
        assert!(!kinds(st::ANY | st::USER).is_all());
        assert!(!kinds(st::ANY | st::USER | st::KERNEL | st::IN_TX).is_all());
    }
}
