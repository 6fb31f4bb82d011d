//! Long seeded runs, each reduced to one hash over all results.

use allotment::Stats;
use allotment::source::{AddressSpace, Call};

use crate::probe::{NO_CAP, Probe, bump, options};

/// One row of the recorded table: the setup of a run, and TensorFlow's results.
struct Row {
    seed: u64,
    steps: u32,
    limit: u64,
    cap: u64,
    gap: u64,
    joins: bool,
    growth: bool,
    trim: bool,
    fraction: f64,
    /// Sizes are below two to this power.
    powers: u64,
    /// Percentage of steps that allocate.
    allocates: u64,
    expected: Expected,
}

#[derive(Debug, PartialEq)]
struct Expected {
    hash: u64,
    live: usize,
    fails: u64,
    in_use: u64,
    peak: u64,
    largest: u64,
    pool: u64,
    peak_pool: u64,
    granted: usize,
    released: usize,
}

/// The table as recorded, for comparison by eye, without the runs on time stamps and their column. Its columns are
/// the fields above, in order.
const TABLE: &str = "
| 1 | 1000 | 1048576 | ∞ | 0 | 0 | 0 | 0 | 0 | 14 | 60 | aa38b070aa66cdc9 | 174 | 0 | 161280 | 168448 | 15872 | 1048576 | 1048576 | 1 | 0 |
| 2 | 20000 | 67108864 | ∞ | 0 | 0 | 0 | 0 | 0 | 22 | 55 | 613c8635543c5b3f | 1465 | 457 | 65833472 | 67036928 | 3700224 | 67108864 | 67108864 | 1 | 0 |
| 3 | 20000 | 67108864 | ∞ | 256 | 0 | 1 | 0 | 0 | 22 | 55 | 47a026a59484fa26 | 1494 | 376 | 64268288 | 67032064 | 3849728 | 67108864 | 67108864 | 6 | 0 |
| 4 | 20000 | 67108864 | ∞ | 256 | 0 | 1 | 1 | 0 | 22 | 52 | 97b967ab1cc44169 | 746 | 84 | 63279616 | 67048704 | 3756544 | 67108864 | 67108864 | 6 | 0 |
| 5 | 20000 | 67108864 | ∞ | 0 | 1 | 1 | 0 | 0 | 22 | 55 | a62fef5fb0c788da | 1622 | 534 | 65551360 | 67092224 | 3570688 | 67108864 | 67108864 | 6 | 0 |
| 6 | 20000 | 67108864 | ∞ | 0 | 1 | 1 | 1 | 0 | 24 | 52 | 56e559790276b6b2 | 360 | 384 | 60631808 | 66983424 | 15325696 | 67108864 | 67108864 | 6 | 0 |
| 7 | 20000 | 1000000001 | ∞ | 256 | 0 | 1 | 1 | 0.001 | 27 | 55 | f0efeee85ee0539f | 1458 | 520 | 885238784 | 988198912 | 66189568 | 1000000000 | 1000000000 | 7 | 0 |
| 8 | 20000 | 1000000001 | 500000000 | 256 | 0 | 1 | 1 | 0 | 27 | 52 | e0f250a2bda14214 | 447 | 459 | 447972352 | 499069696 | 124086784 | 499854336 | 499854336 | 9 | 2 |
| 9 | 20000 | 8589934592 | ∞ | 0 | 0 | 0 | 1 | 0 | 31 | 52 | 61337793afbce081 | 426 | 232 | 7884770048 | 8542124544 | 1070656256 | 8589934592 | 8589934592 | 1 | 0 |
| 28 | 40000 | 4294967296 | 4000000000 | 256 | 0 | 1 | 1 | 0 | 30 | 51 | 05634fecbe3dc37f | 441 | 421 | 3844790528 | 3985059072 | 630318848 | 3997393664 | 3997393664 | 14 | 4 |
| 26 | 20000 | 33554432 | 20000000 | 256 | 0 | 1 | 1 | 0.05 | 26 | 50 | 4fe808df66b39bee | 5 | 505 | 53504 | 19997952 | 19789824 | 19889664 | 19998208 | 28 | 26 |
";

