// SPDX-License-Identifier: GPL-2.0

//! Reading code from memory, and decoding the lengths of its instructions.
//!
//! C header: [`arch/x86/include/asm/insn.h`](srctree/arch/x86/include/asm/insn.h)

use crate::{
    bindings,
    kern::symbols::Symbols, //
};
use kernel::{
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// The kernel's instruction decoder.
///
/// # Invariants
///
/// The functions are bound.
pub struct Decoder(());

impl Decoder {
    /// Binds the functions. Fails if they cannot be found. Process context.
    pub fn bind() -> Result<Self> {
        let symbols = Symbols::new()?;
        let init = symbols.find(c"insn_init")?;
        let get_length = symbols.find(c"insn_get_length")?;
        // SAFETY: The addresses belong to functions of the types that the static calls have.
        unsafe { bindings::rpmu_helper_bind_insn(init.as_ptr(), get_length.as_ptr()) };
        // INVARIANT: The functions have just been bound.
        Ok(Self(()))
    }

    /// Returns the length of the instruction at the beginning of `code`; [`None`] if the
    /// instruction is unknown or incomplete. Any context.
    pub fn length(&self, code: &[u8], is_64bit: bool) -> Option<usize> {
        let size = code.len().try_into().ok()?;
        // SAFETY: By the type invariant the function is bound, and `code` has this number of bytes.
        let length =
            unsafe { bindings::rpmu_helper_insn_length(code.as_ptr().cast(), size, is_64bit) };
        // CAST: at most 15.
        (length != 0).then_some(length as usize)
    }
}

/// Reads code of the kernel or of the current task at `address` into `code`. Returns whether all
/// bytes were read.
///
/// Any context, NMIs included.
pub fn read(address: u64, code: &mut [u8], _irqs: &LocalInterruptDisabled) -> bool {
    let to = code.as_mut_ptr().cast();
    // CAST: an address.
    let from = core::ptr::with_exposed_provenance::<kernel::ffi::c_void>(address as usize);
    if address >> 63 != 0 {
        // SAFETY: `code.len()` bytes can be written at `to`. The function handles a fault on
        // reading.
        unsafe { bindings::copy_from_kernel_nofault(to, from, code.len()) == 0 }
    } else {
        // SAFETY: `code.len()` bytes can be written at `to`. The function checks that `from` is in
        // user space, stops at a fault, and may be called in any context, NMIs included.
        unsafe { bindings::copy_from_user_nmi(to, from, code.len()) == 0 }
    }
}
