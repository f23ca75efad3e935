// SPDX-License-Identifier: GPL-2.0

//! The classes of branches, and the filters that select them for recording.

use crate::model::LbrFormat;
use crate::retired;

/// A class of branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Jcc, LOOPcc, JCXZ.
    Conditional,
    RelativeJump,
    IndirectJump,
    RelativeCall,
    IndirectCall,
    Return,
    /// Far branches, interrupts and exceptions.
    Far,
}

impl Class {
    /// Returns the class of a kind of branch in [`retired`].
    pub(super) fn of(kind: u32) -> Self {
        match kind as usize {
            retired::TAKEN => Class::Conditional,
            retired::JUMP => Class::RelativeJump,
            retired::JUMP_INDIRECT => Class::IndirectJump,
            retired::CALL => Class::RelativeCall,
            retired::CALL_INDIRECT => Class::IndirectCall,
            retired::RETURN => Class::Return,
            _ => Class::Far,
        }
    }

    /// Returns whether `select` (MSR_LBR_SELECT, IA32_LBR_CTL or AMD's LBR_SELECT) selects this
    /// class with a target at this level.
    pub(super) fn is_selected(self, format: LbrFormat, select: u64, user: bool) -> bool {
        if format == LbrFormat::Architectural {
            level(user, select) && select & (1 << self.allowed_by()) != 0
        } else {
            let not_this_level = 1 << u32::from(user);
            select & (not_this_level | (1 << self.suppressed_by())) == 0
        }
    }

    /// Returns whether branches of this class are predicted: all but far branches, and relative
    /// jumps and calls, whose target is always the one in the instruction.
    pub(super) fn is_predicted(self) -> bool {
        !matches!(self, Class::RelativeJump | Class::RelativeCall | Class::Far)
    }

    /// Returns the bit of MSR_LBR_SELECT that suppresses the class.
    fn suppressed_by(self) -> u32 {
        match self {
            Class::Conditional => 2,
            Class::RelativeCall => 3,
            Class::IndirectCall => 4,
            Class::Return => 5,
            Class::IndirectJump => 6,
            Class::RelativeJump => 7,
            Class::Far => 8,
        }
    }

    /// Returns the bit of IA32_LBR_CTL that allows the class.
    fn allowed_by(self) -> u32 {
        match self {
            Class::Conditional => 16,
            Class::RelativeJump => 17,
            Class::IndirectJump => 18,
            Class::RelativeCall => 19,
            Class::IndirectCall => 20,
            Class::Return => 21,
            Class::Far => 22,
        }
    }

    /// Returns IA32_LBR_x_INFO.BR_TYPE.
    pub(super) fn branch_type(self) -> u64 {
        match self {
            Class::Conditional => 0,
            Class::IndirectJump => 1,
            Class::RelativeJump => 2,
            Class::IndirectCall => 3,
            Class::RelativeCall => 4,
            Class::Return => 5,
            Class::Far => 8,
        }
    }
}

/// Returns whether IA32_LBR_CTL allows this level (OS, USR).
pub(super) fn level(user: bool, ctl: u64) -> bool {
    ctl & (if user { 1 << 2 } else { 1 << 1 }) != 0
}
