//! The allocators under comparison, each used by several threads.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::with_exposed_provenance_mut;

use allotment::source::AddressSpace;
use allotment::{Allocator, Options, Pool};

use crate::reference::{Setup, SharedReference};

/// Enough for all workloads; TensorFlow keeps a table of an entry for each 256 bytes.
const LIMIT: u64 = 4 << 30;
/// The natural alignment of the allocators for whole processes.
const ALIGNMENT: usize = 16;
const IS_LIVE: &str = "a live allocation";
const IS_AMPLE: &str = "an ample limit";

/// An allocator that several threads use at once.
pub(crate) trait Peer: Sync {
    /// Allocates `bytes` bytes, more than 0; returns an address below 2^48, never 0.
    fn allocate(&self, bytes: u64) -> u64;

    /// Frees an allocation of `bytes` bytes, which no other thread frees.
    fn free(&self, address: u64, bytes: u64);
}

/// Our pool over made-up addresses, with limit and all counters. Its region is reserved.
pub(crate) struct Ours(Pool);

impl Ours {
    pub(crate) fn new() -> Self {
        Self::with(Options::new(LIMIT))
    }

    pub(crate) fn with_thread_caches() -> Self {
        Self::with(Options::new(LIMIT).thread_caches(true))
    }

    fn with(options: Options) -> Self {
        let options = options.growth(false).trim_on_oom(false);
        let pool = Pool::new(AddressSpace::new(0), options).expect("options in range");
        let first = pool.allocate(1).expect(IS_AMPLE);
        pool.free(first.address).expect(IS_LIVE);
        Self(pool)
    }
}

impl Peer for Ours {
    #[inline]
    fn allocate(&self, bytes: u64) -> u64 {
        self.0.allocate(bytes).expect(IS_AMPLE).address
    }

    #[inline]
    fn free(&self, address: u64, _bytes: u64) {
        self.0.free(address).expect(IS_LIVE);
    }
}

/// The allocator of our pool without the pool, behind a lock of another crate.
pub(crate) struct Behind<L>(L);

impl Behind<parking_lot::Mutex<Allocator<AddressSpace>>> {
    pub(crate) fn parking_lot() -> Self {
        Self(parking_lot::Mutex::new(alone()))
    }
}

impl Behind<std::sync::Mutex<Allocator<AddressSpace>>> {
    pub(crate) fn std() -> Self {
        Self(std::sync::Mutex::new(alone()))
    }
}

impl Peer for Behind<parking_lot::Mutex<Allocator<AddressSpace>>> {
    #[inline]
    fn allocate(&self, bytes: u64) -> u64 {
        self.0.lock().allocate(bytes).expect(IS_AMPLE).address
    }

    #[inline]
    fn free(&self, address: u64, _bytes: u64) {
        self.0.lock().free(address).expect(IS_LIVE);
    }
}

impl Peer for Behind<std::sync::Mutex<Allocator<AddressSpace>>> {
    #[inline]
    fn allocate(&self, bytes: u64) -> u64 {
        self.0.lock().expect("no panic").allocate(bytes).expect(IS_AMPLE).address
    }

    #[inline]
    fn free(&self, address: u64, _bytes: u64) {
        self.0.lock().expect("no panic").free(address).expect(IS_LIVE);
    }
}

/// Our allocator for one owner. Its region is reserved.
fn alone() -> Allocator<AddressSpace> {
    let options = Options::new(LIMIT).growth(false).trim_on_oom(false);
    let mut allocator = Allocator::new(AddressSpace::new(0), options).expect("options in range");
    let first = allocator.allocate(1).expect(IS_AMPLE);
    allocator.free(first.address).expect(IS_LIVE);
    allocator
}

/// TensorFlow's allocator, whose region is reserved.
pub(crate) fn tensorflow() -> Result<SharedReference, String> {
    let theirs = SharedReference::new(&Setup { limit: LIMIT, joins: true, ..Setup::NO_REFUSALS })?;
    let first = Peer::allocate(&theirs, 1);
    Peer::free(&theirs, first, 1);
    Ok(theirs)
}

impl Peer for SharedReference {
    #[inline]
    fn allocate(&self, bytes: u64) -> u64 {
        let address = self.allocate(bytes);
        assert_ne!(address, 0, "{IS_AMPLE}");
        address
    }

    #[inline]
    fn free(&self, address: u64, _bytes: u64) {
        // SAFETY: workloads free what they allocated, once.
        unsafe { self.free(address) };
    }
}

/// An allocator for whole processes, called directly.
pub(crate) struct System<A>(pub(crate) A);

fn layout(bytes: u64) -> Layout {
    let bytes = usize::try_from(bytes).expect("a size of this machine");
    Layout::from_size_align(bytes, ALIGNMENT).expect("a small size")
}

impl<A: GlobalAlloc + Sync> Peer for System<A> {
    #[inline]
    fn allocate(&self, bytes: u64) -> u64 {
        // SAFETY: workloads ask for more than 0 bytes.
        let address = unsafe { self.0.alloc(layout(bytes)) };
        assert!(!address.is_null(), "{IS_AMPLE}");
        address.expose_provenance() as u64
    }

    #[inline]
    fn free(&self, address: u64, bytes: u64) {
        let address = usize::try_from(address).expect("an address of this machine");
        // SAFETY: workloads free what they allocated, once, with its size.
        unsafe { self.0.dealloc(with_exposed_provenance_mut(address), layout(bytes)) };
    }
}
