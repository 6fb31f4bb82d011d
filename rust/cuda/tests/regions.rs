//! Regions of both kinds: what is granted, how a pool grows, whose context is current, and that all goes back.

use std::thread;

use allotment::source::{Grant, RegionSource, ReserveError};
use allotment::{AllocError, Options, Pool, Verdict};
use allotment_cuda::{CudaMemory, CudaVirtualMemory};

mod support;
use support::{MIB, Outstanding, StandIn, bytes_at};

#[test]
fn plain_regions_have_the_requested_length_and_go_back() {
    let stand_in = StandIn::new(1);
    let mut source = CudaMemory::new(&stand_in.driver(), 0).unwrap();
    assert_eq!(stand_in.outstanding(), Outstanding::default(), "no context before the first request");
    let grants = [256, 4096, 5 * MIB + 256].map(|bytes| source.reserve(bytes, 256).unwrap());
    assert_eq!(grants.map(|grant| grant.bytes), [256, 4096, 5 * MIB + 256]);
    for grant in grants {
        bytes_at(grant).fill(7);
    }
    assert!(!source.joins_regions());
    assert_eq!(stand_in.outstanding().allocations, 3);
    for grant in grants {
        source.release(grant);
    }
    assert_eq!(stand_in.outstanding(), Outstanding { contexts: 1, ..Outstanding::default() });
    drop(source);
    assert_eq!(stand_in.outstanding(), Outstanding::default());
}

#[test]
fn too_much_is_declined_and_the_gauge_knows_what_is_free() {
    let stand_in = StandIn::new(1);
    let driver = stand_in.driver();
    let mut source = CudaMemory::new(&driver, 0).unwrap();
    let gauge = source.gauge().unwrap();
    assert_eq!(gauge.headroom().maximum, 64 * MIB);
    let grant = source.reserve(40 * MIB, 256).unwrap();
    assert_eq!(gauge.headroom().maximum, 24 * MIB);
    assert_eq!(driver.memory_info(0), Ok((24 * MIB, 64 * MIB)));
    assert!(matches!(source.reserve(25 * MIB, 256), Err(ReserveError::Declined)));
    assert!(matches!(source.reserve(1 << 62, 256), Err(ReserveError::Declined)));
    source.release(grant);
    assert_eq!(gauge.headroom().maximum, 64 * MIB);
    // A page is what no driver aligns small allocations to: declined, and given back.
    let odd = source.reserve(256, 1 << 40);
    assert!(matches!(odd, Err(ReserveError::Declined)));
    assert_eq!(stand_in.outstanding().allocations, 0);
}

#[test]
fn a_dropped_source_gives_everything_back() {
    let stand_in = StandIn::new(1);
    let driver = stand_in.driver();
    let mut plain = CudaMemory::new(&driver, 0).unwrap();
    let mut mapped = CudaVirtualMemory::new(&driver, 0).unwrap();
    for _ in 0..3 {
        plain.reserve(MIB, 256).unwrap();
        mapped.reserve(MIB, 256).unwrap();
    }
    let outstanding = stand_in.outstanding();
    assert_eq!((outstanding.allocations, outstanding.mappings, outstanding.ranges), (3, 3, 1));
    drop((plain, mapped));
    assert_eq!(stand_in.outstanding(), Outstanding::default());
}

#[test]
fn mapped_regions_follow_each_other_and_can_be_used() {
    let stand_in = StandIn::new(1);
    let mut source = CudaVirtualMemory::new(&stand_in.driver(), 0).unwrap();
    assert_eq!((source.granularity(), source.joins_regions()), (2 * MIB, true));
    let [first, second, third] = [2 * MIB, 4 * MIB, 4 * MIB].map(|bytes| source.reserve(bytes, 256).unwrap());
    assert_eq!((first.end(), second.end()), (second.address, third.address));
    let all = Grant { address: first.address, bytes: 10 * MIB };
    assert!(bytes_at(all).iter().all(|&byte| byte == 0));
    bytes_at(all).fill(7);
    source.release(second);
    assert!(bytes_at(first).iter().chain(bytes_at(third).iter()).all(|&byte| byte == 7));
    // The hole is filled before the range grows.
    let again = source.reserve(4 * MIB, 256).unwrap();
    assert_eq!(again, second);
    assert!(bytes_at(again).iter().all(|&byte| byte == 0), "other memory at the same addresses");
    // As a pool does that has joined the three.
    source.release(all);
    let outstanding = stand_in.outstanding();
    assert_eq!((outstanding.mappings, outstanding.handles, outstanding.bytes), (0, 0, 0));
}

#[test]
fn a_region_that_ends_within_a_unit_has_the_requested_length() {
    let stand_in = StandIn::new(1);
    let mut source = CudaVirtualMemory::new(&stand_in.driver(), 0).unwrap();
    let gauge = source.gauge().unwrap();
    let [short, next] = [MIB + 256, 256].map(|bytes| source.reserve(bytes, 256).unwrap());
    assert_eq!((short.bytes, next.address - short.address, next.bytes), (MIB + 256, 2 * MIB, 256));
    assert_eq!((stand_in.outstanding().bytes, gauge.headroom().maximum), (4 * MIB, 60 * MIB));
    bytes_at(short).fill(7);
    for grant in [short, next] {
        source.release(grant);
    }
    assert_eq!((stand_in.outstanding().mappings, gauge.headroom().maximum), (0, 64 * MIB));
    assert!(matches!(source.reserve(65 * MIB, 256), Err(ReserveError::Declined)));
}

