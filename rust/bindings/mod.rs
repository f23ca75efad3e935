// SPDX-License-Identifier: GPL-2.0

//! The C types and functions that the kernel's own bindings do not have.
//!
//! bindgen generates them from `include/rpmu_bindings.h`, see `Kbuild`. Only [`crate::kern`],
//! [`crate::perf`], [`crate::perf_core`] and [`crate::x86`] may use this module: they are its safe
//! abstractions.

#![allow(
    dead_code,
    clippy::all,
    clippy::cast_lossless,
    clippy::undocumented_unsafe_blocks,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    improper_ctypes,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]

use kernel::ffi;
// `static_branch_unlikely!` expects the kernel crate's `static_key_false` in a tracepoint.
#[cfg(CONFIG_TRACEPOINTS)]
pub use kernel::bindings::tracepoint;
use pin_init::MaybeZeroable;

// The kernel maps these by hand as well (`rust/bindings/lib.rs`).
type __kernel_size_t = usize;
type __kernel_ssize_t = isize;
type __kernel_ptrdiff_t = isize;

pub(crate) mod inline;
pub(crate) mod layouts;

include!(env!("RPMU_BINDINGS"));

// SAFETY: The type has a size of zero, so it adds no bits that could be invalid when zero.
unsafe impl<T> kernel::prelude::Zeroable for __IncompleteArrayField<T> {}

// SAFETY: The only member of the type is a `Storage`.
unsafe impl<Storage> kernel::prelude::Zeroable for __BindgenBitfieldUnit<Storage> where
    Storage: kernel::prelude::Zeroable
{
}