fn row(line: &str) -> Row {
    let cells: Vec<_> = line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let number = |column: usize| match cells[column] {
        "∞" => NO_CAP,
        digits => digits.parse().unwrap(),
    };
    let count = |column: usize| usize::try_from(number(column)).unwrap();
    Row {
        seed: number(0),
        steps: u32::try_from(number(1)).unwrap(),
        limit: number(2),
        cap: number(3),
        gap: number(4),
        joins: number(5) == 1,
        growth: number(6) == 1,
        trim: number(7) == 1,
        fraction: cells[8].parse().unwrap(),
        powers: number(9),
        allocates: number(10),
        expected: Expected {
            hash: u64::from_str_radix(cells[11], 16).unwrap(),
            live: count(12),
            fails: number(13),
            in_use: number(14),
            peak: number(15),
            largest: number(16),
            pool: number(17),
            peak_pool: number(18),
            granted: count(19),
            released: count(20),
        },
    }
}

/// Returns the linear congruential generator of the record.
fn numbers(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

/// FNV-1a over the eight bytes of `value`, little end first.
fn mix(hash: u64, value: u64) -> u64 {
    value
        .to_le_bytes()
        .iter()
        .fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211))
}

fn run(row: &Row) -> Expected {
    let options = options(row.limit)
        .growth(row.growth)
        .trim_on_oom(row.trim)
        .joins_regions(row.joins)
        .fragmentation_fraction(row.fraction);
    let probe = Probe::over(options, bump(row.gap, row.cap));
    let mut next = numbers(row.seed);
    let mut live = Vec::new();
    let (mut hash, mut fails, mut largest) = (14_695_981_039_346_656_037, 0, 0);
    for _ in 0..row.steps {
        let roll = next();
        if live.is_empty() || roll % 100 < row.allocates {
            let power = next() % row.powers;
            let bytes = 1 + next() % (1 << power);
            if let Some((offset, size)) = probe.alloc(bytes) {
                hash = mix(mix(hash, offset), size);
                largest = size.max(largest);
                live.push(offset);
            } else {
                hash = mix(hash, u64::MAX);
                fails += 1;
            }
        } else {
            let index = usize::try_from(next()).unwrap() % live.len();
            let offset = live.swap_remove(index);
            probe.pool.free(AddressSpace::START + offset).unwrap();
        }
    }
    probe.pool.check().unwrap();
    let calls = probe.calls();
    let Stats { in_use, peak_in_use: peak, reserved: pool, peak_reserved: peak_pool, .. } = probe.stats();
    let granted = calls.iter().filter(|call| matches!(call, Call::Reserve { answer: Some(_), .. })).count();
    let released = calls.iter().filter(|call| matches!(call, Call::Release(_))).count();
    Expected { hash, live: live.len(), fails, in_use, peak, largest, pool, peak_pool, granted, released }
}

#[test]
fn every_recorded_run_gives_the_recorded_hash_and_figures() {
    let rows: Vec<_> = TABLE.trim().lines().map(row).collect();
    assert_eq!(rows.len(), 11);
    for row in rows {
        assert_eq!(run(&row), row.expected, "seed {}", row.seed);
    }
}

#[test]
fn the_first_results_of_the_first_run_are_the_recorded_ones() {
    // Allocated bytes with their offset, or a free of an offset.
    let recorded = [
        (Some(1), 0),
        (None, 0),
        (Some(247), 0),
        (None, 0),
        (Some(125), 0),
        (Some(13), 256),
        (None, 256),
        (Some(2), 256),
        (Some(867), 512),
        (None, 512),
        (Some(82), 512),
        (None, 512),
        (Some(6), 512),
        (None, 0),
        (None, 512),
        (Some(2), 0),
    ];
    let probe = Probe::new(options(1_048_576));
    let mut next = numbers(1);
    let mut live = Vec::new();
    for (step, expected) in recorded.into_iter().enumerate() {
        let roll = next();
        let done = if live.is_empty() || roll % 100 < 60 {
            let power = next() % 14;
            let bytes = 1 + next() % (1 << power);
            let (offset, _) = probe.alloc(bytes).unwrap();
            live.push(offset);
            (Some(bytes), offset)
        } else {
            let index = usize::try_from(next()).unwrap() % live.len();
            let offset = live.swap_remove(index);
            probe.free(offset);
            (None, offset)
        };
        assert_eq!(done, expected, "step {step}");
    }
}
