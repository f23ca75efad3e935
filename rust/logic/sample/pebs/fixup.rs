// SPDX-License-Identifier: GPL-2.0

//! Finding the address of an instruction, given the address of the next instruction and the last
//! branch before that.
//!
//! Records of the [first format](crate::logic::capabilities::PebsFormat::Nehalem) only have the
//! address of the next instruction, and instructions cannot be decoded backwards. So the code is
//! decoded forwards, from the target of the last branch up to this address.
//!
//! Mainline: `intel_pmu_pebs_fixup_ip()`, `arch/x86/events/intel/ds.c`.
//!
//! Context: any, NMIs included.

/// The longest code that is read, in bytes.
pub const MAX_CODE: usize = 4096;

/// The part of the code that has to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// No part: this is the instruction.
    Found(u64),
    /// The code at this address, with this number of bytes, up to the next instruction.
    Read(u64, usize),
    /// No part: there is no branch, the branch is not the last one before the next instruction, the
    /// code between the two is longer than [`MAX_CODE`], or the branch's address must not be shown
    /// to the user.
    Unknown,
}

/// Begins to search for the instruction before `next`, where the last branch went from `from` to
/// `to`.
///
/// `in_kernel` is set if the event counts in the kernel. Otherwise the address of a branch from the
/// kernel to user mode is not shown to the event's user. Mainline reports it.
pub fn search(next: u64, from: u64, to: u64, in_kernel: bool) -> Search {
    let is_kernel = |address: u64| address >> 63 != 0;
    if from == 0 || to == 0 || is_kernel(next) != is_kernel(to) {
        return Search::Unknown;
    }
    match next.wrapping_sub(to) {
        0 if is_kernel(from) && !in_kernel => Search::Unknown,
        // The instruction is the branch.
        0 => Search::Found(from),
        // CAST: at most 4096.
        size if size <= MAX_CODE as u64 => Search::Read(to, size as usize),
        _ => Search::Unknown,
    }
}

/// Returns the offset of the last instruction in `code`, which has to consist of complete
/// instructions. Returns [`None`] if it does not, if it is empty, or if an instruction is unknown.
/// `length` returns the length of the instruction at the beginning of its argument.
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
        // The user's own instructions are for all events.
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
