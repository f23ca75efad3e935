// SPDX-License-Identifier: GPL-2.0

//! Data and functions of the kernel that are not exported to modules.
//!
//! In the kernel proper, the symbols that this module uses would be exported.

use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    ffi::c_void,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

/// Returns the address at which a direct jump may enter a kernel function: behind its ENDBR, if it
/// has one.
///
/// Registers a kprobe, which looks up the function. The probe is disabled, so the function is not
/// changed. Fails with `ENOMEM` or the error of `register_kprobe()`, such as `ENOENT`; needs
/// `CONFIG_KPROBES`. Process context.
pub(crate) fn address_of(function: &'static CStr) -> Result<*mut c_void> {
    let mut probe = KBox::new(
        bindings::kprobe {
            symbol_name: function.as_char_ptr(),
            flags: bindings::KPROBE_FLAG_DISABLED,
            ..pin_init::zeroed()
        },
        GFP_KERNEL,
    )?;
    let probe: *mut bindings::kprobe = &mut *probe;
    // SAFETY: The probe names a symbol and is otherwise zero, as it has to be. It stays in place
    // until it is unregistered below.
    to_result(unsafe { bindings::rpmu_helper_register_kprobe(probe) })?;
    // SAFETY: Registering has set the address, and unregistering waits until no CPU uses the probe.
    unsafe {
        let address = (*probe).addr;
        bindings::rpmu_helper_unregister_kprobe(probe);
        Ok(address.cast())
    }
}

/// Set once the static call has its function. Only the module's initialisation sets it.
static IS_BOUND: Atomic<bool> = Atomic::new(false);

/// Finds symbols of the kernel by their names.
pub(crate) struct Symbols(());

impl Symbols {
    /// Binds `kallsyms_lookup_name()`, which finds symbols, to a static call.
    ///
    /// Errors and context as for [`address_of`].
    pub(crate) fn new() -> Result<Self> {
        // Look it up only once: this waits for all CPUs.
        if !IS_BOUND.load(Relaxed) {
            let lookup = address_of(c"kallsyms_lookup_name")?;
            // SAFETY: `lookup` is the address of the function whose type the static call has.
            unsafe { bindings::rpmu_helper_bind_kallsyms_lookup_name(lookup) };
            IS_BOUND.store(true, Relaxed);
        }
        Ok(Self(()))
    }

    /// Returns the address of a symbol; `ENOENT` if there is none. Process context.
    pub(crate) fn find(&self, name: &'static CStr) -> Result<NonNull<c_void>> {
        // SAFETY: `name` is a C string, and `new()` has bound the static call.
        let address = unsafe { bindings::rpmu_helper_kallsyms_lookup_name(name.as_char_ptr()) };
        NonNull::new(core::ptr::with_exposed_provenance_mut(address)).ok_or(ENOENT)
    }
}
