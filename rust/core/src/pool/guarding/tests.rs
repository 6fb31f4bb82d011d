use crate::source::{AddressSpace, Grant, RegionSource, ReserveError};
use crate::{MemoryGuard, Options, OptionsError, Pool};

use std::sync::Arc;

/// Made-up addresses whose guard accepts every fill and finds no damage.
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
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
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
    Options::new(1 << 20).guard(true)
}

#[test]
fn the_fast_path_is_always_closed_in_guard_mode_and_open_without() {
    let guarded = Pool::new(Unharmed(AddressSpace::new(0)), options()).unwrap();
    let bare = Pool::new(Unharmed(AddressSpace::new(0)), Options::new(1 << 20)).unwrap();
    for pool in [&guarded, &bare] {
        let held = pool.allocate(1).unwrap();
        assert_eq!(pool.on_fast_path(|_| Some(())).is_some(), !pool.options.guard);
        pool.pin(&held).unwrap();
        pool.unpin(&held);
        assert_eq!(pool.on_fast_path(|_| Some(())).is_some(), !pool.options.guard);
    }
}

#[test]
fn a_source_without_a_guard_cannot_be_guarded() {
    let refused = Pool::new(AddressSpace::new(0), options());
    assert_eq!(refused.unwrap_err(), OptionsError::NotGuardable);
}

#[test]
fn a_deferred_free_puts_its_chunk_into_quarantine() {
    let pool = Pool::new(Unharmed(AddressSpace::new(0)), options()).unwrap();
    let held = pool.allocate(1).unwrap();
    let inside = pool.lock_state().unwrap();
    pool.free_deferred(&held);
    assert_eq!(inside.allocator.live.len(), 1);
    drop(inside);
    let state = pool.lock_state().unwrap();
    assert_eq!((state.allocator.live.len(), state.allocator.quarantined.len()), (0, 1));
    drop(state);
    pool.check().unwrap();
}
