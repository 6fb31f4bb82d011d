//! A cache of freed small data for the next array, like that of NumPy's own handler. Programs make and drop small
//! arrays all the time, and for those a pool's bookkeeping costs more than the data.
//!
//! Cached data is in use as far as the pool is concerned. Every query of the pool flushes the cache first, so no
//! caller sees it. NumPy's size argument is not trusted: the cache records the sizes itself.
//!
//! ```text
//! free lists   by size in bytes: up to seven addresses each, behind a mutex
//! sizes        by address, the latest of those that share an entry: the bytes allocated or cached there
//! ```
//!
//! A size entry is read by the thread that frees exactly that data, and meanwhile changes only to describe another
//! address. So the entries need no lock, and large data costs one lookup.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use allotment::bindings::PoolForBindings as _;
use allotment::{GRANULE, Pool};
use allotment_sync::Mutex;

/// The largest cached size in bytes. From here on a pool is as fast as the C library.
const MAX_CACHED_BYTES: usize = 1032;
/// The most cached pieces of one size.
const MAX_PER_SIZE: usize = 7;
/// The number of size entries. Neighbouring chunks of one granule have different entries.
const SIZE_ENTRIES: usize = 1024;

/// The cached small data of one pool.
pub(super) struct SmallCache {
    pool: Arc<Pool>,
    sizes: [AtomicU64; SIZE_ENTRIES],
    free_lists: Mutex<FreeLists>,
}

/// The lazily created cache of a pool, shared by all its handlers.
#[derive(Clone, Default)]
pub(crate) struct PoolSmallCache(Arc<OnceLock<Arc<SmallCache>>>);

impl PoolSmallCache {
    /// Returns the cache of `pool`; `None` if each allocation is inspected or has an owner.
    pub(super) fn get(&self, pool: &Arc<Pool>) -> Option<Arc<SmallCache>> {
        let options = pool.options();
        let every_allocation_counts = options.guard || options.owner_tags;
        (!every_allocation_counts)
            .then(|| Arc::clone(self.0.get_or_init(|| Arc::new(SmallCache::new(Arc::clone(pool))))))
    }

    /// Frees all cached data.
    pub(crate) fn flush(&self) {
        if let Some(cache) = self.0.get() {
            cache.flush();
        }
    }

    /// Returns a weak reference, for holders that must not keep the pool alive.
    pub(crate) fn downgrade(&self) -> WeakPoolSmallCache {
        WeakPoolSmallCache(Arc::downgrade(&self.0))
    }
}

/// A weak [`PoolSmallCache`].
pub(crate) struct WeakPoolSmallCache(Weak<OnceLock<Arc<SmallCache>>>);

impl WeakPoolSmallCache {
    pub(crate) fn upgrade(&self) -> Option<PoolSmallCache> {
        self.0.upgrade().map(PoolSmallCache)
    }
}

/// How to take the cache's mutex.
#[derive(Clone, Copy)]
pub(super) enum LockPolicy {
    /// Only as its biased owner, without a function call.
    OwnerOnly,
    /// If no thread holds it.
    TryLock,
    /// In any case. Not in a forked child, where a thread that no longer exists may hold it.
    Lock,
}

struct FreeLists {
    by_size: Box<[FreeList]>,
    /// The number of pieces in all lists.
    count: usize,
}

/// Addresses of data of one size; one cache line.
#[derive(Clone, Copy)]
struct FreeList {
    count: usize,
    addresses: [u64; MAX_PER_SIZE],
}

impl SmallCache {
    fn new(pool: Arc<Pool>) -> Self {
        let by_size = vec![FreeList { count: 0, addresses: [0; MAX_PER_SIZE] }; MAX_CACHED_BYTES + 1]
            .into_boxed_slice();
        let sizes = [const { AtomicU64::new(0) }; SIZE_ENTRIES];
        Self { pool, sizes, free_lists: Mutex::new(FreeLists { by_size, count: 0 }) }
    }

