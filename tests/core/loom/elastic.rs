//! Elastic pools: requests beside a plan that is out, and pages that two pools lend each other.

use std::sync::Arc;

use allotment::source::{AddressSpace, Cap, Capped, CheckedPages, CommittedPages, FailingPages, Grant};
use allotment::{AllocError, Allocation, GRANULE, Options, Pool, Siblings};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::model;

const PAGE: u64 = 2 * GRANULE;

/// A pool, and which of its pages have memory.
#[derive(Clone)]
struct Side {
    pool: Arc<Pool>,
    pages: CommittedPages,
}

impl Side {
    /// Creates a pool that may have two pages, of the memory of `cap`.
    fn new(cap: &Arc<Cap>) -> Self {
        let capped = Capped::new(AddressSpace::new(0), Arc::clone(cap));
        let (checked, pages) = CheckedPages::new(capped, PAGE);
        let point = AtomicUsize::new(0);
        // The model changes threads at its atomics alone: one before each call, so that others run during it.
        let source = FailingPages::new(checked, move |_, _, _| {
            point.load(Ordering::Relaxed);
            None
        });
        let options = Options::new(2 * PAGE).elastic(true).page_size(PAGE);
        Self { pool: Arc::new(Pool::new(source, options).expect("options in range")), pages }
    }

    /// Allocates; all pages of the allocation must have memory as soon as it is there.
    fn allocate(&self, bytes: u64) -> Option<Allocation> {
        match self.pool.allocate(bytes) {
            Ok(allocation) => {
                let (first, end) = (allocation.address / PAGE * PAGE, allocation.address + allocation.size);
                let pages = Grant { address: first, bytes: end.next_multiple_of(PAGE) - first };
                assert!(self.pages.covers(pages), "served without memory");
                Some(allocation)
            }
            Err(AllocError::OutOfMemory(_)) => None,
            Err(other) => panic!("{other}"),
        }
    }

    fn free(&self, allocation: &Allocation) {
        self.pool.free_allocation(allocation).expect("it is ours");
    }

    fn check(&self) {
        self.pool.check().expect("every invariant holds");
        assert_eq!(self.pool.stats().expect("this process").reserved, self.pages.bytes());
    }
}

#[test]
fn a_request_for_a_page_of_a_plan_waits_for_its_memory() {
    model(2, || {
        let side = Side::new(&Cap::new(2 * PAGE));
        // The range is there.
        let first = side.allocate(PAGE).expect("two pages");
        let theirs = side.clone();
        // Two halves of one page.
        let other = thread::spawn(move || theirs.allocate(GRANULE).expect("a page"));
        let mine = side.allocate(GRANULE).expect("a page");
        let other = other.join().expect("no panic");
        assert_eq!(mine.address / PAGE, other.address / PAGE);
        side.check();
        for allocation in [first, mine, other] {
            side.free(&allocation);
        }
        side.check();
    });
}

#[test]
fn two_pools_that_lend_to_each_other_serve_or_refuse_and_lose_no_page() {
    model(2, || {
        let cap = Cap::new(2 * PAGE);
        let siblings = Arc::new(Siblings::default());
        let sides = [Side::new(&cap), Side::new(&cap)];
        for side in &sides {
            assert!(side.pool.join(&siblings));
        }
        let work = |side: &Side| {
            // The other one may have both pages in use.
            if let Some(allocation) = side.allocate(2 * PAGE) {
                side.free(&allocation);
            }
        };
        let theirs = sides[1].clone();
        let other = thread::spawn(move || work(&theirs));
        work(&sides[0]);
        other.join().expect("no panic");
        for side in &sides {
            side.check();
            // Whichever has the pages lends them.
            let allocation = side.allocate(2 * PAGE).expect("nothing else is in use");
            side.free(&allocation);
            side.check();
        }
        assert_eq!(cap.used(), sides.iter().map(|side| side.pages.bytes()).sum::<u64>());
    });
}
