// SPDX-License-Identifier: GPL-2.0

//! The layouts of the kernel's structures as the C compiler sees them, which Kbuild extracts from
//! `rust/layouts.c`.

#![warn(clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks)]

use core::{
    marker::PhantomData,
    mem::size_of, //
};

/// A member that the module relies on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// The name of its structure.
    pub(crate) structure: &'static str,
    /// Its name, behind the names of the members that contain it (`hw.idx`). Empty for the
    /// structure itself.
    pub(crate) member: &'static str,
    /// Bytes from the start of the structure, if the module was built with its definition.
    pub(crate) offset: Option<u32>,
    /// In bytes.
    pub(crate) size: u32,
    /// Set if the offset in the running kernel has to be the same.
    pub(crate) is_fixed: bool,
}

impl Line {
    /// Returns whether the module can work with a member of `size` at `offset`.
    pub(crate) fn accepts(&self, offset: u32, size: u32) -> bool {
        size == self.size && (!self.is_fixed || Some(offset) == self.offset)
    }
}

/// The place of a member in a structure `S` of the built-in driver, as found in the running kernel.
///
/// # Invariants
///
/// A `T` at `offset` is inside of each `S` and is aligned.
pub(crate) struct Member<S, T> {
    offset: u32,
    _types: PhantomData<fn(S) -> T>,
}

impl<S, T> Clone for Member<S, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, T> Copy for Member<S, T> {}

impl<S, T> Member<S, T> {
    /// # Safety
    ///
    /// `offset` must be the offset of a member of `S`, whose type is `T` or has the same layout.
    unsafe fn new(offset: u32) -> Self {
        // INVARIANT: By this function's requirements.
        Self {
            offset,
            _types: PhantomData,
        }
    }

    /// Returns the address of the member in the structure at `structure`. Any context.
    #[inline(always)]
    pub(crate) fn of(self, structure: *mut S) -> *mut T {
        structure.wrapping_byte_add(self.offset as usize).cast()
    }
}

macro_rules! public {
    ($($structure:ident $member:literal [$($path:tt)*] $offset:literal $size:literal;)*) => {
        /// The members of structures in headers for modules.
        pub(crate) const PUBLIC: &[Line] = &[$(Line {
            structure: stringify!($structure),
            member: $member,
            offset: Some($offset),
            size: $size,
            is_fixed: true,
        },)*];

        $(same_for_bindgen!($structure $member [$($path)*] $offset $size);)*
    };
}

/// Asserts that bindgen's layout is the same, except for members without a path in bindgen's
/// structure.
macro_rules! same_for_bindgen {
    ($structure:ident "" [] $offset:literal $size:literal) => {
        const _: () = assert!(
            size_of::<super::$structure>() == $size,
            concat!("bindgen and the C compiler differ in struct ", stringify!($structure))
        );
    };
    ($structure:ident $member:literal [] $offset:literal $size:literal) => {};
    ($structure:ident $member:literal [$($path:tt)+] $offset:literal $size:literal) => {
        const _: () = {
            // SAFETY: The closure is never called: only its type is used.
            let member = |structure: *const super::$structure| unsafe {
                &raw const (*structure).$($path)+
            };
            assert!(
                core::mem::offset_of!(super::$structure, $($path)+) == $offset
                    && size_of_result(member) == $size,
                concat!("bindgen and the C compiler differ in struct ", stringify!($structure),
                        ", member ", $member)
            );
        };
    };
}

/// Returns the size of the type that a function's result points to.
const fn size_of_result<S, T>(_: fn(*const S) -> *const T) -> usize {
    size_of::<T>()
}

macro_rules! private {
    ($structure:ident: $($name:ident $member:literal [$type:ty] $built:expr;)*) => {
        /// A structure of the built-in driver: the members that the module uses.
        #[derive(Clone, Copy)]
        pub(crate) struct $structure {
            $(pub(crate) $name: Member<$structure, $type>,)*
        }

        impl $structure {
            /// Finds the offset of each member by calling `offset_of`.
            ///
            /// Fails with the first error of `offset_of`.
            ///
            /// # Safety
            ///
            /// `offset_of` must return the member's offset in the running kernel, where the member
            /// must have the size that the line has.
            pub(crate) unsafe fn find<E>(
                mut offset_of: impl FnMut(&Line) -> core::result::Result<u32, E>,
            ) -> core::result::Result<Self, E> {
                Ok(Self {
                    $($name: {
                        let built: Option<(u32, u32)> = const { $built };
                        const {
                            let built: Option<(u32, u32)> = $built;
                            if let Some((_, size)) = built {
                                assert!(size as usize == size_of::<$type>());
                            }
                        }
                        let line = Line {
                            structure: stringify!($structure),
                            member: $member,
                            offset: built.map(|(offset, _)| offset),
                            size: size_of::<$type>() as u32,
                            is_fixed: false,
                        };
                        // SAFETY: By this function's requirements.
                        unsafe { Member::new(offset_of(&line)?) }
                    },)*
                })
            }
        }
    };
}

include!(env!("RPMU_LAYOUTS"));
