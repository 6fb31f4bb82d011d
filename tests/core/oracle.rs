//! Ours against TensorFlow's allocator, event by event: where everything lands, what is refused, what is
//! counted, and what the source is asked.
//!
//! `ALLOTMENT_TRACES` adds a folder of recorded programs, `ALLOTMENT_ORACLE_PROGRAMS` sets the number of random
//! programs, and `ALLOTMENT_SEED` repeats a run of them.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[path = "oracle/compare.rs"]
mod compare;
#[path = "../support/random_programs.rs"]
mod random_programs;
#[path = "../support/oracle.rs"]
mod reference;
#[path = "../support/traces.rs"]
mod traces;

use allotment::replay::{LIMIT_STEP, Program};
use compare::{Compared, compare};
use random_programs::Random;
use reference::Setup;

/// Events of a random program.
const EVENTS: usize = 10_000;
/// Random programs, unless the environment says another number.
const PROGRAMS: usize = 2_000;
/// A limit that no recorded program comes near.
const AMPLE: u64 = 64 << 30;
/// No cap on the source.
const NO_CAP: u64 = u64::MAX / 4;
/// At a limit of 64 GiB without growth, TensorFlow keeps a table of 2 GiB for each allocator.
const THREADS: usize = 2;

/// Held by the test that runs: the two take turns, each on all threads.
static RUNNING: Mutex<()> = Mutex::new(());

#[test]
fn recorded_programs_are_decided_as_tensorflow_does() {
    let traces = traces::all();
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
        let (setup, program) = random(seed, number);
        compare(&setup, &program)
            .map_err(|difference| format!("ALLOTMENT_SEED={seed}, program {number}: {difference}"))
    });
}

fn random(seed: u64, number: usize) -> (Setup, Program) {
    let mut random = Random::of(seed, number);
    let setup = random_programs::setup(&mut random);
    let program = random_programs::program(&mut random, &setup, EVENTS);
    (setup, program)
}

/// Every way to set up a pool for a recorded program: ample, and so tight that requests are refused.
fn setups(peak_live: u64) -> Vec<Setup> {
    let peak = peak_live.next_multiple_of(LIMIT_STEP);
    let mut setups = Vec::new();
    for limit in [AMPLE, peak, peak / 100 * 102, peak / 100 * 115] {
        for (gap, joins) in [(0, true), (256, false), (0, false)] {
            for (growth, trim_on_oom) in [(true, true), (true, false), (false, true), (false, false)] {
                setups.push(Setup { limit, cap: NO_CAP, gap, fraction: 0.0, joins, growth, trim_on_oom });
            }
        }
    }
    setups
}

/// Compares every job on all threads, says what was compared, and fails with the first difference.
fn run_all(what: &str, jobs: usize, job: impl Fn(usize) -> Result<Compared, String> + Sync) {
    // A failed test leaves nothing behind that the other could trip over.
    let _turn = RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    say(&format!("{what}: {jobs} runs on {THREADS} threads"));
    let start = Instant::now();
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let (events, beyond, calls, refused) = Default::default();
    let totals: [(&AtomicU64, fn(&Compared) -> u64); 4] = [
        (&events, |compared| compared.events),
        (&beyond, |compared| compared.beyond),
        (&calls, |compared| compared.calls),
        (&refused, |compared| compared.refused),
    ];
    let work = || -> Option<String> {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= jobs {
                break;
            }
            match job(number) {
                Ok(compared) => totals.iter().for_each(|(total, of)| {
                    total.fetch_add(of(&compared), Ordering::Relaxed);
                }),
                Err(difference) => {
                    stop.store(true, Ordering::Relaxed);
                    return Some(difference);
                }
            }
        }
        None
    };
    let difference = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|thread| thread.join().expect("a comparison does not panic")).next()
    });
    if let Some(difference) = difference {
        panic!("{difference}");
    }
    let [events, beyond, calls, refused] = totals.map(|(total, _)| total.load(Ordering::Relaxed));
    say(&format!(
        "{what}: no difference in {events} events ({refused} refused) and {calls} calls of the source; \
         {beyond} events lie where TensorFlow would hang; {:.1} s",
        start.elapsed().as_secs_f64()
    ));
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

fn seed_of_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock past 1970");
    Random::new(since.as_micros() as u64).next() >> 32
}

/// A line that the test harness does not hold back: the seed is of use while a run is still going.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
