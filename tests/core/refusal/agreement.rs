//! `can_allocate` against the following `allocate`.

use allotment::source::AddressSpace;
use allotment::{GRANULE, Options, Pool};

use super::numbers::Numbers;

/// Returns sizes around everything that can decide a request, and one arbitrary size.
fn telling_sizes(pool: &Pool, random: &mut Numbers) -> Vec<u64> {
    let snapshot = pool.snapshot().expect("this process");
    let stats = snapshot.stats;
    let mut sizes =
        vec![stats.limit, stats.limit - stats.reserved, stats.largest_free, stats.limit - stats.in_use];
    let wholly_free =
        snapshot.regions.iter().filter(|region| region.chunks.iter().all(|chunk| !chunk.in_use));
    sizes.push(stats.limit - stats.reserved + wholly_free.map(|region| region.size).sum::<u64>());
    sizes.push(any_size(random));
    sizes.iter().flat_map(|&size| [size.saturating_sub(GRANULE), size, size + 1, size + GRANULE]).collect()
}

/// Returns 1 byte to 8 GiB; all magnitudes are equally likely.
fn any_size(random: &mut Numbers) -> u64 {
    let power = 1 << random.below(33);
    power + random.below(power)
}

/// Creates a pool in a reproducible random state, as each served request changes it.
fn pool_after(seed: u64, steps: usize) -> (Pool, Numbers) {
    let mut random = Numbers::new(seed);
    let options = Options::new(any_size(&mut random))
        .growth(random.chance(70))
        .trim_on_oom(random.chance(70))
        .joins_regions(random.chance(30).then(|| random.chance(50)));
    let limit = options.limit;
    let source = AddressSpace::new([0, 256][random.place(2)]);
    let pool = Pool::new(source, options).expect("options in range");
    let mut live = Vec::new();
    for _ in 0..steps {
        if live.is_empty() || random.chance(60) {
            let part = 1 + random.below(40);
            live.extend(pool.allocate(random.below(limit / part + 1)));
        } else {
            let allocation: allotment::Allocation = live.swap_remove(random.place(live.len()));
            pool.free(allocation.address).expect("live");
        }
    }
    (pool, random)
}

#[test]
fn can_allocate_is_what_allocate_does_on_every_state_of_a_random_program() {
    for seed in 0..40 {
        for steps in 0..24 {
            let (pool, mut random) = pool_after(seed, steps);
            for bytes in telling_sizes(&pool, &mut random) {
                let (pool, _) = pool_after(seed, steps);
                let (can, result) = (pool.can_allocate(bytes).unwrap(), pool.allocate(bytes));
                assert_eq!(can, result.is_ok(), "seed {seed}, step {steps}, {bytes} bytes: {result:?}");
            }
        }
    }
}

#[test]
fn asking_changes_nothing() {
    let (pool, mut random) = pool_after(3, 20);
    let before = pool.snapshot().unwrap();
    for bytes in telling_sizes(&pool, &mut random) {
        let _ = pool.can_allocate(bytes).unwrap();
    }
    assert_eq!(pool.snapshot().unwrap(), before);
}

#[test]
fn what_no_pool_can_hold_cannot_be_allocated() {
    let (pool, _) = pool_after(1, 0);
    assert!(!pool.can_allocate(allotment::MAX_BYTES + 1).unwrap());
    assert!(!pool.can_allocate(u64::MAX).unwrap());
    assert!(pool.can_allocate(0).unwrap());
}
