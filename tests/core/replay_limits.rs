//! Limits found by a search, against trying every multiple of the granularity.
//!
//! `ALLOTMENT_LIMIT_PROGRAMS` sets the number of random programs, `ALLOTMENT_LIMIT_STEP` the granularity in bytes for
//! recorded ones, 1 MiB for most by default.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

use std::num::NonZeroUsize;
use std::time::Duration;

use allotment::replay::{Limits, Program, ReplayError, Search, find_limits, play, replay};
use allotment::source::DescendingAddresses;
use allotment::{Options, Policy, Pool};

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../support/numbers.rs"]
mod numbers;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../support/traces.rs"]
mod traces;

use numbers::Numbers;

/// The pools of one search.
#[derive(Debug, Clone)]
struct Pools {
    options: Options,
    gap: u64,
}

impl Pools {
    /// Returns whether regions are apart, or adjacent and not joined.
    fn are_apart(&self) -> bool {
        self.gap > 0 || self.options.joins_regions == Some(false)
    }

    fn at(&self, limit: u64) -> Options {
        self.options.clone().limit(limit)
    }

    /// Returns whether a replay refuses nothing.
    fn serves(&self, program: &Program, limit: u64) -> bool {
        replay(program, &self.at(limit), self.gap, None).unwrap().refused == 0
    }

    /// Returns whether a replay refuses nothing, with descending addresses too if regions are apart.
    fn holds(&self, program: &Program, limit: u64) -> bool {
        self.serves(program, limit)
            && (!self.are_apart() || {
                let pool = Pool::new(DescendingAddresses::new(self.gap), self.at(limit)).unwrap();
                play(&pool, program, |_, _| {}).unwrap().refused == 0
            })
    }

    /// Returns the smallest limit and the smallest safe one, by trying every multiple.
    fn try_all(&self, program: &Program, granularity: u64) -> (u64, u64) {
        if program.peak_live() == 0 {
            return (0, 0);
        }
        // An elastic pool has a page at least.
        let least = program.peak_live().max(self.options.page_size.unwrap_or(0)).div_ceil(granularity);
        let smallest = (least..1 << 40).find(|step| self.serves(program, step * granularity)).unwrap();
        let mut safe = smallest;
        let mut step = smallest;
        while step * 4 <= safe * 5 {
            if !self.holds(program, step * granularity) {
                safe = step + 1;
            }
            step += 1;
        }
        (smallest * granularity, safe * granularity)
    }

    fn find(&self, program: &Program, granularity: u64) -> Limits {
        let search = Search { granularity, ..Search::default() };
        find_limits(program, &self.options, self.gap, &search, |_| true).unwrap()
    }
}

/// Generates a program with phases: blocks of a few sizes or of any, freed in any order.
fn program(random: &mut Numbers) -> Program {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    let mut live = Vec::new();
    let largest = 1 << (10 + random.below(12));
    let few: Vec<i64> = (0..=random.below(5)).map(|_| size(random, largest)).collect();
    let any = random.chance(50);
    let most_live = 1 + random.place(40);
    for id in (0..).take(20 + random.place(150)) {
        while live.len() >= most_live || (!live.is_empty() && random.chance(40)) {
            let (id, size) = live.swap_remove(random.place(live.len()));
            push(&mut columns, 2, id, size);
        }
        let size = if any { size(random, largest) } else { few[random.place(few.len())] };
        push(&mut columns, 1, id, size);
        live.push((id, size));
    }
    Program::from_columns(&columns.0, &columns.1, &columns.2).unwrap()
}

fn size(random: &mut Numbers, largest: u64) -> i64 {
    let below = 1 + random.below(largest);
    i64::try_from(random.below(below)).unwrap()
}

fn push(columns: &mut (Vec<i64>, Vec<i64>, Vec<i64>), op: i64, id: i64, size: i64) {
    columns.0.push(op);
    columns.1.push(id);
    columns.2.push(size);
}

fn pools(random: &mut Numbers) -> Pools {
    let options = Options::new(1)
        .growth(random.chance(60))
        .trim_on_oom(random.chance(30))
        .joins_regions([None, Some(true), Some(false)][random.place(3)])
        .policy([Policy::TensorFlow, Policy::Tight][random.place(2)])
        .fragmentation_fraction([0.0, 0.0, 0.0, 0.05][random.place(4)]);
    Pools { options, gap: [0, 0, 256, 4096][random.place(4)] }
}

