// SPDX-License-Identifier: GPL-2.0

//! Protection of array indices from user space against speculation past the bounds check (Spectre
//! variant 1).

use core::hint::black_box;

/// Returns `index` if it is below `len`, otherwise 0, even while the CPU speculates past a bounds
/// check.
///
/// Call this after the check and before the access. Computes the result without a branch, as
/// `array_index_mask_nospec()` of `include/linux/nospec.h` does. Neither argument may exceed
/// `isize::MAX`.
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
    // Hide the result of the check from the compiler, which would otherwise remove the mask.
    let index = black_box(index);
    // The top bit is set if the index is out of range.
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
