use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use crate::source::{AddressSpace, Grant, ReserveError, RegionSource};
use crate::{Allocation, Options, Pool};

/// The spans that a source had to discard, and its reaction.
#[derive(Default)]
struct Discards {
    spans: Vec<Grant>,
    panics: bool,
    /// An allocation to free during the next discard.
    frees: Option<(Arc<Pool>, Allocation)>,
}

struct Discarding(AddressSpace, Arc<Mutex<Discards>>);

impl RegionSource for Discarding {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.0.reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        self.0.release(region);
    }

    fn discards(&self) -> bool {
        true
    }

    fn discard(&mut self, span: Grant) {
        let mut discards = self.1.lock().unwrap();
        discards.spans.push(span);
        let (frees, panics) = (discards.frees.take(), discards.panics);
        drop(discards);
        if let Some((pool, allocation)) = frees {
            pool.free_allocation(&allocation).unwrap();
        }
        assert!(!panics, "on purpose");
    }
}

const KIB: u64 = 1 << 10;

/// Creates a pool of 64 KiB in chunks of 8 KiB, every other one free.
fn pool_with_holes() -> (Arc<Pool>, Vec<Allocation>, Arc<Mutex<Discards>>) {
    let discards = Arc::new(Mutex::new(Discards::default()));
    let source = Discarding(AddressSpace::new(0), Arc::clone(&discards));
    let options = Options::new(64 * KIB).growth(false);
    let pool = Arc::new(Pool::new(source, options).unwrap());
    let mut live: Vec<_> = (0..8).map(|_| pool.allocate(8 * KIB).unwrap()).collect();
    let mut odd = false;
    live.retain(|allocation| {
        odd = !odd;
        if !odd {
            pool.free_allocation(allocation).unwrap();
        }
        odd
    });
    (pool, live, discards)
}

/// Returns the number of spans that a trim discards.
fn trimmed(pool: &Pool, discards: &Mutex<Discards>) -> usize {
    pool.trim().unwrap();
    pool.check().unwrap();
    std::mem::take(&mut discards.lock().unwrap().spans).len()
}

#[test]
fn a_span_that_was_not_used_since_is_not_discarded_again() {
    let (pool, live, discards) = pool_with_holes();
    assert_eq!([trimmed(&pool, &discards), trimmed(&pool, &discards)], [4, 0]);
    let again = pool.allocate(8 * KIB).unwrap();
    assert_eq!([trimmed(&pool, &discards), trimmed(&pool, &discards)], [3, 0]);
    pool.free(again.address).unwrap();
    assert_eq!([trimmed(&pool, &discards), trimmed(&pool, &discards)], [4, 0]);
    pool.free(live[1].address).unwrap();
    assert_eq!([trimmed(&pool, &discards), trimmed(&pool, &discards)], [3, 0]);
}

#[test]
fn an_allocation_between_two_trims_counts_as_use() {
    let (pool, _live, discards) = pool_with_holes();
    assert_eq!(trimmed(&pool, &discards), 4);
    let brief = pool.allocate(8 * KIB).unwrap();
    pool.free(brief.address).unwrap();
    assert_eq!(trimmed(&pool, &discards), 4);
}

#[test]
fn what_is_freed_during_a_trim_is_discarded_by_the_next() {
    let (pool, live, discards) = pool_with_holes();
    discards.lock().unwrap().frees = Some((Arc::clone(&pool), live[0]));
    assert_eq!([trimmed(&pool, &discards), trimmed(&pool, &discards)], [4, 4]);
    assert_eq!(trimmed(&pool, &discards), 0);
}

#[test]
fn a_trim_whose_source_panics_is_done_again() {
    let (pool, _live, discards) = pool_with_holes();
    discards.lock().unwrap().panics = true;
    assert!(catch_unwind(AssertUnwindSafe(|| pool.trim())).is_err());
    *discards.lock().unwrap() = Discards::default();
    assert_eq!([trimmed(&pool, &discards), trimmed(&pool, &discards)], [4, 0]);
}