#[test]
fn addresses_run_out_before_memory_and_more_are_reserved() {
    let stand_in = StandIn::new(1);
    let mut source = CudaVirtualMemory::new(&stand_in.driver(), 0).unwrap();
    let grants: Vec<_> = (0..32).map(|_| source.reserve(2 * MIB, 256).unwrap()).collect();
    assert!(matches!(source.reserve(2 * MIB, 256), Err(ReserveError::Declined)));
    for grant in grants.iter().step_by(2) {
        source.release(*grant);
    }
    // 32 MiB are free, in pieces of 2 MiB.
    let large = source.reserve(32 * MIB, 256).unwrap();
    bytes_at(large).fill(7);
    assert_eq!(stand_in.outstanding().bytes, 64 * MIB);
    drop(source);
    assert_eq!(stand_in.outstanding(), Outstanding::default());
}

#[test]
fn a_pool_grows_in_place_over_mapped_regions_alone() {
    let stand_in = StandIn::new(1);
    let driver = stand_in.driver();
    let grown = |source: Box<dyn RegionSource>| {
        let pool = Pool::new(source, Options::new(32 * MIB).limit(32 * MIB)).unwrap();
        let parts = [(); 8].map(|()| pool.allocate(2 * MIB).unwrap());
        for part in &parts {
            pool.free(part.address).unwrap();
        }
        pool.check().unwrap();
        let stats = pool.stats().unwrap();
        // Everything that is reserved, as one allocation: only if nothing lies between the regions.
        let whole = pool.can_allocate(stats.reserved).unwrap() && stats.largest_free == stats.reserved;
        (stats.num_regions, whole)
    };
    let (regions, whole) = grown(Box::new(CudaMemory::new(&driver, 0).unwrap()));
    assert!(regions > 1 && !whole);
    assert_eq!(grown(Box::new(CudaVirtualMemory::new(&driver, 0).unwrap())), (1, true));
    assert_eq!(stand_in.outstanding(), Outstanding::default());
}

#[test]
fn the_limit_of_a_pool_binds_and_the_device_refuses_what_it_does_not_have() {
    let stand_in = StandIn::new(1);
    let driver = stand_in.driver();
    let verdict = |result: Result<_, AllocError>| match result {
        Err(AllocError::OutOfMemory(refused)) => refused.verdict,
        other => panic!("{other:?}"),
    };
    let sources: [Box<dyn RegionSource>; 2] = [
        Box::new(CudaMemory::new(&driver, 0).unwrap()),
        Box::new(CudaVirtualMemory::new(&driver, 0).unwrap()),
    ];
    for source in sources {
        let pool = Pool::new(source, Options::new(1 << 30)).unwrap();
        let most = pool.allocate(60 * MIB).unwrap();
        assert_eq!(verdict(pool.allocate(8 * MIB)), Verdict::Source);
        pool.free(most.address).unwrap();
        pool.trim().unwrap();
        pool.set_limit(16 * MIB, false, "test").unwrap();
        assert_eq!(verdict(pool.allocate(17 * MIB)), Verdict::Limit);
        let held = pool.allocate(16 * MIB).unwrap();
        assert_eq!(stand_in.outstanding().bytes, 16 * MIB);
        pool.free(held.address).unwrap();
    }
    assert_eq!(stand_in.outstanding(), Outstanding::default());
}

#[test]
fn the_context_that_a_program_has_made_current_stays_so() {
    let stand_in = StandIn::new(2);
    let driver = stand_in.driver();
    let mine = stand_in.enter_context(1);
    let sources: [Box<dyn RegionSource>; 2] = [
        Box::new(CudaMemory::new(&driver, 0).unwrap()),
        Box::new(CudaVirtualMemory::new(&driver, 0).unwrap()),
    ];
    for mut source in sources {
        let grant = source.reserve(2 * MIB, 256).unwrap();
        assert_eq!(stand_in.current_context(), mine);
        thread::scope(|scope| {
            scope.spawn(|| {
                assert!(stand_in.current_context().is_null());
                source.release(grant);
                drop(source);
                assert!(stand_in.current_context().is_null());
            });
        });
        assert_eq!(stand_in.current_context(), mine);
    }
    driver.memory_info(0).unwrap();
    assert_eq!(stand_in.current_context(), mine);
    assert_eq!(stand_in.outstanding(), Outstanding { contexts: 1, ..Outstanding::default() });
}

#[test]
#[should_panic(expected = "was not granted by this source")]
fn a_foreign_plain_region_is_not_freed() {
    let stand_in = StandIn::new(1);
    CudaMemory::new(&stand_in.driver(), 0).unwrap().release(Grant { address: 4096, bytes: 4096 });
}

#[test]
#[should_panic(expected = "was not granted by this source")]
fn a_foreign_mapped_region_is_not_unmapped() {
    let stand_in = StandIn::new(1);
    CudaVirtualMemory::new(&stand_in.driver(), 0).unwrap().release(Grant { address: 4096, bytes: 4096 });
}
