use proptest::prelude::*;

use super::*;
use crate::error::Shortage;
use crate::policy::Policy;
use crate::source::Grant;
use crate::test_strategies::{config, limit, number, share, size};
use crate::units::MAX_BYTES;
use crate::units::share_of;

/// Creates an allocator with one free region of `bytes` bytes.
fn with_a_region(bytes: u64, limit: u64, split_rule: SplitRule) -> Tables {
    with_region(Grant { address: GRANULE, bytes }, limit, split_rule)
}

fn with_region(grant: Grant, limit: u64, split_rule: SplitRule) -> Tables {
    let bytes = grant.bytes;
    let mut allocator = Tables::new(Limit { bytes: limit, set_by: "".into() }, false, split_rule, false);
    let plan = allocator.plan(ChunkRequest::for_chunk(bytes, bytes)).expect("below the limit");
    allocator.adopt(grant, &plan);
    allocator
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_chunk_is_split_as_the_specification_says(
        limit in limit(),
        one in size(),
        other in size(),
        fraction in share(),
        policy in prop::sample::select(&[Policy::TensorFlow, Policy::Tight]),
    ) {
        let limit = limit.clamp(GRANULE, MAX_BYTES - GRANULE);
        let fit = |bytes: u64| round_up((bytes % limit).max(1)).min(limit / GRANULE * GRANULE);
        let (needed, size) = (fit(one).min(fit(other)), fit(one).max(fit(other)));
        let mut allocator = with_a_region(size, limit, SplitRule { policy, fraction });
        let allocation = allocator.try_allocate(ChunkRequest::for_chunk(needed, needed)).expect("it fits");

        // Allocator, section 8, with a threshold of at least 1 (allocator, section 20, defect 4), in integers that cannot
        // overflow.
        let threshold = if policy == Policy::Tight {
            1
        } else if fraction > 0.0 {
            share_of(limit, fraction).max(1)
        } else {
            134_217_728
        };
        let (wide, threshold) = (u128::from(size), u128::from(threshold));
        let splits = wide >= 2 * u128::from(needed) || wide - u128::from(needed) >= threshold;
        // An exact fit leaves no remainder.
        prop_assert_eq!(allocation.size, if splits && size > needed { needed } else { size });
        prop_assert_eq!(allocation.address, GRANULE);
        prop_assert_eq!(crate::tables::check::check(&allocator), Ok(()));

        allocator.free(allocation.address, FreeTarget::ANY).expect("live");
        prop_assert_eq!(allocator.bins.largest(&allocator.chunks), size);
    }

    #[test]
    fn a_request_is_padded_and_rounded_or_refused(bytes in number(), power in 0..13_u32) {
        let alignment = 1_u64 << power;
        // Enough space for the first multiple of the alignment from any granule on.
        let padded = u128::from(bytes) + u128::from(alignment).saturating_sub(256);
        let expected = (padded <= u128::from(MAX_BYTES)).then(|| padded.div_ceil(256) * 256);
        let request = ChunkRequest::new(bytes, alignment);
        prop_assert_eq!(request.map(|request| u128::from(request.needed)), expected);
        prop_assert!(request.is_none_or(|request| request.bytes == bytes && request.needed <= MAX_BYTES));
    }

    #[test]
    fn an_aligned_request_fits_behind_any_granule(bytes in 1..1_u64 << 40, power in 0..40_u32, granule in 1..1000_u64) {
        let alignment = 1_u64 << power;
        let request = ChunkRequest::new(bytes, alignment).expect("below the limit");
        let region = Grant { address: granule * GRANULE, bytes: request.needed };
        let rule = SplitRule { policy: Policy::Tight, fraction: 0.0 };
        let mut allocator = with_region(region, region.bytes, rule);
        let allocation = allocator.try_allocate(request).expect("the padding is for any start");
        prop_assert!(allocation.address.is_multiple_of(alignment));
        prop_assert!(allocation.address >= region.address && allocation.address + bytes <= region.end());
        // The bytes before and behind it are free.
        prop_assert_eq!(allocation.size, round_up(bytes));
        prop_assert_eq!(crate::tables::check::check(&allocator), Ok(()));

        allocator.free(allocation.address, FreeTarget::ANY).expect("live");
        prop_assert_eq!(allocator.bins.largest(&allocator.chunks), region.bytes);
    }

    #[test]
    fn a_resize_takes_what_it_needs_and_gives_back_the_rest(
        sizes in prop::array::uniform3(1..1_u64 << 20),
        bytes in 1..1_u64 << 22,
        is_next_free: bool,
    ) {
        let [before, own, next] = sizes;
        let [_, own_size, next_size] = sizes.map(round_up);
        let rule = SplitRule { policy: Policy::Tight, fraction: 0.0 };
        let total = sizes.map(round_up).iter().sum();
        let mut allocator = with_a_region(total, total, rule);
        let mut take = |bytes| allocator.try_allocate(ChunkRequest::for_chunk(bytes, round_up(bytes))).expect("it fits");
        let [_, own, next] = [before, own, next].map(&mut take);
        if is_next_free {
            allocator.free(next.address, FreeTarget::ANY).expect("live");
        }
        let possible = own_size + if is_next_free { next_size } else { 0 };
        let resized = allocator.resize(own.address, FreeTarget::ANY, (bytes, round_up(bytes)), Tail::Free).expect("live");
        match resized {
            Ok(size) => prop_assert!(size == round_up(bytes) && size <= possible),
            Err(Shortage::Neighbour { size, possible: most }) => {
                prop_assert_eq!((size, most), (own_size, possible));
                prop_assert!(round_up(bytes) > possible);
            }
            Err(shortage) => panic!("there is no scope: {shortage:?}"),
        }
        prop_assert_eq!(crate::tables::check::check(&allocator), Ok(()));
    }
}

#[test]
fn a_freed_piece_serves_the_same_aligned_request_again() {
    let rule = SplitRule { policy: Policy::TensorFlow, fraction: 0.0 };
    let mut allocator = with_a_region(1 << 20, 1 << 20, rule);
    let request = ChunkRequest::new(1 << 16, 1 << 16).expect("below the limit");
    let first = allocator.try_allocate(request).expect("it fits");
    // Nothing is free beside it.
    let others: Vec<_> =
        std::iter::from_fn(|| allocator.try_allocate(ChunkRequest::for_chunk(GRANULE, GRANULE))).collect();
    allocator.free(first.address, FreeTarget::ANY).expect("live");
    assert_eq!(allocator.try_allocate(request).map(|again| again.address), Some(first.address));
    assert_eq!(others.len(), ((1 << 20) - (1 << 16)) / 256);
}
