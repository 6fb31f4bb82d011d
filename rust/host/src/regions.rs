//! Which addresses lie in a region that is out: asked without a lock, by any thread, also in a forked child.
//!
//! A list of slots that only grows; a slot is used again after its region went back. An answer is right for every
//! address that the caller was handed, by whoever: its region was noted before that, and stays as long.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

static FIRST: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());

/// A region, or none.
#[derive(Debug)]
struct Slot {
    /// The region's first byte; 0 in a slot that is not taken.
    start: AtomicU64,
    /// The first byte after it; 0 while the slot is being filled or emptied.
    end: AtomicU64,
    next: AtomicPtr<Slot>,
}

/// The end of the region of host memory that `address` lies in, if any source has one out there.
///
/// # Cost
/// Linear in the regions of all sources.
#[must_use]
pub fn end_of_region(address: u64) -> Option<u64> {
    slots().find_map(|slot| {
        let start = slot.start.load(Ordering::Acquire);
        let end = slot.end.load(Ordering::Acquire);
        let within = start != 0 && start <= address && address < end;
        // A slot that changes meanwhile is about some other address.
        (within && slot.start.load(Ordering::Acquire) == start).then_some(end)
    })
}

/// Notes a region, before anybody is handed an address in it.
pub(crate) fn note(start: u64, end: u64) {
    let take = |slot: &&Slot| {
        let taken = slot.start.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok()
    };
    match slots().find(take) {
        Some(slot) => slot.end.store(end, Ordering::Release),
        None => append(Slot { start: start.into(), end: end.into(), next: AtomicPtr::default() }),
    }
}

/// Forgets the region that starts at `start`, before its pages go back.
pub(crate) fn forget(start: u64) {
    if let Some(slot) = slots().find(|slot| slot.start.load(Ordering::Acquire) == start) {
        // In this order: an empty slot is anybody's.
        slot.end.store(0, Ordering::Release);
        slot.start.store(0, Ordering::Release);
    }
}

fn append(slot: Slot) {
    let new: *mut Slot = Box::leak(Box::new(slot));
    let mut link = &FIRST;
    while let Err(there) = link.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: what is in a link was leaked, so it lives as long as the process.
        link = unsafe { &(*there).next };
    }
}

fn slots() -> impl Iterator<Item = &'static Slot> {
    let follow = |link: &AtomicPtr<Slot>| {
        // SAFETY: a link is null or was leaked, so what it names lives as long as the process.
        unsafe { link.load(Ordering::Acquire).as_ref() }
    };
    std::iter::successors(follow(&FIRST), move |slot| follow(&slot.next))
}

#[cfg(test)]
mod tests;
