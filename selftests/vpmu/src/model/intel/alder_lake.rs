// SPDX-License-Identifier: GPL-2.0

//! Alder Lake and Raptor Lake: Golden Cove and Gracemont in one processor. SDM vol. 3, 20.3.10; the
//! types and native model IDs are CPUID leaf 1AH's.
//!
//! Both cores are as in processors with one type (Sapphire Rapids, Alder Lake-N), with the event
//! lists of Alder Lake.

use super::{
    golden_cove,
    gracemont,
    lists,
    FAMILY, //
};
use crate::model::hybrid::{
    CoreType,
    Hybrid, //
};
use crate::model::spec::Model;

const MODELS: &[u32] = &[151, 154, 183, 186, 191];

static GOLDEN_COVE: Model = Model {
    name: "Golden Cove (client)",
    models: MODELS,
    list: &lists::ALDER_LAKE_CORE,
    ..golden_cove::MODEL
};

static GRACEMONT: Model = Model {
    name: "Gracemont (hybrid)",
    models: MODELS,
    list: &lists::ALDER_LAKE_ATOM,
    ..gracemont::MODEL
};

/// Alder Lake and Raptor Lake.
pub(super) const HYBRID: Hybrid = Hybrid {
    family: FAMILY,
    models: MODELS,
    // The die with six big cores: H0.
    big_only: &[(151, 5), (191, 5)],
    big: CoreType {
        model: &GOLDEN_COVE,
        native_id: 0x4000_0001,
        other: &GRACEMONT,
    },
    small: CoreType {
        model: &GRACEMONT,
        native_id: 0x2000_0001,
        other: &GOLDEN_COVE,
    },
};
