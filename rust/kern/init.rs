// SPDX-License-Identifier: GPL-2.0

//! Initialisation in place, for values that are too large for the kernel's stack.

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    ptr, //
};
use kernel::prelude::*;

/// Returns an initialiser that copies `value` to its place. The value is never on the stack.
///
/// For large values that start from a constant; [`Init::chain`] then changes single members.
pub fn copied<T: Copy>(value: &T) -> impl Init<T, Error> + use<'_, T> {
    let copy = |slot: *mut T| {
        // SAFETY: The slot has room for a `T`, and nothing else has access to it. A `Copy` value
        // may be duplicated byte by byte.
        unsafe { ptr::copy_nonoverlapping(value, slot, 1) };
        Ok(())
    };
    // SAFETY: The closure initialises the slot, and does not fail.
    unsafe { pin_init::init_from_closure(copy) }
}

/// Returns an initialiser that moves `value` to its place without a copy on the stack.
pub fn moved<T>(value: KBox<T>) -> impl Init<T, Error> {
    let moves = |slot: *mut T| {
        let value = KBox::into_raw(value);
        // SAFETY: The slot has room for a `T`, and nothing else has access to it. The raw pointer
        // owns the value, which is not used at its old place again.
        unsafe {
            ptr::copy_nonoverlapping(value, slot, 1);
            drop(KBox::<MaybeUninit<T>>::from_raw(value.cast()));
        }
        Ok(())
    };
    // SAFETY: The closure initialises the slot, and does not fail.
    unsafe { pin_init::init_from_closure(moves) }
}

/// Returns an initialiser of an [`UnsafeCell`] whose value `value` initialises.
pub(super) fn in_cell<T, E>(value: impl Init<T, E>) -> impl Init<UnsafeCell<T>, E> {
    // SAFETY: An `UnsafeCell` has the layout of its value, and no invariants of its own.
    unsafe { pin_init::cast_init(value) }
}
