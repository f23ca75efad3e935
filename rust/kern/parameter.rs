// SPDX-License-Identifier: GPL-2.0

//! The module's parameters (`rust/parameters.c`). All but `share` and `trial` are constant once
//! the module is loaded: their files in sysfs are read-only.
//!
//! In the kernel proper, `module!` would support strings and files in sysfs.

use crate::bindings;
use kernel::prelude::*;

/// Returns the parameter `ht_workaround`. Any context.
pub fn ht_workaround() -> bool {
    // SAFETY: The function reads a variable, which is set before the module's initialisation.
    unsafe { bindings::rpmu_helper_ht_workaround() }
}

/// Returns the parameter `share`, which root may change while there are no events. Any context.
pub fn share() -> bool {
    // SAFETY: The function reads a variable, as one byte.
    unsafe { bindings::rpmu_helper_share() }
}

/// Returns the parameter `trust_layouts`. Any context.
pub fn trust_layouts() -> bool {
    // SAFETY: As for `ht_workaround()`.
    unsafe { bindings::rpmu_helper_trust_layouts() }
}

/// Returns the parameter `dry_run`. Any context.
pub fn dry_run() -> bool {
    // SAFETY: As for `ht_workaround()`.
    unsafe { bindings::rpmu_helper_dry_run() }
}

/// Returns the parameter `trial`, the seconds of a trial. Root may change it to 0 at any time. Any
/// context.
pub fn trial() -> u32 {
    // SAFETY: The function reads a variable, as one word.
    unsafe { bindings::rpmu_helper_trial() }
}

/// Returns the parameter `max_period`. Any context.
pub fn max_period() -> u64 {
    // SAFETY: As for `ht_workaround()`.
    unsafe { bindings::rpmu_helper_max_period() }
}

/// Returns the parameter `policy`. Any context.
pub fn policy() -> &'static CStr {
    // SAFETY: The parameter is a C string. It is set before the module's initialisation and not
    // afterwards: its file in sysfs is read-only.
    unsafe { CStr::from_char_ptr(bindings::rpmu_helper_policy()) }
}

/// Returns the parameter `release`, or if that is empty, the release of the kernel. Any context.
pub fn release() -> &'static CStr {
    // SAFETY: Both are C strings. The parameter is as for `policy()`, the kernel never changes its
    // own.
    unsafe { CStr::from_char_ptr(bindings::rpmu_helper_release()) }
}
