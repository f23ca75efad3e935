// SPDX-License-Identifier: GPL-2.0

//! Data and functions of the kernel that modules cannot link to.
//!
//! This has no place in the kernel proper, where what is needed would be exported.

use crate::bindings;
use core::ptr::NonNull;
use kernel::{error::to_result, ffi::c_void, prelude::*};

/// Finds symbols of the kernel by their names.
pub(crate) struct Symbols(());

impl Symbols {
    /// Gets what finds them: `kallsyms_lookup_name()`, bound to a static call.
    ///
    /// A kprobe looks its function up when it is registered. It is disabled, so it does not change
    /// it. `ENOENT` or the error of `register_kprobe()`. Process context.
    pub(crate) fn new() -> Result<Self> {
        let mut probe = KBox::new(
            bindings::kprobe {
                symbol_name: c"kallsyms_lookup_name".as_char_ptr(),
                flags: bindings::KPROBE_FLAG_DISABLED,
                ..pin_init::zeroed()
            },
            GFP_KERNEL,
        )?;
        let probe: *mut bindings::kprobe = &mut *probe;
        // SAFETY: The probe names a symbol and is otherwise zero, as it has to be. It stays where it
        // is until it is unregistered below.
        to_result(unsafe { bindings::rpmu_helper_register_kprobe(probe) })?;
        // SAFETY: Registering has set the address, to that of the function whose type the static
        // call has; unregistering waits until nobody uses the probe.
        unsafe {
            bindings::rpmu_helper_bind_kallsyms_lookup_name((*probe).addr.cast());
            bindings::rpmu_helper_unregister_kprobe(probe);
        }
        Ok(Self(()))
    }

    /// Where the symbol is; `ENOENT` if there is none. Process context.
    pub(crate) fn find(&self, name: &'static CStr) -> Result<NonNull<c_void>> {
        // SAFETY: `name` is a C string, and the static call has been bound.
        let address = unsafe { bindings::rpmu_helper_kallsyms_lookup_name(name.as_char_ptr()) };
        NonNull::new(core::ptr::with_exposed_provenance_mut(address)).ok_or(ENOENT)
    }
}
