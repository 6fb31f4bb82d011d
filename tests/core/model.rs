//! Random programs against the shadow, over every kind of source and every option. Programs on pools with thread caches
//! are checked by their invariants, as no shadow predicts the choice of chunks.
//!
//! Each kind of source has two tests. One plays many short programs and shrinks the first failure. The other plays
//! long programs, which reach states that short ones do not; a failure names the seed and the step.
//!
//! `ALLOTMENT_MODEL_PROGRAMS` sets the number of short programs per kind; there are a tenth as many long ones.
//! `ALLOTMENT_MODEL_SEED` sets the first seed, for example that of a failure.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

#[path = "model/cached.rs"]
mod cached;
#[path = "../support/misbehaving.rs"]
#[allow(dead_code, reason = "the fuzz test has more places")]
mod misbehaving;
#[allow(dead_code, reason = "programs of many seeds use the rest")]
#[path = "../support/numbers.rs"]
mod numbers;
#[path = "model/program.rs"]
mod program;
#[path = "model/run.rs"]
mod run;
#[path = "model/setup.rs"]
mod setup;
#[path = "../support/shadow.rs"]
mod shadow;
#[path = "../support/sources.rs"]
mod sources;

use misbehaving::{Habits, Misdeed, Place};
use numbers::Numbers;
use program::{ALLOCATES, KINDS, Step};
use run::{Pace, run};
use setup::{Kind, SWITCHES, Setup, limit};

const SHORT: usize = 120;
const LONG: usize = 3000;

/// Does each kind of misbehaviour about once in sixty requests.
const EVERY_BAD_HABIT: Kind = Kind::Misbehaving(Habits {
    place: Place::Ascending { gap: 0 },
    cap: u64::MAX,
    largest: u64::MAX,
    nth: None,
    often: 45,
    misdeeds: u16::MAX,
    panics_at_release: 3,
});

const BREAKS_AT_ONCE: Kind = Kind::Misbehaving(Habits {
    place: Place::Scattered,
    cap: u64::MAX,
    largest: u64::MAX,
    nth: Some((0, Misdeed::Panics)),
    often: 0,
    misdeeds: 0,
    panics_at_release: 0,
});

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn programs() -> u64 {
    from_environment("ALLOTMENT_MODEL_PROGRAMS", 2000)
}

fn first_seed() -> u64 {
    from_environment("ALLOTMENT_MODEL_SEED", 1)
}

/// Plays a program on a pool with the options of the setup.
fn play(setup: &Setup, steps: Vec<Step>, pace: Pace) {
    if setup.options.thread_caches {
        cached::run(setup, steps, pace);
    } else {
        run(setup, steps, pace);
    }
}

/// Plays many short programs; shrinks the first failure.
fn short_programs(name: &str, kind: Kind) {
    let setups = (0..SWITCHES, any::<u32>(), any::<u16>(), 0..8_u8, any::<u64>()).prop_map(
        move |(switches, a, b, fraction, seed)| Setup::new(kind, switches, limit(a, b), fraction, seed),
    );
    let steps = (0..KINDS, any::<u32>(), any::<u16>()).prop_map(|(kind, a, b)| program::step(kind, a, b));
    let config = Config {
        cases: u32::try_from(programs()).expect("a number of programs"),
        failure_persistence: None,
        ..Config::default()
    };
    let seed = first_seed();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    // Different programs for each kind of source.
    bytes.iter_mut().skip(8).zip(name.bytes()).for_each(|(byte, letter)| *byte = letter);
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, random);
    let result = runner.run(&(setups, vec(steps, 0..SHORT)), |(setup, steps)| {
        play(&setup, steps, Pace { every: 1, most_live: usize::MAX });
        Ok(())
    });
    if let Err(failure) = result {
        panic!("ALLOTMENT_MODEL_SEED={seed}: {failure}");
    }
}

/// Plays a few long programs that alternate between phases of much and little free memory.
fn long_programs(name: &str, kind: Kind) {
    for seed in (first_seed()..).take(usize::try_from(programs().div_ceil(10)).expect("a number of programs"))
    {
        let mut random =
            Numbers::new(name.bytes().fold(seed, |seed, letter| seed.wrapping_mul(31) ^ u64::from(letter)));
        let [switches, fraction, b0, b1, a @ ..] = random.next().to_le_bytes();
        let limit = limit(u32::from_le_bytes(a), u16::from_le_bytes([b0, b1]));
        let setup = Setup::new(kind, switches, limit, fraction, seed);
        let steps = long_program(&mut random);
        if let Err(cause) =
            catch_unwind(AssertUnwindSafe(|| play(&setup, steps, Pace { every: 8, most_live: usize::MAX })))
        {
            let text = cause.downcast_ref::<String>().map_or("?", String::as_str);
            panic!("ALLOTMENT_MODEL_SEED={seed}: {text}");
        }
    }
}

fn long_program(random: &mut Numbers) -> Vec<Step> {
    let mut steps = Vec::new();
    while steps.len() < LONG {
        let eager = [10, 45, 55, 75, 95][random.place(5)];
        for _ in 0..random.below(LONG as u64 / 8) {
            let [kind, _, b0, b1, a @ ..] = random.next().to_le_bytes();
            let allocates = random.chance(eager);
            let kind = if allocates { kind % ALLOCATES } else { ALLOCATES + kind % (KINDS - ALLOCATES) };
            steps.push(program::step(kind, u32::from_le_bytes(a), u16::from_le_bytes([b0, b1])));
        }
    }
    steps
}

macro_rules! over {
    ($($name:ident: $kind:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn short() {
                short_programs(stringify!($name), $kind);
            }

            #[test]
            fn long() {
                long_programs(stringify!($name), $kind);
            }
        }
    )*};
}

over! {
    touching: Kind::Ascending { gap: 0 };
    apart: Kind::Ascending { gap: 256 };
    descending: Kind::Descending { gap: 0 };
    descending_apart: Kind::Descending { gap: 4096 };
    scattered: Kind::Scattered;
    capped: Kind::Capped;
    refuses_large: Kind::RefusesLarge;
    refuses_the_nth: Kind::RefusesTheNth;
    refuses_at_random: Kind::RefusesAtRandom;
    fails: Kind::Fails;
    short_grants: Kind::Short;
    long_grants: Kind::Long;
    faulty: Kind::Faulty;
    host: Kind::Host;
    cuda: Kind::Cuda;
    cuda_mapped: Kind::CudaMapped;
    every_misbehavior: EVERY_BAD_HABIT;
    breaks_at_once: BREAKS_AT_ONCE;
}
