use crate::source::{AddressSpace, Grant, Refusal, RegionSource};
use crate::{MemoryGuard, Options, OptionsError, Pool};

use std::sync::Arc;

/// Made-up addresses that take anything and are never found damaged.
struct Unharmed(AddressSpace);

#[derive(Debug)]
struct NoMemory;

impl MemoryGuard for NoMemory {
    fn fill(&self, _address: u64, _bytes: u64, _byte: u8) {}

    fn first_other(&self, _address: u64, _bytes: u64, _byte: u8) -> Option<u64> {
        None
    }
}

impl RegionSource for Unharmed {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, Refusal> {
        self.0.reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        self.0.release(region);
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        Some(Arc::new(NoMemory))
    }
}

fn options() -> Options {
    Options { guard: true, ..Options::new(1 << 20) }
}

#[test]
fn the_quick_door_is_shut_for_good_in_guard_mode_and_open_without() {
    let guarded = Pool::new(Unharmed(AddressSpace::new(0)), options()).unwrap();
    let bare = Pool::new(Unharmed(AddressSpace::new(0)), Options::new(1 << 20)).unwrap();
    for pool in [&guarded, &bare] {
        let held = pool.allocate(1).unwrap();
        assert_eq!(pool.quickly(|_| Some(())).is_some(), !pool.options.guard);
        pool.pin(&held).unwrap();
        pool.unpin(&held);
        assert_eq!(pool.quickly(|_| Some(())).is_some(), !pool.options.guard);
    }
}

#[test]
fn a_source_without_a_guard_cannot_be_guarded() {
    let refused = Pool::new(AddressSpace::new(0), options());
    assert_eq!(refused.unwrap_err(), OptionsError::NotGuardable);
}

#[test]
fn a_late_free_that_finds_the_lock_taken_goes_into_quarantine_too() {
    let pool = Pool::new(Unharmed(AddressSpace::new(0)), options()).unwrap();
    let held = pool.allocate(1).unwrap();
    let inside = pool.enter().unwrap();
    pool.free_late(&held);
    assert_eq!(inside.allocator.live.len(), 1);
    drop(inside);
    let state = pool.enter().unwrap();
    assert_eq!((state.allocator.live.len(), state.allocator.quarantined.len()), (0, 1));
    drop(state);
    pool.check().unwrap();
}
