// SPDX-License-Identifier: GPL-2.0

//! A module, as the kernel's loader sees it.

use crate::bindings;
use kernel::{
    module::this_module,
    ModuleMetadata, //
};

/// Returns the number of references that keep this crate's module `M` loaded; 0 where the kernel
/// cannot unload modules. Any context.
pub fn references<M: ModuleMetadata>() -> u32 {
    let module = this_module::<M>().as_ptr();
    // SAFETY: This is code of the module, which is valid while its code runs.
    // CAST: both are bindings of `struct module`.
    let references = unsafe { bindings::rpmu_helper_module_refcount(module.cast()) };
    // The number is negative while the module is being unloaded.
    references.try_into().unwrap_or(0)
}
