// SPDX-License-Identifier: GPL-2.0

//! The layouts of structures in BTF, the description of a kernel's C types
//! (`include/uapi/linux/btf.h`, `Documentation/bpf/btf.rst`).
//!
//! [`Btf::read`] reads the types once. It remembers the ids of the wanted structures, and where
//! every n-th type starts, so that any type is found quickly and without an allocation.
//!
//! The data need not be trusted: it may be cut off, or refer to itself. All work is bounded. This
//! file uses no kernel types and no crate but `core`: `selftests/host` compiles and tests it on the
//! host.

use core::fmt;

/// The first field of BTF in the machine's byte order.
const MAGIC: u16 = 0xeb9f;
const VERSION: u8 = 1;
/// The bytes of a header without the layout of kinds.
const HEADER: usize = 24;
/// The bytes of a header with the layout of kinds, since Linux 7.1.
const HEADER_WITH_LAYOUT: usize = 32;

/// The 32-bit words that each type has, of any kind.
const WORDS: usize = 3;
/// The 32-bit words of a member of a structure.
const MEMBER_WORDS: usize = 3;

/// `BTF_KIND_TYPEDEF`.
const TYPEDEF: u32 = 8;

/// The most definitions of a structure: structures of different files can have the same name.
const DEFINITIONS: usize = 4;
/// The size of [`Btf::starts`].
const STARTS: usize = 256;
/// The most types that an alias, a qualifier or an array may lead through.
const CHAIN: usize = 32;
/// The deepest nesting of structures without a name.
const DEPTH: usize = 16;
/// The most members that a search may look at.
const STEPS: u32 = 1 << 16;

/// `BTF_KIND_*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Int,
    Pointer,
    Array,
    Structure,
    Enum,
    /// A typedef, a qualifier or a tag: another name for a type.
    Alias,
    Float,
    /// A kind without a size, or an unknown one.
    Other,
}

impl Kind {
    fn new(kind: u32) -> Self {
        match kind {
            1 => Self::Int,
            2 => Self::Pointer,
            3 => Self::Array,
            4 | 5 => Self::Structure,
            6 | 19 => Self::Enum,
            8..=11 | 18 => Self::Alias,
            16 => Self::Float,
            _ => Self::Other,
        }
    }
}

/// Returns the words that a type of `kind` has after its first [`WORDS`]: its own, and those of
/// each element.
fn known_words(kind: u32) -> Option<(usize, usize)> {
    Some(match kind {
        1 | 14 | 17 => (1, 0),
        2 | 7..=12 | 16 | 18 => (0, 0),
        3 => (3, 0),
        4 | 5 | 15 | 19 => (0, 3),
        6 | 13 => (0, 2),
        _ => return None,
    })
}

/// The reason why a layout is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// The data is not BTF of version 1.
    NoBtf,
    /// The data is cut off, or contradicts itself.
    Malformed,
    /// The data has types of an unknown kind, and does not say how long these are.
    Kind(u32),
    /// No structure has the name.
    Structure,
    /// The structure lacks the member.
    Member,
    /// The member is a bit field.
    BitField,
    /// Structures of the same name differ in the member.
    Ambiguous,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBtf => f.write_str("no BTF of version 1"),
            Self::Malformed => f.write_str("malformed BTF"),
            Self::Kind(kind) => write!(f, "BTF with types of the unknown kind {kind}"),
            Self::Structure => f.write_str("no such structure"),
            Self::Member => f.write_str("no such member"),
            Self::BitField => f.write_str("a bit field"),
            Self::Ambiguous => f.write_str("several, which differ"),
        }
    }
}

/// The place of a member in its structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Bytes from the start of the structure.
    pub offset: u32,
    /// In bytes.
    pub size: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at offset {}", self.size, self.offset)
    }
}

/// A type as encoded in BTF.
#[derive(Clone, Copy)]
struct Type {
    name: u32,
    info: u32,
    /// The size in bytes, or the id of another type.
    size_or_type: u32,
    /// The place of the words after the first [`WORDS`], in the section of types.
    more: usize,
}

