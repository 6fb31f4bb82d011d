//! Refusals with fixed expected advice.

use allotment::source::AddressSpace;
use allotment::{Action, Advice, Options, OutOfMemory, Policy, Pool, Verdict, When};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn explained(pool: &Pool, bytes: u64) -> OutOfMemory {
    *pool.explain(bytes).expect("in range").expect("it does not fit")
}

fn numbers(refused: &OutOfMemory) -> Vec<(Action, u64, When)> {
    refused.advice.iter().map(|advice| (advice.action, advice.bytes, advice.when)).collect()
}

fn pool(options: Options) -> Pool {
    Pool::new(AddressSpace::new(0), options).expect("options in range")
}

#[test]
fn a_scope_that_holds_nothing_has_nothing_to_free() {
    let pool = pool(Options::new(MIB));
    let scope = pool.open_scope("cap", Some(100 * KIB), false).expect("this process");
    let refused = explained(&pool, 300 * KIB);
    assert_eq!(refused.verdict, Verdict::Scope);
    let expected = [(Action::RaiseScope, 300 * KIB, When::Now), (Action::AskFor, 100 * KIB, When::Now)];
    assert_eq!(numbers(&refused), expected);
    assert_eq!(refused.advice[0].targets, [("cap".to_owned(), 300 * KIB)]);
    pool.close_scope(scope).expect("this process");
}

#[test]
fn scopes_in_scopes_are_raised_together() {
    let pool = pool(Options::new(MIB));
    let outer = pool.open_scope("outer", Some(200 * KIB), false).expect("this process");
    let held = pool.allocate(150 * KIB).expect("fits");
    let inner = pool.open_scope("inner", Some(60 * KIB), false).expect("this process");
    let refused = explained(&pool, 100 * KIB);
    let raise = &refused.advice[0];
    assert_eq!((raise.action, raise.bytes), (Action::RaiseScope, 250 * KIB));
    let targets = [("outer".to_owned(), 250 * KIB), ("outer/inner".to_owned(), 100 * KIB)];
    assert_eq!(raise.targets, targets);
    // Memory of the outer scope does not help the inner one; a smaller request does.
    assert_eq!(numbers(&refused)[1..], [(Action::AskFor, 50 * KIB, When::Now)]);
    let refused = explained(&pool, 55 * KIB);
    let free = &refused.advice[0];
    assert_eq!((free.action, &free.allocations[..], free.bytes), (Action::Free, &[held.id][..], 150 * KIB));
    pool.close_scope(inner).expect("this process");
    pool.close_scope(outer).expect("this process");
}

#[test]
fn a_program_that_loses_bytes_inside_chunks_is_served_by_the_tight_policy() {
    let pool = pool(Options::new(MIB).growth(false));
    for _ in 0..2 {
        pool.allocate(400_000).expect("fits");
    }
    let refused = explained(&pool, 8);
    assert_eq!((refused.verdict, refused.internal_fragmentation), (Verdict::Slack, 248_576));
    let policy = refused.advice.iter().find(|advice| advice.action == Action::Policy);
    assert_eq!(policy.map(|advice| (advice.when, advice.bytes)), Some((When::NextRun, 248_576)));
    let again = self::pool(Options::new(MIB).growth(false).policy(Policy::Tight));
    for bytes in [400_000, 400_000, 8] {
        again.allocate(bytes).expect("fits");
    }
    // The advice includes a limit under which the same program is served from its start.
    let limit = refused
        .advice
        .iter()
        .find(|advice| advice.when == When::NextRun && advice.action == Action::RaiseLimit);
    let limit = limit.expect("twice as much is enough").bytes;
    let again = self::pool(Options::new(limit).growth(false));
    for bytes in [400_000, 400_000, 8] {
        again.allocate(bytes).expect("fits");
    }
}

#[test]
fn the_allocations_to_free_are_those_with_the_fewest_bytes() {
    let pool = pool(Options::new(64 * KIB).growth(false).policy(Policy::Tight));
    let held: Vec<_> = [16, 4, 16, 8, 16, 4].map(|kib| pool.allocate(kib * KIB).expect("fits")).into();
    pool.free_allocation(&held[2]).expect("live");
    // A hole of 16 KiB between holes of 4 and 8 KiB.
    let advice = |kib: u64| explained(&pool, kib * KIB).advice[0].clone();
    assert_eq!((advice(20).allocations, advice(20).bytes), (vec![held[1].id], 4 * KIB));
    assert_eq!((advice(24).allocations, advice(24).bytes), (vec![held[3].id], 8 * KIB));
    assert_eq!(advice(28).allocations, [held[1].id, held[3].id]);
    assert_eq!(advice(28).to_string(), "free allocations 2 and 4 (12 KiB)");
}

#[test]
fn regions_are_emptied_where_none_is_long_enough() {
    let options = Options::new(14 * MIB).joins_regions(false);
    let pool = pool(options);
    let held: Vec<_> = [MIB, 3 * MIB, 5 * MIB].map(|bytes| pool.allocate(bytes).expect("fits")).into();
    let free = explained(&pool, 9 * MIB).advice[0].clone();
    assert_eq!(free.action, Action::Free);
    for held in held.iter().filter(|held| free.allocations.contains(&held.id)) {
        pool.free_allocation(held).expect("live");
    }
    pool.allocate(9 * MIB).expect("the emptied regions went back");
}

#[test]
fn nothing_is_advised_that_is_set_already() {
    let pool = pool(Options::new(MIB).growth(false).policy(Policy::Tight));
    pool.allocate(MIB).expect("fits");
    let refused = explained(&pool, 1);
    assert!(refused.advice.iter().all(|advice| !matches!(advice.action, Action::Policy | Action::Trim)));
    let Advice { bytes, .. } = refused.advice[1];
    assert!(bytes > MIB, "{refused}");
}
