// SPDX-License-Identifier: GPL-2.0

//! Intel's event lists, as `build.rs` has converted them.

use crate::event::{List, Listed, Meaning, Of, Register};

include!(concat!(env!("OUT_DIR"), "/event_lists.rs"));
