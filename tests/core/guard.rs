//! Guard mode over memory that is a list of bytes: invalid writes beside an allocation or after its free are found
//! and reported once, by the right call.

#[path = "guard/figures.rs"]
mod figures;
#[path = "guard/memory.rs"]
mod memory;
#[path = "guard/quarantine.rs"]
mod quarantine;
#[path = "guard/reporting.rs"]
mod reporting;
#[path = "guard/requests.rs"]
mod requests;
#[path = "guard/together.rs"]
mod together;
#[path = "guard/zones.rs"]
mod zones;

use allotment::{Allocation, Damage, DamagedPlace, FreeError, Options, Pool, Stats};

use memory::{Memory, Paper};

const KIB: u64 = 1 << 10;

/// Creates a guarded pool with one region, its memory, and a quarantine of this size.
fn pool(limit: u64, quarantine: u64) -> (Pool, Memory) {
    let options = guarded(limit).growth(false).quarantine(quarantine);
    over_paper(options)
}

fn guarded(limit: u64) -> Options {
    Options::new(limit).guard(true)
}

fn over_paper(options: Options) -> (Pool, Memory) {
    let memory = Memory::default();
    let pool = Pool::new(Paper::new(memory.clone()), options).expect("options in range");
    (pool, memory)
}

fn damaged(freed: Result<(), FreeError>) -> Damage {
    match freed {
        Err(FreeError::Damaged(damage)) => damage,
        other => panic!("no damage was reported: {other:?}"),
    }
}

/// Returns the expected report of damage to this allocation.
fn damage(place: DamagedPlace, of: &Allocation, offset: i64) -> Damage {
    let Allocation { address, requested, id, .. } = *of;
    Damage { place, address, requested, id, offset }
}

/// Returns the counters after a full check.
fn sound(pool: &Pool) -> Stats {
    pool.check().expect("every invariant holds");
    let stats = pool.stats().expect("this process");
    let snapshot = pool.snapshot().expect("this process");
    let chunks = || snapshot.regions.iter().flat_map(|region| &region.chunks);
    let in_use: u64 = chunks().filter(|chunk| chunk.in_use).map(|chunk| chunk.size).sum();
    assert_eq!(stats.in_use, in_use, "in use is the sum of the chunks in use");
    assert_eq!(chunks().filter(|chunk| chunk.in_use).count() as u64, stats.num_live);
    assert!(chunks().all(|chunk| chunk.in_use == (chunk.id != 0)));
    assert!(stats.requested <= stats.in_use && stats.in_use <= stats.reserved, "{stats:?}");
    assert!(stats.reserved <= stats.limit, "{stats:?}");
    assert!(stats.largest_free <= stats.free, "{stats:?}");
    stats
}
