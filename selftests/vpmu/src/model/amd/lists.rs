// SPDX-License-Identifier: GPL-2.0

//! AMD's event lists, converted by `build/main.rs`.

use crate::event::amd::*;

include!(concat!(env!("OUT_DIR"), "/amd_lists.rs"));
