//! Small data kept back for the next array, as NumPy's own handler does it: a program makes and drops small arrays all
//! the time, temporaries of its expressions among them, and a pool's books cost more than such an array's data.
//!
//! What is kept is in use for the pool. So whoever asks the pool anything has it given back first, and nobody sees it.
//! That NumPy says how long the data is that it frees is not relied on: who got how much is noted here.
//!
//! ```text
//! shelves   by size in bytes: up to seven addresses each, behind a mutex
//! notes     by address, the last of those that share a place: the bytes of what was handed out, or is kept
//! ```
//!
//! A note is looked at by whoever frees that very data, and changes meanwhile only to be about another address; so
//! notes need no lock, and long data passes by at the price of a look.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use allotment::{GRANULE, Pool};
use allotment_sync::Mutex;

/// The longest data that is kept, in bytes. From here on a pool is as fast as the C library.
const LONGEST: usize = 1032;
/// How many of a size are kept.
const DEEPEST: usize = 7;
/// Places for notes. Neighbouring chunks of a granule have places of their own.
const PLACES: usize = 1024;

/// Small data of one pool that is kept back.
pub(super) struct Small {
    pool: Arc<Pool>,
    notes: [AtomicU64; PLACES],
    shelves: Mutex<Shelves>,
}

/// What arrays in a pool keep back, once there are any; one for all handlers of the pool.
#[derive(Clone, Default)]
pub(crate) struct SmallOf(Arc<OnceLock<Arc<Small>>>);

impl SmallOf {
    /// A place to keep small data of `pool`; none where each allocation is looked at, or told whose it is.
    pub(super) fn get(&self, pool: &Arc<Pool>) -> Option<Arc<Small>> {
        let options = pool.options();
        let each_counts = options.guard || options.owner_tags;
        (!each_counts).then(|| Arc::clone(self.0.get_or_init(|| Arc::new(Small::new(Arc::clone(pool))))))
    }

    /// Gives back all that is kept.
    pub(crate) fn settle(&self) {
        if let Some(small) = self.0.get() {
            small.give_back();
        }
    }

    /// The same for who must not keep the pool.
    pub(crate) fn downgrade(&self) -> WeakSmallOf {
        WeakSmallOf(Arc::downgrade(&self.0))
    }
}

/// A [`SmallOf`] that is there for as long as the pool's object is.
pub(crate) struct WeakSmallOf(Weak<OnceLock<Arc<Small>>>);

impl WeakSmallOf {
    pub(crate) fn upgrade(&self) -> Option<SmallOf> {
        self.0.upgrade().map(SmallOf)
    }
}

/// How far to go for a place among the shelves.
#[derive(Clone, Copy)]
pub(super) enum Door {
    /// Only if this thread owns the mutex: nothing is called on this way.
    Owner,
    /// If nobody is inside.
    Any,
}

struct Shelves {
    by_size: Box<[Shelf]>,
    /// How many there are on all of them.
    count: usize,
}

/// Addresses of data of one size; a line of the processor's cache.
#[derive(Clone, Copy)]
struct Shelf {
    count: usize,
    addresses: [u64; DEEPEST],
}

impl Small {
    fn new(pool: Arc<Pool>) -> Self {
        let by_size = vec![Shelf { count: 0, addresses: [0; DEEPEST] }; LONGEST + 1].into_boxed_slice();
        let notes = [const { AtomicU64::new(0) }; PLACES];
        Self { pool, notes, shelves: Mutex::new(Shelves { by_size, count: 0 }) }
    }

