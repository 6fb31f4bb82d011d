//! Which options an elastic pool takes.

use allotment::source::{AddressSpace, Grant, RegionSource, ReserveError};
use allotment::{Allocator, Options, OptionsError, Pool};

/// A source of whole regions.
struct Whole;

impl RegionSource for Whole {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        Ok(Grant { address: 1 << 20, bytes })
    }

    fn release(&mut self, _region: Grant) {}
}

fn elastic(limit: u64) -> Options {
    Options::new(limit).elastic(true)
}

#[test]
fn a_source_of_whole_regions_is_refused() {
    let pool = Pool::new(Whole, elastic(64 << 20));
    assert_eq!(pool.err(), Some(OptionsError::NotPaged));
}

#[test]
fn a_page_size_is_a_power_of_two_within_the_limit() {
    for page_size in [3 << 20, 128, 128 << 20] {
        let options = elastic(64 << 20).page_size(page_size);
        let refused = Pool::new(AddressSpace::new(0), options).expect_err("a bad page size");
        assert_eq!(refused, OptionsError::PageSize { page_size, granule: 256, limit: 64 << 20 });
    }
}

#[test]
fn a_page_size_alone_is_refused() {
    let options = Options::new(1 << 20).page_size(4096);
    assert_eq!(Pool::new(AddressSpace::new(0), options).err(), Some(OptionsError::OnlyForElastic));
}

#[test]
fn guard_mode_is_refused() {
    let options = elastic(64 << 20).guard(true);
    let refused = Pool::new(AddressSpace::new(0), options).expect_err("guard mode");
    assert_eq!(refused, OptionsError::NotElastic { option: "guard" });
}

#[test]
fn an_allocator_without_a_pool_has_whole_regions() {
    let refused = Allocator::new(AddressSpace::new(0), elastic(64 << 20)).expect_err("elastic");
    assert_eq!(refused, OptionsError::OnlyForPools { option: "elastic" });
}