#[test]
fn random_programs_as_if_every_limit_was_tried() {
    let count = std::env::var("ALLOTMENT_LIMIT_PROGRAMS").map_or(500, |count| count.parse().unwrap());
    let mut not_monotone = 0;
    for number in 0..count {
        let random = &mut Numbers::one_of(17, number);
        let program = program(random);
        let pools = pools(random);
        let granularity = (program.peak_live() / (50 + random.below(400))).next_multiple_of(256).max(256);
        let (smallest, safe) = pools.try_all(&program, granularity);
        let expected = Limits { min_limit: smallest, safe_limit: safe, untried: None };
        assert_eq!(pools.find(&program, granularity), expected, "program {number}: {pools:?} {granularity}");
        not_monotone += u64::from(safe > smallest);
    }
    // The search exists because of these.
    assert!(not_monotone > count / 50, "{not_monotone} of {count}");
}

#[test]
fn elastic_pools_as_if_every_limit_was_tried() {
    for number in 0..100 {
        let random = &mut Numbers::one_of(23, number);
        let program = program(random);
        let page_size = 256 << random.below(10);
        let options = Options::new(1).growth(random.chance(60)).elastic(true).page_size(page_size);
        let pools = Pools { options, gap: [0, 4096][random.place(2)] };
        // Limits below a page, too: they are no limits of such a pool.
        let granularity = [page_size, page_size * 2, 256.max(page_size / 4)][random.place(3)]
            .max((program.peak_live() / 200).next_multiple_of(256));
        let (smallest, _) = pools.try_all(&program, granularity);
        let found = pools.find(&program, granularity);
        assert_eq!((found.min_limit, found.untried), (smallest, None), "program {number}: {pools:?}");
        let steps = (found.safe_limit / granularity)..=(found.safe_limit / granularity * 5 / 4);
        for step in steps {
            assert!(pools.serves(&program, step * granularity), "program {number}: {pools:?}");
        }
    }
}

/// Recorded programs with few enough limits to try all.
const SMALL: [&str; 3] = ["torch_gnn_train", "tf_eager_gan_gp", "torch_dlrm_train"];

fn recorded(name: &str) -> Program {
    traces::named(|trace| trace == name).pop().unwrap().program
}

#[test]
fn recorded_programs_as_if_every_limit_was_tried() {
    for name in SMALL {
        let program = recorded(name);
        for (growth, joins_regions) in [(true, true), (true, false), (false, true)] {
            let options = Options::new(1).growth(growth).joins_regions(joins_regions);
            let pools = Pools { options, gap: 0 };
            let default = if program.peak_live() < 32 << 20 { 64 << 10 } else { 1 << 20 };
            let granularity =
                std::env::var("ALLOTMENT_LIMIT_STEP").map_or(default, |step| step.parse().unwrap());
            let (min_limit, safe_limit) = pools.try_all(&program, granularity);
            let expected = Limits { min_limit, safe_limit, untried: None };
            assert_eq!(pools.find(&program, granularity), expected, "{name}: {pools:?}");
        }
    }
}

#[test]
fn what_bisection_missed() {
    // A smaller limit that serves, and a larger one that fails.
    let pools = |growth| Pools { options: Options::new(1).growth(growth), gap: 0 };
    let resnet = pools(false).find(&recorded("torch_resnet50_train_b16"), 64 << 10);
    assert_eq!((resnet.min_limit, resnet.safe_limit), (1_761_017_856, 1_812_135_936));
    let gnn = pools(true).find(&recorded("torch_gnn_train"), 64 << 10);
    assert_eq!((gnn.min_limit, gnn.safe_limit), (27_918_336, 30_146_560 + (64 << 10)));
}

#[test]
fn time_that_runs_out_leaves_an_answer_that_holds() {
    let program = recorded("scaled_resnet50_train_b128");
    let pools = Pools { options: Options::new(1), gap: 256 };
    for milliseconds in [0, 20, 100] {
        let search =
            Search { granularity: 256, time: Duration::from_millis(milliseconds), ..Search::default() };
        let limits = find_limits(&program, &pools.options, pools.gap, &search, |_| true).unwrap();
        let untried = limits.untried.unwrap();
        assert!(program.peak_live() <= *untried.start() && untried.start() <= untried.end(), "{untried:?}");
        // The result makes no claim about untried lower limits.
        assert!(limits.min_limit <= limits.safe_limit && *untried.end() < limits.safe_limit);
        assert!(pools.serves(&program, limits.min_limit));
        for share in 0..=25 {
            let limit = limits.safe_limit / 25600 * (100 + share) * 256;
            assert!(pools.holds(&program, limit.max(limits.safe_limit)), "{limit}");
        }
    }
}

#[test]
fn a_search_is_interrupted_while_it_runs() {
    let program = recorded("scaled_seg_train_varsize");
    let search = Search { granularity: 256, threads: NonZeroUsize::MIN, ..Search::default() };
    let mut calls = 0;
    let stopped = find_limits(&program, &Options::new(1), 256, &search, |progress| {
        assert!(progress.known <= progress.all);
        calls += 1;
        calls < 4
    });
    assert!(matches!(stopped, Err(ReplayError::Interrupted)));
    assert_eq!(calls, 4);
}
