// SPDX-License-Identifier: GPL-2.0

//! The registers of interrupted code.

use crate::bindings;
use kernel::types::Opaque;

/// The registers of interrupted code, for functions of the kernel (`struct pt_regs`).
pub type Regs = Opaque<bindings::pt_regs>;
