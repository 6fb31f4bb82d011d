//! A lock-free registry of live regions: maps an address to its region, from any thread, also in a forked child.
//!
//! The list of slots only grows; a slot is reused after its region was released. The answer is correct for every
//! allocated address: its region was registered before the address was handed to a caller, and stays registered while
//! it is live.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

static FIRST: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());

/// A slot for a region.
#[derive(Debug)]
struct Slot {
    /// The region's first byte; 0 in a vacant slot.
    start: AtomicU64,
    /// The first byte after it; 0 while the slot is being filled or emptied.
    end: AtomicU64,
    /// Whether pages read as zero until they are written.
    starts_as_zero: AtomicBool,
    next: AtomicPtr<Slot>,
}

/// Who made the memory of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A mapping of this crate: pages read as zero until they are written.
    Mapping,
    /// Another allocator: pages may have any content.
    Other,
}

/// Returns the end of the host-memory region that contains `address`, if there is one.
///
/// # Cost
/// Linear in the number of regions of all sources.
#[must_use]
pub fn end_of_region(address: u64) -> Option<u64> {
    find(address).map(|(end, _)| end)
}

/// Returns whether `address` is in a region with pages that may have any content before they are written.
pub(crate) fn is_of_other_allocator(address: u64) -> bool {
    find(address).is_some_and(|(_, origin)| origin == Origin::Other)
}

fn find(address: u64) -> Option<(u64, Origin)> {
    slots().find_map(|slot| {
        let start = slot.start.load(Ordering::Acquire);
        let end = slot.end.load(Ordering::Acquire);
        let within = start != 0 && start <= address && address < end;
        let origin =
            if slot.starts_as_zero.load(Ordering::Relaxed) { Origin::Mapping } else { Origin::Other };
        // A slot that changes meanwhile belongs to another address.
        (within && slot.start.load(Ordering::Acquire) == start).then_some((end, origin))
    })
}

/// Registers a region, before any address in it is handed to a caller.
pub(crate) fn register(start: u64, end: u64, origin: Origin) {
    let starts_as_zero = origin == Origin::Mapping;
    let take = |slot: &&Slot| {
        let taken = slot.start.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok()
    };
    match slots().find(take) {
        Some(slot) => {
            slot.starts_as_zero.store(starts_as_zero, Ordering::Relaxed);
            // After the origin: a slot without an end contains no address.
            slot.end.store(end, Ordering::Release);
        }
        None => append(Slot {
            start: start.into(),
            end: end.into(),
            starts_as_zero: starts_as_zero.into(),
            next: AtomicPtr::default(),
        }),
    }
}

/// Unregisters the region that starts at `start`, before its pages are unmapped.
pub(crate) fn unregister(start: u64) {
    if let Some(slot) = slots().find(|slot| slot.start.load(Ordering::Acquire) == start) {
        // In this order: a slot with start 0 may be taken at once.
        slot.end.store(0, Ordering::Release);
        slot.start.store(0, Ordering::Release);
    }
}

fn append(slot: Slot) {
    let new: *mut Slot = Box::leak(Box::new(slot));
    let mut link = &FIRST;
    while let Err(there) = link.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: a link's target was leaked, so it lives as long as the process.
        link = unsafe { &(*there).next };
    }
}

fn slots() -> impl Iterator<Item = &'static Slot> {
    let follow = |link: &AtomicPtr<Slot>| {
        // SAFETY: a link is null or its target was leaked, so the target lives as long as the process.
        unsafe { link.load(Ordering::Acquire).as_ref() }
    };
    std::iter::successors(follow(&FIRST), move |slot| follow(&slot.next))
}

#[cfg(test)]
mod tests;
