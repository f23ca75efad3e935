// SPDX-License-Identifier: GPL-2.0

//! The module parameters that are texts (`rust/parameters.c`).
//!
//! In the kernel proper `module!` would know them.

use crate::bindings;
use kernel::prelude::*;

/// The parameter `policy`. Any context.
pub fn policy() -> &'static CStr {
    // SAFETY: The parameter is a C string from the start. It is set before the module's
    // initialisation, and not again: sysfs shows it, and lets nobody write it.
    unsafe { CStr::from_char_ptr(bindings::rpmu_helper_policy()) }
}
