// SPDX-License-Identifier: GPL-2.0

//! Redwood Cove, in Granite Rapids: SDM vol. 3, 20.3.10, as Golden Cove.
//!
//! The list has the front end's events under other unit masks. PEBS records have the latency of
//! retirement.

use super::{
    golden_cove,
    lists,
    pebs, //
};
use crate::model::spec::Model;

/// Redwood Cove.
pub(super) const MODEL: Model = Model {
    name: "Redwood Cove",
    models: &[173, 174],
    pebs: Some(pebs::REDWOOD_COVE),
    list: &lists::REDWOOD_COVE,
    ..golden_cove::MODEL
};
