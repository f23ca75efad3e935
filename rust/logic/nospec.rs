// SPDX-License-Identifier: GPL-2.0

//! Indices that user space chooses, and CPUs that run ahead of the check (Spectre, variant 1).

use core::hint::black_box;

/// `index` if it is below `len`, else 0: also where the CPU has predicted that it is, and is wrong.
///
/// To be applied behind the check, before a table is read. Without a branch, as
/// `array_index_mask_nospec()` of `include/linux/nospec.h`; neither may be above `isize::MAX`.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::nospec::masked;
///
/// assert_eq!(masked(9, 10), 9);
/// assert_eq!(masked(10, 10), 0);
/// ```
#[inline]
pub fn masked(index: usize, len: usize) -> usize {
    // The compiler is not to know that the check has been passed: it would leave out what follows.
    let index = black_box(index);
    // The top bit is set where the index is beyond the last.
    let beyond = index | len.wrapping_sub(1).wrapping_sub(index);
    index & (beyond >> (usize::BITS - 1)).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn masked_or_zero() {
        for len in 1..20 {
            for index in 0..40 {
                let expected = if index < len { index } else { 0 };
                assert_eq!(masked(index, len), expected, "{index} of {len}");
            }
            assert_eq!(masked(isize::MAX as usize, len), 0);
        }
        assert_eq!(masked(3, 0), 0);
    }
}
