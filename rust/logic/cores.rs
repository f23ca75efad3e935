// SPDX-License-Identifier: GPL-2.0

//! The types of cores in a machine. All CPUs whose cores are of the same type share one PMU.
//!
//! Most machines have one type, hybrids two or three.

use core::fmt;

/// Maximum number of types: Arrow Lake-H has big, small and low-power cores.
pub const MAX_TYPES: usize = 3;

/// The display models of Alder Lake and Raptor Lake, of Intel's family 6.
pub const ALDER_LAKE: [u8; 5] = [0x97, 0x9a, 0xb7, 0xba, 0xbf];

/// The type of a CPU's core.
///
/// The types of a hybrid are in the order in which the built-in driver registers their PMUs
/// (`intel_hybrid_pmu_type_map`, `arch/x86/events/intel/core.c`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CoreType {
    /// The type in a machine whose cores are all alike.
    Only,
    /// A small core of a hybrid.
    Small,
    /// A big core of a hybrid.
    Big,
}

impl CoreType {
    /// The types of a hybrid.
    pub const HYBRID: [Self; 2] = [Self::Small, Self::Big];

    /// Returns the type in EAX of CPUID leaf 0x1A on a hybrid; [`None`] if it is unknown. CPUs
    /// without the leaf are big cores: they belong to dies without small ones. Mainline:
    /// `find_hybrid_pmu_for_cpu()`, `adl_get_hybrid_cpu_type()`, `arch/x86/events/intel/core.c`.
    pub const fn of_hybrid(eax: u32) -> Option<Self> {
        match eax >> 24 {
            0x20 => Some(Self::Small),
            0x00 | 0x40 => Some(Self::Big),
            _ => None,
        }
    }

    /// Returns the name of the PMU of these cores.
    pub const fn pmu_name(self) -> &'static core::ffi::CStr {
        match self {
            Self::Only => c"cpu",
            Self::Small => c"cpu_atom",
            Self::Big => c"cpu_core",
        }
    }

    /// Returns whether the PMU of these cores has the event type for raw events. Otherwise its type
    /// is a dynamic one.
    pub const fn is_raw(self) -> bool {
        !matches!(self, Self::Small)
    }
}

/// The start of a message about the PMU of a type of core: on a hybrid its name.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::cores::{CoreType, Prefix};
///
/// assert_eq!(Prefix(CoreType::Small).to_string(), "cpu_atom: ");
/// assert_eq!(Prefix(CoreType::Only).to_string(), "");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Prefix(pub CoreType);

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            CoreType::Only => Ok(()),
            core => write!(f, "{}: ", core.pmu_name().to_str().unwrap_or_default()),
        }
    }
}

/// A list with one item for each type of core.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::cores::PerType;
///
/// let mut counters = PerType::new();
/// assert_eq!(counters.push(8), Ok(0));
/// assert_eq!(counters.push(6), Ok(1));
/// assert_eq!(counters.iter().max(), Some(&8));
/// ```
#[derive(Debug)]
pub struct PerType<T> {
    /// The items come first, then [`None`].
    items: [Option<T>; MAX_TYPES],
}

impl<T> PerType<T> {
    /// Makes an empty list.
    pub const fn new() -> Self {
        Self {
            items: [const { None }; MAX_TYPES],
        }
    }

    /// Appends `item`, and returns its index. Fails with `item` if the list is full.
    pub fn push(&mut self, item: T) -> Result<usize, T> {
        let free = self.items.iter_mut().enumerate();
        match free.into_iter().find(|(_, slot)| slot.is_none()) {
            Some((index, slot)) => {
                *slot = Some(item);
                Ok(index)
            }
            None => Err(item),
        }
    }