impl Type {
    fn raw_kind(&self) -> u32 {
        (self.info >> 24) & 0x7f
    }

    fn kind(&self) -> Kind {
        Kind::new(self.raw_kind())
    }

    fn elements(&self) -> u32 {
        self.info & 0xff_ffff
    }

    /// Returns whether the words for offsets of members also hold the widths of bit fields.
    fn has_widths(&self) -> bool {
        self.info >> 31 != 0
    }
}

/// The ids of the structures of one name.
#[derive(Clone, Copy)]
struct Definitions {
    ids: [u32; DEFINITIONS],
    count: usize,
}

/// BTF, with the ids of `N` wanted structures. Too large for the kernel's stack.
#[derive(Clone, Copy)]
pub struct Btf<'a, const N: usize> {
    types: &'a [u8],
    strings: &'a [u8],
    /// The table with the lengths of types of further kinds; empty if there is none.
    layouts: &'a [u8],
    wanted: [&'a str; N],
    /// The definitions of each of the `wanted`.
    definitions: [Definitions; N],
    /// The places of the types 1, 1 + 2^`shift`, … in `types`.
    starts: [u32; STARTS],
    shift: u32,
    /// The highest id of a type.
    last: u32,
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// Returns the section of `data` whose offset, from the end of the header, and length are at `at`.
fn section(data: &[u8], header: usize, at: usize) -> Option<&[u8]> {
    let start = header.checked_add(u32_at(data, at)? as usize)?;
    data.get(start..start.checked_add(u32_at(data, at + 4)? as usize)?)
}

impl<'a, const N: usize> Btf<'a, N> {
    /// Makes a value without BTF: [`read`](Self::read) will look for the `wanted` structures,
    /// unions and typedefs of these.
    pub const fn unread(wanted: [&'a str; N]) -> Self {
        Self {
            types: &[],
            strings: &[],
            layouts: &[],
            wanted,
            definitions: [Definitions {
                ids: [0; DEFINITIONS],
                count: 0,
            }; N],
            starts: [0; STARTS],
            shift: 0,
            last: 0,
        }
    }

    /// Reads `data`, once, and looks for the wanted structures in it.
    ///
    /// A structure without a definition, or with more than can be remembered, is an error only when
    /// its layout is looked up.
    pub fn read(&mut self, data: &'a [u8]) -> Result<(), Unknown> {
        let magic = data.get(..2).and_then(|magic| magic.try_into().ok());
        if magic.map(u16::from_ne_bytes) != Some(MAGIC) || data.get(2) != Some(&VERSION) {
            return Err(Unknown::NoBtf);
        }
        self.find_sections(data).ok_or(Unknown::Malformed)?;
        self.read_types()
    }

    /// Finds the sections of `data`.
    fn find_sections(&mut self, data: &'a [u8]) -> Option<()> {
        let header = u32_at(data, 4)? as usize;
        if header < HEADER {
            return None;
        }
        self.types = section(data, header, 8)?;
        self.strings = section(data, header, 16)?;
        if header >= HEADER_WITH_LAYOUT {
            self.layouts = section(data, header, HEADER)?;
        }
        Some(())
    }

    /// Goes through all types, typedefs included: a structure may have no other name than a
    /// typedef.
    fn read_types(&mut self) -> Result<(), Unknown> {
        let mut at = 0;
        while at < self.types.len() {
            self.note_start(at)?;
            self.last += 1;
            let (found, next) = self.type_and_next(at)?;
            let is_named = found.kind() == Kind::Structure || found.raw_kind() == TYPEDEF;
            if is_named && found.name != 0 {
                let name = self.string(found.name)?;
                for (wanted, definitions) in self.wanted.iter().zip(&mut self.definitions) {
                    if starts_as_string(name, wanted) {
                        if let Some(id) = definitions.ids.get_mut(definitions.count) {
                            *id = self.last;
                        }
                        definitions.count += 1;
                    }
                }
            }
            at = next;
        }
        Ok(())
    }

    /// Remembers `at`, where the next type starts, if [`starts`](Self::starts) has an entry for
    /// this type.
    fn note_start(&mut self, at: usize) -> Result<(), Unknown> {
        let at = u32::try_from(at).map_err(|_| Unknown::Malformed)?;
        if (self.last >> self.shift) as usize == STARTS {
            // The table is full: keep every second entry.
            for i in 0..STARTS / 2 {
                self.starts[i] = self.starts[2 * i];
            }
            self.shift += 1;
        }
        if self.last & ((1 << self.shift) - 1) == 0 {
            if let Some(start) = self.starts.get_mut((self.last >> self.shift) as usize) {
                *start = at;
            }
        }
        Ok(())
    }

    /// Returns the type at a place, and the place of the next type.
    fn type_and_next(&self, at: usize) -> Result<(Type, usize), Unknown> {
        let word = |n: usize| u32_at(self.types, at.checked_add(4 * n)?);
        let word = |n| word(n).ok_or(Unknown::Malformed);
        let found = Type {
            name: word(0)?,
            info: word(1)?,
            size_or_type: word(2)?,
            more: at + 4 * WORDS,
        };
        let bytes = self.bytes_after(&found)?;
        let next = found.more.checked_add(bytes).ok_or(Unknown::Malformed)?;
        if next > self.types.len() {
            return Err(Unknown::Malformed);
        }
        Ok((found, next))
    }

    /// Returns the bytes that a type has after its first [`WORDS`].
    fn bytes_after(&self, found: &Type) -> Result<usize, Unknown> {
        let kind = found.raw_kind();
        let (own, each) = match known_words(kind) {
            Some((own, each)) => (4 * own, 4 * each),
            // `struct btf_layout`.
            None => match self.layouts.get(4 * kind as usize..4 * kind as usize + 4) {
                Some(&[own, each, _, _]) => (own.into(), each.into()),
                _ => return Err(Unknown::Kind(kind)),
            },
        };
        let all = (found.elements() as usize).checked_mul(each);
        all.and_then(|all| all.checked_add(own))
            .ok_or(Unknown::Malformed)
    }

    /// Returns the section of strings from the string at `at` on.
    fn string(&self, at: u32) -> Result<&'a [u8], Unknown> {
        self.strings.get(at as usize..).ok_or(Unknown::Malformed)
    }

    /// Returns the type `id`. Id 0 is `void`, which has no type here.
    fn by_id(&self, id: u32) -> Result<Type, Unknown> {
        if id == 0 || id > self.last {
            return Err(Unknown::Malformed);
        }
        let index = id - 1;
        let start = self.starts.get((index >> self.shift) as usize);
        let mut at = *start.ok_or(Unknown::Malformed)? as usize;
        for _ in 0..index & ((1 << self.shift) - 1) {
            at = self.type_and_next(at)?.1;
        }
        Ok(self.type_and_next(at)?.0)
    }

    /// Returns the type `id`, after resolving typedefs, qualifiers and tags.
    fn resolve(&self, mut id: u32) -> Result<Type, Unknown> {
        for _ in 0..CHAIN {
            let found = self.by_id(id)?;
            if found.kind() != Kind::Alias {
                return Ok(found);
            }
            id = found.size_or_type;
        }
        Err(Unknown::Malformed)
    }

    /// Returns the size of a type in bytes.
    fn size(&self, mut id: u32) -> Result<u32, Unknown> {
        let mut elements: u32 = 1;
        for _ in 0..CHAIN {
            let found = self.resolve(id)?;
            let size = match found.kind() {
                Kind::Int | Kind::Structure | Kind::Enum | Kind::Float => found.size_or_type,
                Kind::Pointer => 8,
                Kind::Array => {
                    let word =
                        |n: usize| u32_at(self.types, found.more + 4 * n).ok_or(Unknown::Malformed);
                    id = word(0)?;
                    elements = elements.checked_mul(word(2)?).ok_or(Unknown::Malformed)?;
                    continue;
                }
                Kind::Alias | Kind::Other => return Err(Unknown::Malformed),
            };
            return size.checked_mul(elements).ok_or(Unknown::Malformed);
        }
        Err(Unknown::Malformed)
    }

    /// Returns a member of the structure `within`: its offset in bits, its type, and its width if
    /// it is a bit field. Also searches members without a name.
    fn named(
        &self,
        within: &Type,
        name: &str,
        depth: usize,
        steps: &mut u32,
    ) -> Result<Option<(u32, u32, u32)>, Unknown> {
        for n in 0..within.elements() as usize {
            *steps = steps.checked_sub(1).ok_or(Unknown::Malformed)?;
            let at = within.more + 4 * MEMBER_WORDS * n;
            let word = |n: usize| u32_at(self.types, at + 4 * n).ok_or(Unknown::Malformed);
            let (member, id, place) = (word(0)?, word(1)?, word(2)?);
            let (bits, width) = if within.has_widths() {
                (place & 0xff_ffff, place >> 24)
            } else {
                (place, 0)
            };
            let member = self.string(member)?;
            if starts_as_string(member, name) {
                return Ok(Some((bits, id, width)));
            }
            if !starts_as_string(member, "") || depth == DEPTH {
                continue;
            }
            let inner = self.resolve(id)?;
            if inner.kind() != Kind::Structure {
                continue;
            }
            if let Some((inner, id, width)) = self.named(&inner, name, depth + 1, steps)? {
                let bits = bits.checked_add(inner).ok_or(Unknown::Malformed)?;
                return Ok(Some((bits, id, width)));
            }
        }
        Ok(None)
    }

    /// Returns the place of the member at `path` in the structure `id`.
    fn place_in(&self, id: u32, path: &str) -> Result<Place, Unknown> {
        let mut id = id;
        let mut bits: u32 = 0;
        for name in path.split('.') {
            let within = self.resolve(id)?;
            if within.kind() != Kind::Structure || name.is_empty() {
                return Err(Unknown::Member);
            }
            let found = self.named(&within, name, 0, &mut { STEPS })?;
            let (offset, member, width) = found.ok_or(Unknown::Member)?;
            bits = bits.checked_add(offset).ok_or(Unknown::Malformed)?;
            if width != 0 || bits % 8 != 0 {
                return Err(Unknown::BitField);
            }
            id = member;
        }
        Ok(Place {
            offset: bits / 8,
            size: self.size(id)?,
        })
    }

    /// Returns the result of `of` for a structure. It has to be the same for all its definitions.
    fn in_all<T: PartialEq>(
        &self,
        structure: &str,
        of: impl Fn(u32) -> Result<T, Unknown>,
    ) -> Result<T, Unknown> {
        let mut all = self.wanted.iter().zip(&self.definitions);
        let (_, definitions) = all
            .find(|(name, _)| **name == structure)
            .ok_or(Unknown::Structure)?;
        let ids = definitions.ids.get(..definitions.count);
        let (&first, rest) = ids
            .ok_or(Unknown::Ambiguous)?
            .split_first()
            .ok_or(Unknown::Structure)?;
        let found = of(first)?;
        if rest.iter().all(|&id| of(id).as_ref() == Ok(&found)) {
            Ok(found)
        } else {
            Err(Unknown::Ambiguous)
        }
    }

    /// Returns the size of a structure in bytes.
    pub fn size_of(&self, structure: &str) -> Result<u32, Unknown> {
        self.in_all(structure, |id| self.size(id))
    }

    /// Returns the place of a member. `path` is its name, behind the names of the members that
    /// contain it: `hw.idx`. Members without a name are left out.
    ///
    /// If several structures have the name, the member has to be at the same place in all of them.
    pub fn member(&self, structure: &str, path: &str) -> Result<Place, Unknown> {
        self.in_all(structure, |id| self.place_in(id, path))
    }
}

/// Returns whether `name`, up to its end mark, is the first of `strings`.
#[inline]
fn starts_as_string(strings: &[u8], name: &str) -> bool {
    // Mostly the first letter decides: compare it without a call of `memcmp()`.
    let name_starts = name.as_bytes().first().unwrap_or(&0);
    strings.first() == Some(name_starts)
        && strings.starts_with(name.as_bytes())
        && strings.get(name.len()) == Some(&0)
}
