// SPDX-License-Identifier: GPL-2.0

//! The address of an instruction, from that of the next one and the last branch before it.
//!
//! Records of the [first format](crate::logic::capabilities::PebsFormat::Nehalem) have the address
//! of the next instruction alone, and instructions cannot be read backwards. The code between the
//! target of the last branch and that address is read forwards instead.
//!
//! Mainline: `intel_pmu_pebs_fixup_ip()`, `arch/x86/events/intel/ds.c`.
//!
//! Context: any, NMIs included.

/// The longest code that is read, in bytes.
pub const MAX_CODE: usize = 4096;

/// The part of the code that has to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// None: this is the instruction.
    Found(u64),
    /// From the address on, up to the next instruction: so many bytes.
    Read(u64, usize),
    /// None: the branch is not the last one before the instruction, or its address is kept from the
    /// user.
    Unknown,
}

/// Begins to look for the instruction before that at `next`, when the last branch went from `from`
/// to `to`.
///
/// `in_kernel` says whether the event counts in the kernel. If not, the address of a branch from
/// the kernel to user mode is kept from its user. Mainline reports it.
pub fn search(next: u64, from: u64, to: u64, in_kernel: bool) -> Search {
    let is_kernel = |address: u64| address >> 63 != 0;
    if from == 0 || to == 0 || is_kernel(next) != is_kernel(to) {
        return Search::Unknown;
    }
    match next.wrapping_sub(to) {
        0 if is_kernel(from) && !in_kernel => Search::Unknown,
        // The instruction is the branch.
        0 => Search::Found(from),
        // CAST: no more than 4096.
        size if size <= MAX_CODE as u64 => Search::Read(to, size as usize),
        _ => Search::Unknown,
    }
}

/// Returns where the last instruction of `code` is, which begins with an instruction and ends with
/// one. [`None`] if it does not, or if one is unknown: `length` returns the length of the
/// instruction at the beginning of its argument.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::sample::pebs::fixup::last_instruction;
///
/// // Each instruction begins with its length.
/// let length = |code: &[u8]| code.first().map(|length| usize::from(*length));
/// assert_eq!(last_instruction(&[2, 0, 1, 3, 0, 0], length), Some(3));
/// assert_eq!(last_instruction(&[2, 0, 1, 3, 0], length), None);
/// ```
pub fn last_instruction(
    code: &[u8],
    mut length: impl FnMut(&[u8]) -> Option<usize>,
) -> Option<usize> {
    let mut at = 0;
    let mut last = None;
    loop {
        let rest = code.get(at..)?;
        if rest.is_empty() {
            return last;
        }
        last = Some(at);
        at = at.wrapping_add(length(rest).filter(|length| *length > 0)?);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_needs_no_code() {
        let kernel = 0xffff_ffff_8100_0000;
        for (next, from, to, expected) in [
            (0x401000, 0x402000, 0x401000, Search::Found(0x402000)),
            (0x401005, 0x402000, 0x401000, Search::Read(0x401000, 5)),
            (0x402000, 0x402000, 0x401000, Search::Read(0x401000, 0x1000)),
            (0x402001, 0x402000, 0x401000, Search::Unknown),
            (0x400fff, 0x402000, 0x401000, Search::Unknown),
            (0x401005, 0, 0x401000, Search::Unknown),
            (0x5, 0x402000, 0, Search::Unknown),
            (kernel + 1, 0x401000, kernel, Search::Read(kernel, 1)),
            (0x401005, 0x401000, kernel, Search::Unknown),
        ] {
            for in_kernel in [false, true] {
                assert_eq!(
                    search(next, from, to, in_kernel),
                    expected,
                    "{next:#x} {to:#x}"
                );
            }
        }
    }

    #[test]
    fn a_return_from_the_kernel_is_for_events_of_the_kernel() {
        let (user, kernel) = (0x401000, 0xffff_ffff_8100_0000);
        assert_eq!(search(user, kernel, user, true), Search::Found(kernel));
        assert_eq!(search(user, kernel, user, false), Search::Unknown);
        // Its own instructions are.
        assert_eq!(search(user + 5, kernel, user, false), Search::Read(user, 5));
        assert_eq!(search(kernel, user, kernel, false), Search::Found(user));
    }

    #[test]
    fn an_instruction_has_a_length() {
        assert_eq!(last_instruction(&[1, 2, 3], |_| Some(1)), Some(2));
        assert_eq!(last_instruction(&[1, 2, 3], |_| Some(3)), Some(0));
        for length in [None, Some(0), Some(2), Some(usize::MAX)] {
            assert_eq!(last_instruction(&[1, 2, 3], |_| length), None);
        }
    }
}