    /// Returns cached data of exactly this size.
    #[inline(always)]
    pub(super) fn take(&self, bytes: usize, policy: LockPolicy) -> Option<*mut c_void> {
        // In a scope each allocation has an owner.
        if bytes > MAX_CACHED_BYTES || !self.pool.is_fast_path_open() {
            return None;
        }
        let address = self.with(policy, |free_lists| free_lists.take(bytes))?;
        self.record_size(address, bytes);
        Some(usize::try_from(address).map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut))
    }

    /// Records the size of newly allocated data.
    #[inline]
    pub(super) fn record_allocation(&self, data: *mut c_void, bytes: usize) {
        if bytes <= MAX_CACHED_BYTES {
            self.record_size(data.expose_provenance() as u64, bytes);
        }
    }

    /// Caches data as the mutex's owner, if its size is recorded and there is room.
    #[inline(always)]
    pub(super) fn put(&self, data: *mut c_void) -> bool {
        let address = data.expose_provenance() as u64;
        let Some(bytes) = self.size_at(address) else { return false };
        self.pool.is_fast_path_open()
            && self.with(LockPolicy::OwnerOnly, |free_lists| free_lists.put(address, bytes)).is_some()
    }

    /// Caches data unless another thread holds the mutex; if it fails, forgets the size, as the pool gets the data
    /// back.
    #[inline]
    pub(super) fn put_or_forget(&self, data: *mut c_void) -> bool {
        let address = data.expose_provenance() as u64;
        // One lookup for large data, which is the common case here.
        let Some(bytes) = self.size_at(address) else { return false };
        let kept = self.pool.is_fast_path_open()
            && self.with(LockPolicy::TryLock, |free_lists| free_lists.put(address, bytes)).is_some();
        if !kept {
            self.forget_address(address);
        }
        kept
    }

    /// Forgets the size of data, because it is about to change.
    pub(super) fn forget(&self, data: *mut c_void) {
        self.forget_address(data.expose_provenance() as u64);
    }

    /// Frees all cached data; returns whether there was any. Waits for the mutex, whose holders wait for nothing: a
    /// query of the pool must not count data that another thread has just cached.
    pub(super) fn flush(&self) -> bool {
        let mut any = false;
        // In a forked child the data is the parent's.
        while !self.pool.is_inherited()
            && let Some(address) = self.with(LockPolicy::Lock, FreeLists::take_any)
        {
            self.forget_address(address);
            any |= self.pool.free_held(address).is_ok();
        }
        any
    }

    fn entry_at(&self, address: u64) -> &AtomicU64 {
        let place = (address / GRANULE % SIZE_ENTRIES as u64) as usize;
        &self.sizes[place]
    }

    #[inline]
    fn record_size(&self, address: u64, bytes: usize) {
        self.entry_at(address).store(size_entry(address, bytes), Ordering::Relaxed);
    }

    /// Returns the recorded size of the data at an address.
    #[inline]
    fn size_at(&self, address: u64) -> Option<usize> {
        let difference = self.entry_at(address).load(Ordering::Relaxed) ^ size_entry(address, 0);
        usize::try_from(difference).ok().filter(|bytes| (1..=MAX_CACHED_BYTES).contains(bytes))
    }

    fn forget_address(&self, address: u64) {
        if let Some(bytes) = self.size_at(address) {
            // An entry that describes another address by now stays.
            let entry = size_entry(address, bytes);
            let _ = self.entry_at(address).compare_exchange(entry, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Runs `work` on the lists if the policy gets the mutex.
    #[inline(always)]
    fn with<T>(&self, policy: LockPolicy, work: impl Fn(&mut FreeLists) -> Option<T>) -> Option<T> {
        let mut entered = matches!(policy, LockPolicy::OwnerOnly);
        let done = self.free_lists.try_with_as_owner(|free_lists| {
            entered = true;
            work(free_lists)
        });
        if entered { done } else { self.with_slow(policy, work) }
    }

    #[cold]
    #[inline(never)]
    fn with_slow<T>(&self, policy: LockPolicy, work: impl Fn(&mut FreeLists) -> Option<T>) -> Option<T> {
        let mut free_lists = match policy {
            LockPolicy::Lock => self.free_lists.lock().ok()?,
            LockPolicy::OwnerOnly | LockPolicy::TryLock => self.free_lists.try_lock().ok()??,
        };
        work(&mut free_lists)
    }
}

impl Drop for SmallCache {
    fn drop(&mut self) {
        self.flush();
    }
}

impl FreeLists {
    #[inline]
    fn take(&mut self, bytes: usize) -> Option<u64> {
        let row = self.by_size.get_mut(bytes)?;
        let last = row.count.checked_sub(1)?;
        let address = *row.addresses.get(last)?;
        row.count = last;
        self.count = self.count.wrapping_sub(1);
        Some(address)
    }

    #[inline]
    fn put(&mut self, address: u64, bytes: usize) -> Option<()> {
        let row = self.by_size.get_mut(bytes)?;
        *row.addresses.get_mut(row.count)? = address;
        row.count += 1;
        self.count = self.count.wrapping_add(1);
        Some(())
    }

    /// Removes and returns any cached piece.
    fn take_any(&mut self) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let bytes = self.by_size.iter().position(|shelf| shelf.count > 0)?;
        self.take(bytes)
    }
}

/// Packs an address and a size into one word: addresses are whole granules below 2^56.
#[inline]
fn size_entry(address: u64, bytes: usize) -> u64 {
    const BITS: u32 = 16;
    const _: () = assert!(MAX_CACHED_BYTES < 1 << BITS);
    (address / GRANULE) << BITS | bytes as u64
}
