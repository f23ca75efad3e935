// SPDX-License-Identifier: GPL-2.0

//! Intel's event lists, converted by `build/main.rs`.

use crate::event::{
    Activity,
    List,
    Listed,
    Meaning,
    Register, //
};

include!(concat!(env!("OUT_DIR"), "/event_lists.rs"));
