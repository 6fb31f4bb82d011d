//! Several threads on elastic pools that share one cap: they lend each other what is free.

use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use allotment::source::{
    AddressSpace, Cap, Capped, CheckedPages, Grant, PageSource, RegionSource, ReserveError, SourceFailure,
};
use allotment::{AllocError, Options, Pool, Siblings};

use crate::numbers::Numbers;

const PAGE: u64 = 64 << 10;

#[test]
fn two_pools_lend_to_each_other_under_eight_threads() {
    let cap = Cap::new(100 * PAGE);
    let siblings = Arc::new(Siblings::default());
    let pools: Vec<_> = (0..2)
        .map(|_| {
            let (source, pages) =
                CheckedPages::new(Capped::new(AddressSpace::new(0), Arc::clone(&cap)), PAGE);
            let options = Options::new(80 * PAGE).elastic(true).page_size(PAGE);
            let pool = Arc::new(Pool::new(source, options).expect("valid"));
            assert!(pool.join(&siblings));
            (pool, pages)
        })
        .collect();
    thread::scope(|scope| {
        for seed in 0..8_u64 {
            let pool = Arc::clone(&pools[usize::try_from(seed % 2).expect("small")].0);
            scope.spawn(move || play(&pool, seed));
        }
    });
    for (pool, pages) in &pools {
        pool.check().expect("sound");
        let stats = pool.stats().expect("usable");
        assert_eq!((stats.in_use, stats.reserved), (0, pages.bytes()));
        assert!(pages.most_bytes() > 50 * PAGE, "it had more than half at a time");
        pool.trim().expect("usable");
    }
    assert_eq!(cap.used(), 0);
}

fn play(pool: &Pool, seed: u64) {
    let mut random = Numbers::one_of(seed, 3);
    let mut live = Vec::new();
    for _ in 0..3_000 {
        if random.chance(52) {
            let most = if random.chance(80) { PAGE } else { 30 * PAGE };
            let bytes = 1 + random.below(most);
            match pool.allocate(bytes) {
                Ok(allocation) => live.push(allocation.address),
                Err(AllocError::OutOfMemory(_)) => {
                    for address in live.drain(live.len() / 2..) {
                        pool.free(address).expect("live");
                    }
                }
                Err(other) => panic!("{other}"),
            }
        } else if !live.is_empty() {
            let place = random.place(live.len());
            pool.free(live.swap_remove(place)).expect("live");
        }
    }
    for address in live {
        pool.free(address).expect("live");
    }
}

/// Checks the pool that calls it, as another thread may at that moment, and commits so many pages at most.
struct Checking {
    pool: Arc<OnceLock<Weak<Pool>>>,
    room: u64,
}

impl Checking {
    fn check(&self) {
        let pool = self.pool.get().and_then(Weak::upgrade).expect("the pool is in use");
        pool.check().expect("sound while the source works");
    }
}

impl RegionSource for Checking {
    fn reserve(&mut self, _bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        Err(ReserveError::Declined)
    }

    fn release(&mut self, _region: Grant) {}

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        Some(self)
    }
}

impl PageSource for Checking {
    fn granule(&self) -> u64 {
        PAGE
    }

    fn reserve_addresses(&mut self, bytes: u64, _page_size: u64) -> Result<Grant, ReserveError> {
        self.check();
        Ok(Grant { address: 1 << 40, bytes })
    }

    fn release_addresses(&mut self, _range: Grant) {}

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        self.check();
        self.room = self.room.checked_sub(span.bytes / PAGE).ok_or(ReserveError::Declined)?;
        Ok(())
    }

    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        self.check();
        self.room += span.bytes / PAGE;
        Ok(())
    }

    fn read(&mut self, _address: u64, _into: &mut [u8]) -> Result<(), SourceFailure> {
        unreachable!("nothing is paused")
    }

    fn write(&mut self, _address: u64, _from: &[u8]) -> Result<(), SourceFailure> {
        unreachable!("nothing is paused")
    }
}

#[test]
fn a_check_knows_the_pages_that_the_source_works_on() {
    let known = Arc::new(OnceLock::new());
    let source = Checking { pool: Arc::clone(&known), room: 40 };
    let options = Options::new(64 * PAGE).elastic(true).page_size(PAGE);
    let pool = Arc::new(Pool::new(source, options).expect("valid"));
    known.set(Arc::downgrade(&pool)).expect("set once");
    for seed in 0..4 {
        play(&pool, seed);
        pool.trim().expect("usable");
        pool.check().expect("sound");
    }
    assert_eq!(pool.stats().expect("usable").reserved, 0);
}
