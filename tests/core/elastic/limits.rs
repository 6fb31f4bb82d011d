//! The smallest limits of recorded programs, beside the peak of what they request.

use std::collections::BTreeSet;

use allotment::replay::{Event, Program, play, replay};
use allotment::source::AddressSpace;
use allotment::{Options, Pool};

use crate::numbers::Numbers;
use crate::traces::named;

/// How far above the peak of live bytes a limit may be, in thousandths of it.
fn most(page_size: u64, peak: u64) -> Option<u64> {
    match page_size {
        0x1000 if peak >= 64 << 20 => Some(5),
        0x1_0000 if peak >= 64 << 20 => Some(20),
        0x20_0000 if peak >= 256 << 20 => Some(50),
        0x20_0000 if peak >= 64 << 20 => Some(120),
        _ => None,
    }
}

#[test]
fn a_limit_close_to_the_peak_completes() {
    let mut judged = 0;
    for trace in named(|_| true) {
        // Rounding to granules is lost in every pool.
        let peak = trace.program.peak_in_granules();
        for page_size in [4 << 10, 64 << 10, 2 << 20] {
            let Some(most) = most(page_size, peak) else { continue };
            let limit = (peak + peak / 1000 * most) / page_size * page_size;
            let options = Options::new(limit).elastic(true).page_size(page_size);
            let refused = replay(&trace.program, &options, 0, None).expect("replayable").refused;
            assert_eq!(refused, 0, "{}: limit {limit}, peak {peak}, pages of {page_size}", trace.name);
            judged += 1;
        }
    }
    assert!(judged >= 6);
}

#[test]
fn little_more_than_the_peak_is_committed_at_an_ample_limit() {
    for trace in named(|_| true) {
        let peak = trace.program.peak_in_granules();
        for page_size in [64 << 10, 2 << 20] {
            let options = Options::new(1 << 40).elastic(true).page_size(page_size);
            let stats = replay(&trace.program, &options, 0, None).expect("replayable").stats;
            let most = peak + peak / 50 + page_size * trace.program.slots() as u64;
            assert!(stats.peak_reserved <= most, "{}: {} of {most}", trace.name, stats.peak_reserved);
        }
    }
}

/// Plays a program to its end and frees what it leaves; returns the pages that it received and those of its requests.
fn pages_of_a_run(pool: &Pool, program: &Program, page_size: u64) -> (u64, u64) {
    let before = pool.stats().expect("usable").num_commits;
    let mut live = BTreeSet::new();
    let outcome = play(pool, program, |event, address| {
        match program.events()[event] {
            Event::Allocate { .. } => live.insert(address),
            Event::Free { .. } => live.remove(&address),
        };
    });
    for address in live {
        pool.free(address).expect("live");
    }
    let requested = program.events().iter().map(|event| match event {
        Event::Allocate { bytes, .. } => bytes.div_ceil(page_size),
        Event::Free { .. } => 0,
    });
    (outcome.expect("replayable").stats.num_commits - before, requested.sum())
}

#[test]
fn a_program_that_runs_again_receives_hardly_any_page() {
    for trace in named(|_| true) {
        for page_size in [64 << 10, 2 << 20] {
            let options = Options::new(1 << 40).elastic(true).page_size(page_size);
            let pool = Pool::new(AddressSpace::new(0), options).expect("valid");
            pages_of_a_run(&pool, &trace.program, page_size);
            let (received, requested) = pages_of_a_run(&pool, &trace.program, page_size);
            let name = &trace.name;
            assert!(
                received * 1000 <= requested * 4,
                "{name}: {received} of {requested} pages of {page_size}"
            );
        }
    }
}

/// Returns a program in which best fit without pages leaves many holes: waves of blocks of mixed sizes, of which a random
/// part outlives its wave, and each wave has larger blocks than the one before.
fn hard_lifetimes(seed: u64) -> Program {
    let mut random = Numbers::one_of(seed, 11);
    let (mut ops, mut ids, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    let mut live: Vec<(i64, i64)> = Vec::new();
    let mut id = 0;
    for wave in 0..24_u64 {
        for _ in 0..40 {
            let unit = (64 << 10) << (wave % 8);
            let size = i64::try_from(1 + random.below(unit) + unit / 2).expect("small");
            ops.push(1);
            ids.push(id);
            sizes.push(size);
            live.push((id, size));
            id += 1;
        }
        let kept = 5 + random.below(25);
        live.retain(|&(id, size)| {
            let stays = random.chance(kept);
            if !stays {
                ops.push(2);
                ids.push(id);
                sizes.push(size);
            }
            stays
        });
    }
    Program::from_columns(&ops, &ids, &sizes).expect("a program")
}

#[test]
fn hard_lifetimes_need_little_more_than_the_lower_bound() {
    for seed in 0..20 {
        let program = hard_lifetimes(seed);
        // No allocator needs less than the bytes that are live at a time.
        let bound = program.peak_in_granules();
        for page_size in [4 << 10, 64 << 10, 2 << 20] {
            let limit = bound + bound / 50 + page_size * program.slots() as u64;
            let options = Options::new(limit).elastic(true).page_size(page_size);
            let refused = replay(&program, &options, 0, None).expect("replayable").refused;
            assert_eq!(refused, 0, "seed {seed}, pages of {page_size}");
            if page_size == 4 << 10 {
                let plain = replay(&program, &Options::new(limit), 0, None).expect("replayable").refused;
                assert!(plain > 0, "seed {seed} is not hard");
            }
        }
    }
}
