//! Our allocator against TensorFlow's, event by event: addresses, refusals, counters, and source calls.
//!
//! `ALLOTMENT_TRACES` adds a folder of recorded programs, `ALLOTMENT_ORACLE_PROGRAMS` sets the number of random
//! programs, and `ALLOTMENT_SEED` repeats a run of them.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

#[path = "oracle/compare.rs"]
#[allow(dead_code, reason = "the fuzz test makes its programs while they run")]
mod compare;
#[path = "../support/numbers.rs"]
#[allow(dead_code, reason = "other tests draw in other ways")]
mod numbers;
#[path = "../support/random_programs.rs"]
mod random_programs;
#[path = "../support/oracle.rs"]
mod reference;
#[path = "../support/seeds.rs"]
mod seeds;
#[path = "../support/traces.rs"]
mod traces;

use allotment::replay::LIMIT_STEP;
use compare::{Compared, compare};
use reference::Setup;
use seeds::{from_environment, say, seed_of_now};

/// Events of a random program.
const EVENTS: usize = 10_000;
/// The default number of random programs.
const PROGRAMS: usize = 2_000;
/// A limit far above every recorded program.
const AMPLE: u64 = 64 << 30;
/// At a limit of 64 GiB without growth, TensorFlow keeps a table of 2 GiB per allocator.
const THREADS: usize = 2;

/// Held by the running test: each of the two uses all threads.
static RUNNING: Mutex<()> = Mutex::new(());

#[test]
fn recorded_programs_are_decided_as_tensorflow_does() {
    let traces = traces::named(|_| true);
    assert!(!traces.is_empty(), "no recorded programs in the repository: name a folder in ALLOTMENT_TRACES");
    let mut jobs = Vec::new();
    for trace in &traces {
        for setup in setups(trace.program.peak_live()) {
            jobs.push((trace, setup));
        }
    }
    run_all(&format!("{} recorded programs", traces.len()), jobs.len(), |number| {
        let (trace, setup) = &jobs[number];
        compare(setup, &trace.program).map_err(|difference| format!("{}: {difference}", trace.name))
    });
}

#[test]
fn random_programs_are_decided_as_tensorflow_does() {
    let programs = from_environment("ALLOTMENT_ORACLE_PROGRAMS").map_or(PROGRAMS, |number| {
        usize::try_from(number).expect("ALLOTMENT_ORACLE_PROGRAMS is a number of programs")
    });
    let seed = from_environment("ALLOTMENT_SEED").unwrap_or_else(seed_of_now);
    run_all(&format!("random programs of ALLOTMENT_SEED={seed}"), programs, |number| {
        let mut random = random_programs::numbers(seed, number);
        let setup = random_programs::setup(&mut random);
        let program = random_programs::program(&mut random, &setup, EVENTS);
        compare(&setup, &program)
            .map_err(|difference| format!("ALLOTMENT_SEED={seed}, program {number}: {difference}"))
    });
}

/// Returns the pool setups for a recorded program: ample ones, and ones so tight that requests are refused.
///
/// An ample pool without growth has one region that is never joined or released. Only one layout of it is used, as
/// each takes a second, or all layouts if a folder of programs was given.
fn setups(peak_live: u64) -> Vec<Setup> {
    let everything = std::env::var_os("ALLOTMENT_TRACES").is_some();
    let peak = peak_live.next_multiple_of(LIMIT_STEP);
    let mut setups = Vec::new();
    for limit in [AMPLE, peak, peak / 100 * 102, peak / 100 * 115] {
        for (gap, joins) in [(0, true), (256, false), (0, false)] {
            for (growth, trim_on_oom) in [(true, true), (true, false), (false, true), (false, false)] {
                if limit == AMPLE && !growth && (trim_on_oom || !joins) && !everything {
                    continue;
                }
                setups.push(Setup { limit, gap, joins, growth, trim_on_oom, ..Setup::NO_REFUSALS });
            }
        }
    }
    setups
}

/// Compares every job on all threads, prints totals, and fails with the first difference.
fn run_all(what: &str, jobs: usize, job: impl Fn(usize) -> Result<Compared, String> + Sync) {
    // A failed test leaves no state for the other one.
    let _turn = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    reference::require();
    say(&format!("{what}: {jobs} runs on {THREADS} threads"));
    let start = Instant::now();
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let work = || {
        let mut total = Compared::default();
        while !failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= jobs {
                break;
            }
            total += job(number).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        }
        Ok(total)
    };
    let totals: Result<Vec<Compared>, String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let mut total = Compared::default();
    totals.unwrap_or_else(|difference| panic!("{difference}")).into_iter().for_each(|part| total += part);
    say(&format!("{what}: no difference in {total}; {:.1} s", start.elapsed().as_secs_f64()));
}