    /// Returns the item at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.items.get(index)?.as_ref()
    }

    /// Returns the items, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.items.iter().flatten()
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Applies `f` to each item in order. On an error, drops the previous results.
    pub fn try_map<U, E>(self, mut f: impl FnMut(T) -> Result<U, E>) -> Result<PerType<U>, E> {
        let mut made = PerType::new();
        for (slot, item) in made.items.iter_mut().zip(self.items) {
            *slot = item.map(&mut f).transpose()?;
        }
        Ok(made)
    }

    /// Returns the results of `f` for each item.
    pub fn map_ref<'a, U>(&'a self, mut f: impl FnMut(&'a T) -> U) -> PerType<U> {
        PerType {
            items: self.items.each_ref().map(|item| item.as_ref().map(&mut f)),
        }
    }

    /// Applies `f` to a reference to each item, as [`try_map`](Self::try_map) does.
    pub fn try_map_ref<U, E>(&self, f: impl FnMut(&T) -> Result<U, E>) -> Result<PerType<U>, E> {
        PerType {
            items: self.items.each_ref().map(Option::as_ref),
        }
        .try_map(f)
    }

    /// Applies `take` to the items in reverse order. If it fails, reverts the items taken so far in
    /// the opposite order by `revert`.
    ///
    /// Then fails with the items and the error. Items for which `revert` returns [`None`] are
    /// missing, and later items move up to their places.
    pub fn take_all<U, E>(
        self,
        mut take: impl FnMut(T) -> Result<U, (T, E)>,
        mut revert: impl FnMut(U) -> Option<T>,
    ) -> Result<PerType<U>, (Self, E)> {
        let mut taken = PerType::new();
        let mut left = Self::new();
        let mut failed = None;
        let slots = taken.items.iter_mut().zip(left.items.iter_mut());
        for (item, (taken, left)) in self.items.into_iter().zip(slots).rev() {
            match item {
                Some(item) if failed.is_none() => match take(item) {
                    Ok(item) => *taken = Some(item),
                    Err((item, error)) => {
                        *left = Some(item);
                        failed = Some(error);
                    }
                },
                item => *left = item,
            }
        }
        let Some(error) = failed else {
            return Ok(taken);
        };
        for item in taken.items.into_iter().flatten() {
            if let Some(item) = revert(item) {
                // There is room: the list had this many items before.
                let _ = left.push(item);
            }
        }
        Err((left, error))
    }
}

impl PerType<CoreType> {
    /// Makes a list of the types for which `exists` returns true, in their order.
    pub fn of(exists: impl Fn(CoreType) -> bool) -> Self {
        let mut types = Self::new();
        for core in CoreType::HYBRID.into_iter().filter(|core| exists(*core)) {
            // There is room for all types.
            let _ = types.push(core);
        }
        types
    }

    /// Makes the list of a machine whose cores are all alike.
    pub fn only() -> Self {
        let mut types = Self::new();
        // There is room.
        let _ = types.push(CoreType::Only);
        types
    }

    /// Returns the index of `core`, if it is in the list.
    pub fn find(&self, core: CoreType) -> Option<usize> {
        self.iter().position(|it| *it == core)
    }
}

