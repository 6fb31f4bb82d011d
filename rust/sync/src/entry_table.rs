//! A table of fixed size that any thread finds entries in, and removes them from, without a lock.
//!
//! A key first gets a **place**, under a lock of the caller's. The place is empty, or has an entry. The thread that an
//! empty place belongs to puts an entry there with two stores. Each entry has a number that no other entry ever has,
//! which decides who removes it: of several threads that found an entry exactly one does, and only as long as it is the
//! entry that they found.

use crate::primitives::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The number of buckets: a power of two.
const BUCKETS: usize = if cfg!(loom) { 1 } else { 32_768 };
const _: () = assert!(BUCKETS.is_power_of_two());
/// The places of a bucket: as many as a cache line holds.
const WAYS: usize = 3;
/// What the numbers of places of one bucket and of the next differ by: a power of two, as a division takes long.
const STRIDE: usize = 4;
/// Buckets in a group that notes whether it has keys, so that [`EntryTable::drain`] skips most of an empty table.
const GROUP: usize = if cfg!(loom) { 1 } else { 64 };

/// Instead of a key: no key has the place.
const NO_KEY: u64 = 0;
/// Instead of a number: the place is empty.
const EMPTY: u64 = 0;

/// The place of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the table has fewer places")]
    fn new(bucket: usize, way: usize) -> Self {
        Self((bucket * STRIDE + way) as u32)
    }
}

/// An entry of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// A number that no other entry ever has; not 0.
    pub number: u64,
    /// Any value.
    pub value: u32,
}

/// An entry that was found, and its place.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The entry.
    pub entry: Entry,
    /// The place of the entry in the table.
    pub place: Place,
}

/// A table with places for up to 98,304 keys; fewer if many of them have the same hash.
#[derive(Debug)]
pub struct EntryTable {
    // Of a fixed size: no access checks its place.
    buckets: Box<[Bucket; BUCKETS]>,
    has_keys: Box<[AtomicBool]>,
}

/// The places of keys with the same hash, in one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Bucket {
    keys: [AtomicU64; WAYS],
    /// Written last when an entry is put, and first when it is removed.
    numbers: [AtomicU64; WAYS],
    values: [AtomicU32; WAYS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 64);

impl EntryTable {
    /// Creates a table without keys.
    #[must_use]
    #[inline(never)]
    #[expect(clippy::missing_panics_doc, reason = "the number of buckets is a constant")]
    pub fn new() -> Self {
        let bucket = |_| Bucket {
            keys: std::array::from_fn(|_| AtomicU64::new(NO_KEY)),
            numbers: std::array::from_fn(|_| AtomicU64::new(EMPTY)),
            values: std::array::from_fn(|_| AtomicU32::new(0)),
        };
        let buckets: Box<[Bucket]> = (0..BUCKETS).map(bucket).collect();
        Self {
            buckets: buckets.try_into().expect("as many as were made"),
            has_keys: (0..BUCKETS / GROUP).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Gives a key, not 0, an empty place, which belongs to the caller; `None` if its bucket is full. The caller holds
    /// the lock.
    #[must_use]
    pub fn reserve(&self, key: u64) -> Option<Place> {
        let at = bucket_of(key);
        let way = self.buckets[at].keys.iter().position(|key| key.load(Ordering::Relaxed) == NO_KEY)?;
        self.buckets[at].keys[way].store(key, Ordering::Relaxed);
        self.has_keys[at / GROUP].store(true, Ordering::Relaxed);
        Some(Place::new(at, way))
    }

    /// Takes the place from its key. It is empty and belongs to the caller, who holds the lock.
    pub fn release(&self, place: Place) {
        let (bucket, way) = self.at(place);
        debug_assert_eq!(bucket.numbers[way].load(Ordering::Relaxed), EMPTY);
        bucket.keys[way].store(NO_KEY, Ordering::Relaxed);
    }

    /// Returns the key of a place that belongs to the caller.
    #[inline]
    #[must_use]
    pub fn key(&self, place: Place) -> u64 {
        let (bucket, way) = self.at(place);
        bucket.keys[way].load(Ordering::Relaxed)
    }

    /// Puts an entry into an empty place that belongs to the caller. The place then belongs to the thread that removes
    /// the entry.
    #[inline]
    pub fn put(&self, place: Place, entry: Entry) {
        let (bucket, way) = self.at(place);
        bucket.values[way].store(entry.value, Ordering::Relaxed);
        bucket.numbers[way].store(entry.number, Ordering::Release);
    }

    /// Finds the entry with a key. Another thread may remove it at once.
    #[inline]
    #[must_use]
    pub fn find(&self, key: u64) -> Option<Found> {
        let at = bucket_of(key);
        let bucket = &self.buckets[at];
        (0..WAYS).find_map(|way| {
            // The rest may already be that of a later entry; then the entry with this number cannot be removed.
            let entry = bucket.entry(way)?;
            let is_it = bucket.keys[way].load(Ordering::Relaxed) == key;
            is_it.then(|| Found { entry, place: Place::new(at, way) })
        })
    }

    /// Removes the entry that was found; returns false if it was removed since.
    #[inline]
    #[must_use]
    pub fn remove(&self, found: &Found) -> bool {
        let (bucket, way) = self.at(found.place);
        let number = found.entry.number;
        bucket.numbers[way].compare_exchange(number, EMPTY, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Removes all entries and keys, and passes each key that has an entry to `take` with it. No other call may run
    /// meanwhile.
    pub fn drain(&self, mut take: impl FnMut(u64, Entry)) {
        for (buckets, has_keys) in self.buckets.chunks(GROUP).zip(&self.has_keys) {
            if !has_keys.load(Ordering::Relaxed) {
                continue;
            }
            has_keys.store(false, Ordering::Relaxed);
            for bucket in buckets {
                for way in 0..WAYS {
                    let key = bucket.keys[way].load(Ordering::Relaxed);
                    bucket.keys[way].store(NO_KEY, Ordering::Relaxed);
                    if let Some(entry) = bucket.entry(way) {
                        bucket.numbers[way].store(EMPTY, Ordering::Relaxed);
                        take(key, entry);
                    }
                }
            }
        }
    }

    #[cfg_attr(loom, allow(clippy::modulo_one, reason = "models have one bucket"))]
    #[inline]
    fn at(&self, place: Place) -> (&Bucket, usize) {
        (&self.buckets[place.0 as usize / STRIDE % BUCKETS], place.0 as usize % STRIDE)
    }
}

impl Default for EntryTable {
    fn default() -> Self {
        Self::new()
    }
}

impl Bucket {
    #[inline]
    fn entry(&self, way: usize) -> Option<Entry> {
        let number = self.numbers[way].load(Ordering::Acquire);
        (number != EMPTY).then(|| Entry { number, value: self.values[way].load(Ordering::Relaxed) })
    }
}

/// Returns the bucket of a key.
#[cfg_attr(loom, allow(clippy::modulo_one, reason = "models have one bucket"))]
#[inline]
fn bucket_of(key: u64) -> usize {
    // Multiplicative hash, as keys are often multiples of a common factor. Its highest bits are the most even ones.
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    usize::try_from((hash * BUCKETS as u64) >> 32).unwrap_or(0) % BUCKETS
}

#[cfg(all(test, not(loom)))]
mod tests;
