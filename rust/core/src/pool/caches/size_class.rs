//! The size classes of thread caches: chunks of a class have one size.

use crate::units::GRANULE;

/// One more than the last class.
const END: u8 = 40;
/// The number of classes.
pub(super) const CLASSES: usize = END as usize;
/// The largest chunk of a cache, in bytes.
pub(super) const LARGEST: u64 = SIZES[CLASSES - 1];

/// Most chunks of a class that a cache keeps; fewer of large ones.
const MOST_CHUNKS: u64 = 64;
/// Most bytes of a class that a cache keeps. With random sizes the number of chunks in a magazine is a random walk: some
/// quarter of the square of its capacity is the number of calls from one that needs the lock to the next.
const MAGAZINE_BYTES: u64 = 192 << 10;

// Tables: each allocation and each free from a cache looks into one of them, and a division takes as long as the rest.

/// The sizes of the chunks of all classes, in bytes.
const SIZES: [u64; CLASSES] = {
    let (mut sizes, mut index) = ([0; CLASSES], 0);
    while index < CLASSES {
        let granules = if index < 8 { index + 1 } else { (index % 8 + 9) << (index / 8 - 1) };
        sizes[index] = granules as u64 * GRANULE;
        index += 1;
    }
    sizes
};

/// The most chunks that a magazine of each class holds.
#[expect(clippy::cast_possible_truncation, reason = "at most MOST_CHUNKS")]
const CAPACITIES: [usize; CLASSES] = {
    let (mut capacities, mut index) = ([0; CLASSES], 0);
    while index < CLASSES {
        let fitting = MAGAZINE_BYTES / SIZES[index];
        capacities[index] = if fitting > MOST_CHUNKS { MOST_CHUNKS } else { fitting } as usize;
        index += 1;
    }
    capacities
};

/// The class of each number of granules, less one.
const CLASS_OF: [u8; (LARGEST / GRANULE) as usize] = {
    let (mut classes, mut granule, mut index) = ([0; (LARGEST / GRANULE) as usize], 0, 0);
    while granule < classes.len() {
        if (granule as u64 + 1) * GRANULE > SIZES[index as usize] {
            index += 1;
        }
        classes[granule] = index;
        granule += 1;
    }
    classes
};

/// The size class of a request: each of 1 to 16 granules is a class, and above that each power of two has eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SizeClass(u8);

impl SizeClass {
    /// Returns the class whose chunks serve a request with the least waste; `None` if the request is too large, or
    /// zero.
    #[inline(always)]
    pub(super) fn of(bytes: u64) -> Option<Self> {
        // The last granule, counted from 0; that of no bytes is beyond the table.
        let last = bytes.wrapping_sub(1) / GRANULE;
        CLASS_OF.get(usize::try_from(last).ok()?).map(|&index| Self(index))
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..END).map(Self)
    }

    #[inline(always)]
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the size of the chunks in bytes.
    #[inline(always)]
    pub(super) const fn bytes(self) -> u64 {
        SIZES[self.0 as usize]
    }

    /// Returns the most chunks that a magazine holds.
    #[inline(always)]
    pub(super) const fn capacity(self) -> usize {
        CAPACITIES[self.0 as usize]
    }

    /// Returns how many chunks a magazine gets or gives back at a time.
    pub(super) fn batch(self) -> usize {
        self.capacity() / 2
    }
}

/// The most bytes that one cache keeps: all magazines full.
pub(super) const MOST_BYTES: u64 = {
    let (mut bytes, mut index) = (0, 0);
    while index < END {
        let class = SizeClass(index);
        bytes += class.capacity() as u64 * class.bytes();
        index += 1;
    }
    bytes
};

// As the documentation of the option says.
const _: () = assert!(LARGEST == 32 << 10 && MOST_BYTES <= 7 << 20);

#[cfg(test)]
mod tests {
    use super::{LARGEST, SizeClass};
    use crate::units::{GRANULE, round_up};

    #[test]
    fn a_class_is_the_smallest_that_serves_and_wastes_less_than_an_eighth() {
        let sizes: Vec<u64> = SizeClass::all().map(SizeClass::bytes).collect();
        assert!(sizes.is_sorted_by(|one, next| one < next) && sizes.iter().all(|size| size % GRANULE == 0));
        for bytes in 1..=LARGEST {
            let class = SizeClass::of(bytes).unwrap();
            assert_eq!(Some(&class.bytes()), sizes.iter().find(|&&size| size >= bytes), "{bytes}");
            assert!(class.bytes() - round_up(bytes) <= bytes / 8, "{bytes}");
        }
        assert_eq!((SizeClass::of(0), SizeClass::of(LARGEST + 1)), (None, None));
    }
}
