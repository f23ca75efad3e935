// SPDX-License-Identifier: GPL-2.0

//! The layouts of the running kernel's structures, compared with the layouts that the module was
//! built for.
//!
//! In the kernel proper, both are the same.

use super::{
    btf::{
        Btf,
        Place,
        Unknown, //
    },
    init::copied,
    symbols::Symbols, //
};
use crate::bindings::layouts::{
    self,
    PUBLIC, //
};
use core::{
    fmt,
    slice, //
};
use kernel::prelude::*;

pub(crate) use layouts::Line;

/// The structures of the built-in driver, which no header for modules declares.
const PRIVATE: [&str; 3] = ["x86_pmu", "cpu_hw_events", "er_account"];

/// The names of all structures.
const STRUCTURES: [&str; count() + PRIVATE.len()] = {
    let mut names = [""; count() + PRIVATE.len()];
    let mut known = 0;
    let mut line = 0;
    while line < PUBLIC.len() {
        if starts_a_structure(line) {
            names[known] = PUBLIC[line].structure;
            known += 1;
        }
        line += 1;
    }
    let mut private = 0;
    while private < PRIVATE.len() {
        names[known + private] = PRIVATE[private];
        private += 1;
    }
    names
};

/// Returns the number of structures in the table.
const fn count() -> usize {
    let mut count = 0;
    let mut line = 0;
    while line < PUBLIC.len() {
        count += starts_a_structure(line) as usize;
        line += 1;
    }
    count
}

/// Returns whether a line of the table is for another structure than the line before.
const fn starts_a_structure(line: usize) -> bool {
    if line == 0 {
        return true;
    }
    let (a, b) = (PUBLIC[line - 1].structure, PUBLIC[line].structure);
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut same = a.len() == b.len();
    let mut i = 0;
    while same && i < a.len() {
        same = a[i] == b[i];
        i += 1;
    }
    !same
}

/// The layouts of the running kernel.
pub struct Running {
    /// [`None`] if the layouts are assumed to be those that the module was built for.
    btf: Option<KBox<Btf<'static, { STRUCTURES.len() }>>>,
}

impl Running {
    /// Finds the running kernel's BTF.
    ///
    /// Fails with `ENOENT` if the kernel has none (no `CONFIG_DEBUG_INFO_BTF`), with `EINVAL` if it
    /// is malformed, or as [`address_of`](super::symbols::address_of). Process context.
    pub fn find() -> Result<Self> {
        let symbols = Symbols::new()?;
        let start: *const u8 = symbols.find(c"__start_BTF")?.as_ptr().cast();
        let stop: *const u8 = symbols.find(c"__stop_BTF")?.as_ptr().cast();
        let length = stop.addr().checked_sub(start.addr()).ok_or(ENOENT)?;
        // SAFETY: The linker puts the two symbols around BTF (`BTF` in
        // `include/asm-generic/vmlinux.lds.h`), which is read-only data that stays.
        let data = unsafe { slice::from_raw_parts(start, length) };
        let unread = copied(const { &Btf::unread(STRUCTURES) });
        let mut btf: KBox<Btf<'static, { STRUCTURES.len() }>> = KBox::init(unread, GFP_KERNEL)?;
        btf.read(data).map_err(|_| EINVAL)?;
        Ok(Self { btf: Some(btf) })
    }

    /// Assumes that the running kernel's layouts are those that the module was built for.
    pub fn as_built() -> Self {
        Self { btf: None }
    }

    /// Returns whether the running kernel's layouts are known from BTF, not assumed.
    pub fn is_known(&self) -> bool {
        self.btf.is_some()
    }

    /// Compares the structures in headers for modules with those that the module was built for.
    ///
    /// Fails with the first difference.
    pub fn compare(&self) -> Result<(), Mismatch> {
        PUBLIC
            .iter()
            .try_for_each(|line| self.offset_of(line).map(drop))
    }

    /// Returns the offset of a member in the running kernel; 0 for a structure itself. Fails if it
    /// is not found, if its size differs from the line's, or if its offset differs although it [has
    /// to be the same](Line::is_fixed).
    ///
    /// If the layouts are assumed, returns the line's offset, and fails if there is none.
    pub(crate) fn offset_of(&self, line: &Line) -> Result<u32, Mismatch> {
        let mismatch = |found| Mismatch { line: *line, found };
        let Some(btf) = &self.btf else {
            return line.offset.ok_or(mismatch(Err(Unknown::NoBtf)));
        };
        let found = if line.member.is_empty() {
            let size = btf.size_of(line.structure);
            size.map(|size| Place { offset: 0, size })
        } else {
            btf.member(line.structure, line.member)
        };
        match found {
            Ok(place) if line.accepts(place.offset, place.size) => Ok(place.offset),
            _ => Err(mismatch(found)),
        }
    }
}

/// A difference between the running kernel's layout and the one that the module was built for.
pub struct Mismatch {
    line: Line,
    found: Result<Place, Unknown>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = &self.line;
        write!(f, "struct {}", line.structure)?;
        if !line.member.is_empty() {
            write!(f, ", member {}", line.member)?;
        }
        write!(f, ": built for {} bytes", line.size)?;
        let is_shown = line.is_fixed && !line.member.is_empty();
        if let Some(offset) = line.offset.filter(|_| is_shown) {
            write!(f, " at offset {offset}")?;
        }
        match self.found {
            Ok(place) if line.member.is_empty() => write!(f, ", this kernel has {}", place.size),
            Ok(place) => write!(f, ", this kernel has {place}"),
            Err(unknown) => write!(f, ", this kernel has {unknown}"),
        }
    }
}
