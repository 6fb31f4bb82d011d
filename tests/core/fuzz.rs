//! Programs from arbitrary bytes: the fuzzer's corpus, earlier findings, and fresh ones.
//!
//! `make fuzz` searches for more with coverage feedback. This test plays every program in `tests/fuzz/` and a number
//! of fresh ones: `ALLOTMENT_FUZZ_EVENTS` sets the number of their events, `ALLOTMENT_SEED` repeats them.

use std::fmt::Display;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

#[path = "../fuzz/against_shadow.rs"]
mod against_shadow;
#[cfg(feature = "oracle")]
#[path = "../fuzz/against_tensorflow.rs"]
mod against_tensorflow;
#[cfg(feature = "oracle")]
#[path = "oracle/compare.rs"]
#[allow(dead_code, reason = "the oracle test compares whole programs")]
mod compare;
#[path = "../support/misbehaving.rs"]
mod misbehaving;
#[path = "../support/numbers.rs"]
#[allow(dead_code, reason = "other tests draw in other ways")]
mod numbers;
#[path = "model/program.rs"]
#[allow(dead_code, reason = "the model test makes whole programs")]
mod program;
#[cfg(feature = "oracle")]
#[path = "../support/oracle.rs"]
mod reference;
#[path = "model/run.rs"]
mod run;
#[path = "../support/seeds.rs"]
mod seeds;
#[path = "model/setup.rs"]
#[allow(dead_code, reason = "the model test goes through every kind of source")]
mod setup;
#[path = "../support/shadow.rs"]
mod shadow;
#[path = "../support/sources.rs"]
#[allow(dead_code, reason = "as for `setup`")]
mod sources;

use numbers::Numbers;
use seeds::{from_environment, say, seed_of_now};

/// Steps of a fresh program: long programs amortize the creation of pools.
const STEPS: usize = 4_000;
/// The default number of events of fresh programs.
const EVENTS: u64 = 1_000_000;
const THREADS: u64 = 2;

#[test]
fn a_pool_does_what_its_shadow_does() {
    replay("against_shadow", against_shadow::play);
    fresh("the shadow", |random, bytes| {
        against_shadow::fresh(random, STEPS, bytes);
        against_shadow::play(bytes)
    });
}

#[cfg(feature = "oracle")]
#[test]
fn a_pool_does_what_tensorflow_does() {
    reference::require();
    replay("against_tensorflow", against_tensorflow::play);
    fresh("TensorFlow's allocator", |random, bytes| {
        against_tensorflow::fresh(random, STEPS, bytes);
        against_tensorflow::play(bytes)
    });
}

/// Plays every stored program of a target.
fn replay<T>(target: &str, play: impl Fn(&[u8]) -> T) {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz");
    let mut played = 0;
    for folder in ["corpus", "findings"] {
        // Without findings there is no folder of them.
        let Ok(programs) = fuzz.join(folder).join(target).read_dir() else { continue };
        for program in programs {
            let path = program.expect("a folder that can be read").path();
            let bytes = std::fs::read(&path).expect("a program that can be read");
            let done = catch_unwind(AssertUnwindSafe(|| play(&bytes)));
            assert!(done.is_ok(), "{} fails: see above", path.display());
            played += 1;
        }
    }
    assert!(played > 0, "no program is kept for {target}");
    say(&format!("{target}: {played} kept programs"));
}

/// Plays fresh programs on all threads until there are enough events; prints totals.
fn fresh<T: Summed>(judge: &str, one: impl Fn(&mut Numbers, &mut Vec<u8>) -> T + Sync) {
    let enough = from_environment("ALLOTMENT_FUZZ_EVENTS").unwrap_or(EVENTS);
    let seed = from_environment("ALLOTMENT_SEED").unwrap_or_else(seed_of_now);
    say(&format!("fresh programs of ALLOTMENT_SEED={seed} against {judge}"));
    let start = Instant::now();
    let (next, events, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let total = Mutex::new(T::default());
    let work = || {
        let (mut bytes, mut sum) = (Vec::new(), T::default());
        while events.load(Ordering::Relaxed) < enough && !failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let mut random = Numbers::one_of(seed, number);
            let Ok(part) = catch_unwind(AssertUnwindSafe(|| one(&mut random, &mut bytes))) else {
                failed.store(true, Ordering::Relaxed);
                let kept = std::env::temp_dir().join(format!("allotment-fuzz-{seed}-{number}"));
                std::fs::write(&kept, &bytes).expect("a folder for temporary files");
                panic!("program {number} of ALLOTMENT_SEED={seed} fails and is kept as {}", kept.display());
            };
            events.fetch_add(part.events(), Ordering::Relaxed);
            sum += part;
        }
        *total.lock().expect("no thread panics") += sum;
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            assert!(thread.join().is_ok(), "see above");
        }
    });
    let total = total.into_inner().expect("no thread panics");
    assert!(total.events() >= enough);
    say(&format!("no difference from {judge} in {total}; {:.1} s", start.elapsed().as_secs_f64()));
}

/// Totals over programs.
trait Summed: Default + AddAssign + Display + Send {
    fn events(&self) -> u64;
}

impl Summed for run::Tally {
    fn events(&self) -> u64 {
        self.events
    }
}

#[cfg(feature = "oracle")]
impl Summed for compare::Compared {
    fn events(&self) -> u64 {
        self.events as u64
    }
}
