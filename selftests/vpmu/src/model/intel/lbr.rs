// SPDX-License-Identifier: GPL-2.0

//! Last branch records of each generation: SDM vol. 3, 17.7 to 17.12, and chapter 19.

use crate::model::spec::{
    Lbr,
    LbrFormat, //
};

/// CPL_EQ_0 to FAR_BRANCH.
const FILTERS: u64 = 0x1ff;
/// EN_CALLSTACK.
const CALL_STACK: u64 = 1 << 9;

/// Nehalem and Westmere.
pub(super) const NEHALEM: Lbr = Lbr {
    format: LbrFormat::Flags,
    depth: 16,
    low: false,
    select: FILTERS,
    per_core: true,
};

/// Sandy Bridge and Ivy Bridge.
pub(super) const SANDY_BRIDGE: Lbr = Lbr {
    per_core: false,
    ..NEHALEM
};

/// Silvermont. The manual does not name its format; by declaration, records are addresses alone.
pub(super) const SILVERMONT: Lbr = Lbr {
    format: LbrFormat::Addresses,
    depth: 8,
    low: true,
    ..SANDY_BRIDGE
};

/// Haswell and Broadwell.
pub(super) const HASWELL: Lbr = Lbr {
    format: LbrFormat::TsxFlags,
    depth: 16,
    low: false,
    select: FILTERS | CALL_STACK,
    per_core: false,
};

/// Skylake and Ice Lake.
pub(super) const SKYLAKE: Lbr = Lbr {
    format: LbrFormat::Info,
    depth: 32,
    ..HASWELL
};

/// Goldmont: without MSR_LBR_INFO_x.
pub(super) const GOLDMONT: Lbr = Lbr {
    format: LbrFormat::CyclesInTo,
    ..SKYLAKE
};

/// Goldmont Plus and Tremont: Skylake's without the flags of TSX.
pub(super) const GOLDMONT_PLUS: Lbr = Lbr {
    format: LbrFormat::InfoWithoutTsx,
    ..SKYLAKE
};

/// Architectural: LBREn, OS, USR, CALL_STACK, COND to OTHER_BRANCH.
pub(super) const ARCHITECTURAL: Lbr = Lbr {
    format: LbrFormat::Architectural,
    depth: 32,
    low: false,
    select: 0x7f_000f,
    per_core: false,
};
