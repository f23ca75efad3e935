// SPDX-License-Identifier: GPL-2.0

//! Module parameters that are strings (`rust/parameters.c`).
//!
//! In the kernel proper, `module!` would support them.

use crate::bindings;
use kernel::prelude::*;

/// Returns the parameter `policy`. Any context.
pub fn policy() -> &'static CStr {
    // SAFETY: The parameter is a C string. It is set before the module's initialisation and not
    // afterwards: its file in sysfs is read-only.
    unsafe { CStr::from_char_ptr(bindings::rpmu_helper_policy()) }
}

/// Returns the parameter `release`, or if that is empty, the release of the kernel. Any context.
pub fn release() -> &'static CStr {
    // SAFETY: Both are C strings. The parameter is as for `policy()`, the kernel never changes its own.
    unsafe { CStr::from_char_ptr(bindings::rpmu_helper_release()) }
}