    /// Kept data of so many bytes.
    #[inline(always)]
    pub(super) fn take(&self, bytes: usize, door: Door) -> Option<*mut c_void> {
        // In a scope each allocation is somebody's.
        if bytes > LONGEST || !self.pool.is_plain() {
            return None;
        }
        let address = self.with(door, |shelves| shelves.take(bytes))?;
        self.note(address, bytes);
        Some(usize::try_from(address).map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut))
    }

    /// Notes that the pool handed out data of so many bytes.
    #[inline]
    pub(super) fn handed_out(&self, data: *mut c_void, bytes: usize) {
        if bytes <= LONGEST {
            self.note(data.expose_provenance() as u64, bytes);
        }
    }

    /// Keeps data for later, if it is known to be small, there is room, and this thread owns the mutex.
    #[inline(always)]
    pub(super) fn keep(&self, data: *mut c_void) -> bool {
        let address = data.expose_provenance() as u64;
        let Some(bytes) = self.bytes_at(address) else { return false };
        self.pool.is_plain() && self.with(Door::Owner, |shelves| shelves.keep(address, bytes)).is_some()
    }

    /// Keeps data as [`Small::keep`] does, unless another thread has the mutex; forgets how long it is if the pool is to have it back.
    #[inline]
    pub(super) fn keep_or_forget(&self, data: *mut c_void) -> bool {
        let address = data.expose_provenance() as u64;
        // One look for long data, which is most of what comes here.
        let Some(bytes) = self.bytes_at(address) else { return false };
        let kept =
            self.pool.is_plain() && self.with(Door::Any, |shelves| shelves.keep(address, bytes)).is_some();
        if !kept {
            self.forget(address);
        }
        kept
    }

    /// Forgets how long data is, because that changes.
    pub(super) fn forget_about(&self, data: *mut c_void) {
        self.forget(data.expose_provenance() as u64);
    }

    /// Gives back all that is kept, unless somebody else is inside; says whether that was anything.
    pub(super) fn give_back(&self) -> bool {
        let mut any = false;
        while let Some(address) = self.with(Door::Any, Shelves::take_any) {
            self.forget(address);
            // In a forked child it is not the child's to give back.
            any |= self.pool.free_held(address).is_ok();
        }
        any
    }

    fn note_at(&self, address: u64) -> &AtomicU64 {
        let place = (address / GRANULE % PLACES as u64) as usize;
        &self.notes[place]
    }

    #[inline]
    fn note(&self, address: u64, bytes: usize) {
        self.note_at(address).store(note(address, bytes), Ordering::Relaxed);
    }

    /// Of how many bytes the data at an address is, if that is noted.
    #[inline]
    fn bytes_at(&self, address: u64) -> Option<usize> {
        let noted = self.note_at(address).load(Ordering::Relaxed) ^ note(address, 0);
        usize::try_from(noted).ok().filter(|bytes| (1..=LONGEST).contains(bytes))
    }

    fn forget(&self, address: u64) {
        if let Some(bytes) = self.bytes_at(address) {
            // If it is about another address by now, it stays.
            let note = note(address, bytes);
            let _ = self.note_at(address).compare_exchange(note, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Does something with what is kept, unless somebody else is inside: nobody waits here, least of all in a child
    /// that was forked off while a thread of its parent was.
    #[inline(always)]
    fn with<T>(&self, door: Door, work: impl Fn(&mut Shelves) -> Option<T>) -> Option<T> {
        let mut opened = matches!(door, Door::Owner);
        let done = self.shelves.work_as_owner(|shelves| {
            opened = true;
            work(shelves)
        });
        if opened { done } else { self.with_slowly(work) }
    }

    #[cold]
    #[inline(never)]
    fn with_slowly<T>(&self, work: impl Fn(&mut Shelves) -> Option<T>) -> Option<T> {
        let mut shelves = self.shelves.try_lock().ok()??;
        work(&mut shelves)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Shelves {
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
    fn keep(&mut self, address: u64, bytes: usize) -> Option<()> {
        let row = self.by_size.get_mut(bytes)?;
        *row.addresses.get_mut(row.count)? = address;
        row.count += 1;
        self.count = self.count.wrapping_add(1);
        Some(())
    }

    /// Any that is kept, taken out.
    fn take_any(&mut self) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let bytes = self.by_size.iter().position(|shelf| shelf.count > 0)?;
        self.take(bytes)
    }
}

/// An address and how many bytes are there, in one word: addresses are whole granules, and below 2^56.
#[inline]
fn note(address: u64, bytes: usize) -> u64 {
    const BITS: u32 = 16;
    const _: () = assert!(LONGEST < 1 << BITS);
    (address / GRANULE) << BITS | bytes as u64
}
