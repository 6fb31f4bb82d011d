use proptest::prelude::*;

use super::*;
use crate::policy::Policy;
use crate::test_strategies::{config, limit, number, share, size};
use crate::units::share_of;

/// Creates an allocator with one free region of `bytes` bytes.
fn with_a_region(bytes: u64, limit: u64, split_rule: SplitRule) -> Tables {
    let mut allocator = Tables::new(Limit { bytes: limit, set_by: "".into() }, false, split_rule, false);
    let plan = allocator
        .plan(ChunkRequest { bytes, needed: bytes, owner: None, held: false })
        .expect("below the limit");
    allocator.adopt(Grant { address: GRANULE, bytes }, &plan);
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
        let allocation = allocator.try_allocate(ChunkRequest { bytes: needed, needed, owner: None, held: false }).expect("it fits");

        // Tables, section 8, with a threshold of at least 1 (allocator, section 20, defect 4), in integers that cannot
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
        prop_assert_eq!(crate::check::check(&allocator), Ok(()));

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
    fn an_aligned_request_fits_behind_any_granule(bytes in size(), power in 0..13_u32, granule in 1..100_u64) {
        let alignment = 1_u64 << power;
        let Some(request) = ChunkRequest::new(bytes, alignment) else { return Ok(()) };
        let address = granule * GRANULE;
        prop_assume!(request.needed <= MAX_BYTES - address);
        let allocation = Allocation { address, size: request.needed, requested: bytes, id: 1 };
        let start = allocation.aligned_address(alignment);
        prop_assert!(start.is_multiple_of(alignment) && start >= address);
        prop_assert!(allocation.size_from(start) >= bytes);
    }
}
