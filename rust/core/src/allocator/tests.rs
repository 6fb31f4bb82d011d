use proptest::prelude::*;

use super::*;
use crate::Pool;
use crate::source::{AddressSpace, Cap, Capped};
use crate::test_strategies::config;

#[derive(Debug, Clone)]
enum Step {
    Allocate { bytes: u64, power: u32 },
    Free(usize),
    Resize(usize, u64),
    Trim,
    SetLimit(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..400_000_u64, 0..18_u32).prop_map(|(bytes, power)| Step::Allocate { bytes, power }),
        4 => any::<usize>().prop_map(Step::Free),
        2 => (any::<usize>(), 0..400_000_u64).prop_map(|(which, bytes)| Step::Resize(which, bytes)),
        1 => Just(Step::Trim),
        1 => (0..8_u64 << 20).prop_map(Step::SetLimit),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn it_makes_the_decisions_of_a_pool(steps in prop::collection::vec(step(), 1..200), growth: bool) {
        let options = Options::new(4 << 20).growth(growth);
        let source = || Capped::new(AddressSpace::new(256), Cap::new(6 << 20));
        let pool = Pool::new(source(), options.clone()).expect("in range");
        let mut allocator = Allocator::new(source(), options).expect("in range");
        let mut live: Vec<Allocation> = Vec::new();
        for step in steps {
            match step {
                Step::Allocate { bytes, power } => {
                    let request = Request::new(bytes).align(1 << power);
                    let served = allocator.allocate(request);
                    let text = |result: &Result<Allocation, AllocError>| match result {
                        Err(AllocError::OutOfMemory(refused)) => Err(refused.verdict),
                        other => Ok(*other.as_ref().expect("a valid request")),
                    };
                    prop_assert_eq!(text(&served), text(&pool.allocate(request)));
                    live.extend(served);
                }
                Step::Free(which) if !live.is_empty() => {
                    let Allocation { address, .. } = live.swap_remove(which % live.len());
                    prop_assert_eq!(allocator.free(address), pool.free(address));
                }
                Step::Resize(which, bytes) if !live.is_empty() => {
                    let which = which % live.len();
                    let resized = allocator.resize(live[which].address, bytes);
                    prop_assert_eq!(&resized, &pool.resize(live[which].address, bytes));
                    if let Ok(resized) = resized {
                        live[which] = resized;
                    }
                }
                Step::Trim => prop_assert_eq!(Ok(allocator.trim()), pool.trim()),
                Step::SetLimit(limit) => {
                    prop_assert_eq!(allocator.set_limit(limit), pool.set_limit(limit, false, "limit").map(drop));
                }
                Step::Free(_) | Step::Resize(..) => {}
            }
            prop_assert_eq!(Ok(allocator.snapshot()), pool.snapshot());
        }
        prop_assert_eq!(allocator.check(), Ok(()));
    }
}

#[test]
fn an_option_of_pools_is_an_error() {
    let refused = |options| Allocator::new(AddressSpace::new(0), options).map(|_| ()).unwrap_err();
    let guard = Options::new(1 << 20).guard(true);
    assert_eq!(refused(guard), OptionsError::OnlyForPools { option: "guard" });
    let wait = Options::new(1 << 20).wait(core::time::Duration::from_secs(1));
    assert_eq!(refused(wait), OptionsError::OnlyForPools { option: "wait" });
}

#[test]
fn a_tag_of_a_request_names_its_allocation() {
    let mut allocator = Allocator::new(AddressSpace::new(0), Options::new(1 << 20)).expect("in range");
    let tagged = allocator.allocate(Request::new(1000).tag("weights")).expect("fits");
    let snapshot = allocator.snapshot();
    assert_eq!(snapshot.regions[0].chunks[0].owner.as_deref(), Some("weights"));
    allocator.free(tagged.address).expect("live");
    assert_eq!(allocator.check(), Ok(()));
}

#[test]
fn a_dropped_allocator_gives_back_what_is_free() {
    let cap = Cap::new(16 << 20);
    let source = Capped::new(AddressSpace::new(256), cap.clone());
    let mut allocator = Allocator::new(source, Options::new(16 << 20)).expect("in range");
    let first = allocator.allocate(2 << 20).expect("fits");
    let second = allocator.allocate(4 << 20).expect("fits");
    allocator.free(first.address).expect("live");
    assert_eq!(allocator.free(first.address), Err(FreeError::NotAllocated { address: first.address }));
    assert_eq!(second.size, 4 << 20);
    drop(allocator);
    assert_eq!(cap.used(), 4 << 20, "a region in use stays");
}

#[test]
fn an_aligned_request_is_served_without_growth_once_a_better_fit_is_released() {
    let options = Options::new(1 << 20).growth(false);
    let mut allocator = Allocator::new(AddressSpace::new(256), options).expect("in range");
    let aligned = allocator.allocate(264_704).expect("fits");
    allocator.allocate((1 << 20) - 264_704).expect("fits");
    allocator.set_limit((1 << 20) + 252_160).expect("in range");
    // The second region fits the request better than the first hole, but has no piece at a multiple of 2^14.
    let better = allocator.allocate(252_160).expect("grows");
    assert_eq!(better.address % (1 << 14), 256);
    allocator.free(better.address).expect("live");
    allocator.free(aligned.address).expect("live");
    allocator.set_limit((1 << 20) + 264_960).expect("in range");
    let served = allocator.allocate(Request::new(248_577).align(1 << 14)).expect("fits");
    assert_eq!((served.address, allocator.stats().num_regions), (aligned.address, 1));
}
