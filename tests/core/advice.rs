//! Advice is followed literally, on a pool in the same state, and the request must then succeed. Where the advice
//! says "smallest" or "at most", one less or one more must fail.

#[path = "advice/cases.rs"]
mod cases;
#[path = "advice/follow.rs"]
mod follow;
#[path = "advice/gauged.rs"]
mod gauged;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../support/numbers.rs"]
mod numbers;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../support/sources.rs"]
mod sources;
#[path = "advice/world.rs"]
mod world;

use std::collections::BTreeMap;

use follow::check;
use numbers::Numbers;
use world::{Setup, Step, World};

/// Refusals per program: later ones are similar.
const REFUSALS: usize = 6;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// How often each kind of advice was followed.
type Tally = BTreeMap<String, u64>;

#[test]
fn every_piece_of_advice_works_and_the_numbers_are_the_best() {
    let wanted = from_environment("ALLOTMENT_ADVICE_REFUSALS", 20_000);
    let seed = from_environment("ALLOTMENT_ADVICE_SEED", 1);
    let mut tally = Tally::new();
    let mut refusals = 0;
    for program in 0.. {
        let mut random = Numbers::one_of(seed, program);
        refusals += play(&Setup::random(&mut random), &mut random, &mut tally);
        if refusals >= wanted {
            break;
        }
    }
    // Each kind occurs in a significant fraction of the refusals.
    for kind in [
        "free now",
        "raise_limit now",
        "ask_for now",
        "trim now",
        "raise_scope now",
        "policy next run",
        "raise_limit next run",
        "elastic next run",
    ] {
        let followed = tally.get(kind).copied().unwrap_or(0);
        assert!(followed > wanted / 500, "{kind} came up {followed} times in {refusals} refusals: {tally:?}");
    }
}

/// Plays one random program and follows the advice of its first refusals; returns their number.
fn play(setup: &Setup, random: &mut Numbers, tally: &mut Tally) -> u64 {
    let mut world = World::new(setup);
    let mut steps = Vec::new();
    let mut refusals = 0;
    for _ in 0..150 {
        let step = Step::random(random, setup);
        let refused = world.take(&step);
        if let Some(refused) = refused {
            refusals += 1;
            check(setup, &steps, &step, &refused, tally);
            if refusals == REFUSALS as u64 {
                break;
            }
        }
        steps.push(step);
    }
    world.pool.check().expect("every invariant holds");
    refusals
}