impl<T> Default for PerType<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        cell::RefCell,
        string::String,
        vec::Vec, //
    };

    fn list(items: &[u8]) -> PerType<u8> {
        let mut list = PerType::new();
        for item in items {
            list.push(*item).unwrap();
        }
        list
    }

    fn items<T: Copy>(list: &PerType<T>) -> Vec<T> {
        list.iter().copied().collect()
    }

    #[test]
    fn a_list_has_room_for_all_types_and_no_more() {
        let mut three = list(&[7, 8, 9]);
        assert_eq!(three.push(10), Err(10));
        assert_eq!(items(&three), [7, 8, 9]);
        assert_eq!(
            (three.get(0), three.get(2), three.get(3)),
            (Some(&7), Some(&9), None)
        );
        assert_eq!(three.get(usize::MAX), None);
        assert_eq!((three.len(), list(&[]).len()), (3, 0));
        assert!(!three.is_empty() && PerType::<u8>::new().is_empty());
    }

    /// Counts the drops.
    struct Dropped<'a>(u8, &'a RefCell<Vec<u8>>);

    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.1.borrow_mut().push(self.0);
        }
    }

    #[test]
    fn map_keeps_the_order_and_drops_its_results_on_an_error() {
        let doubled = list(&[1, 2, 3]).try_map(|it| Ok::<_, ()>(2 * it));
        assert_eq!(items(&doubled.unwrap()), [2, 4, 6]);

        let drops = RefCell::new(Vec::new());
        let made = list(&[1, 2, 3]).try_map(|it| match it {
            3 => Err("three"),
            _ => Ok(Dropped(it, &drops)),
        });
        assert_eq!(made.err(), Some("three"));
        assert_eq!(*drops.borrow(), [1, 2]);
    }

    /// Takes over `count` PMUs, of which number `fails` is in use and number `lost` cannot be given
    /// back. Returns the log, the PMUs in the resulting list, and whether all were taken over.
    fn take(count: u8, fails: Option<u8>, lost: Option<u8>) -> (String, Vec<u8>, bool) {
        let log = RefCell::new(String::new());
        let say =
            |what: char, number: u8| log.borrow_mut().extend([what, char::from(b'0' + number)]);
        let numbers: Vec<u8> = (0..count).collect();
        let result = list(&numbers).take_all(
            |it| match Some(it) == fails {
                true => {
                    say('!', it);
                    Err((it, "busy"))
                }
                false => {
                    say('-', it);
                    Ok([it])
                }
            },
            |[it]| {
                say('+', it);
                (Some(it) != lost).then_some(it)
            },
        );
        let (left, all) = match result {
            Ok(taken) => (taken.iter().map(|[it]| *it).collect(), true),
            Err((left, error)) => {
                assert_eq!(error, "busy");
                (items(&left), false)
            }
        };
        (log.into_inner(), left, all)
    }

    #[test]
    fn all_are_taken_in_the_reverse_order() {
        for (count, log) in [(0, ""), (1, "-0"), (2, "-1-0"), (3, "-2-1-0")] {
            let (said, left, all) = take(count, None, None);
            assert_eq!((&*said, all), (log, true));
            assert_eq!(left, (0..count).collect::<Vec<u8>>());
        }
    }

    /// Undoing in the reverse order restores the order in which the perf core asks PMUs.
    #[test]
    fn a_failure_at_any_step_gives_back_those_before() {
        for (count, fails, log) in [
            (1, 0, "!0"),
            (2, 1, "!1"),
            (2, 0, "-1!0+1"),
            (3, 2, "!2"),
            (3, 1, "-2!1+2"),
            (3, 0, "-2-1!0+1+2"),
        ] {
            let (said, left, all) = take(count, Some(fails), None);
            assert_eq!((&*said, all), (log, false));
            assert_eq!(left, (0..count).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn one_that_cannot_be_given_back_is_missing() {
        let (said, left, all) = take(3, Some(0), Some(2));
        assert_eq!((&*said, all), ("-2-1!0+1+2", false));
        assert_eq!(left, [0, 1]);
    }

    #[test]
    fn the_types_are_in_the_built_in_drivers_order() {
        use CoreType::{
            Big,
            Only,
            Small, //
        };

        for (eax, core) in [
            (0x4000_0001, Some(Big)),
            (0x2000_0001, Some(Small)),
            (0, Some(Big)),
            (0x3000_0001, None),
        ] {
            assert_eq!(CoreType::of_hybrid(eax), core);
        }
        let types = PerType::of(|_| true);
        assert_eq!(items(&types), [Small, Big]);
        assert_eq!(
            [Small, Big, Only].map(|core| types.find(core)),
            [Some(0), Some(1), None]
        );
        let big = PerType::of(|core| core == Big);
        assert_eq!((items(&big), big.find(Small)), (vec![Big], None));
        assert_eq!(items(&PerType::only()), [Only]);
    }
}
