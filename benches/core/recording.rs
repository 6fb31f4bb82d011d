//! What does a recording add to an event of a pool?
//!
//! A program that allocates and frees up to 64 KiB among 256 live blocks, in turns with and without a recording to a ring
//! of the last 65,536 events. The best of many short rounds counts, as other processes interrupt the others.
//!
//! ```text
//! cargo bench --features oracle --bench recording
//! ```

use std::time::Instant;

use allotment::{EventLog, Keep, Options, Pool, source::AddressSpace};

mod table;

use table::Table;

const LIVE: usize = 256;
const EVENTS: u32 = 100_000;
const ROUNDS: usize = 100;

fn main() {
    let pool = Pool::new(AddressSpace::new(0), Options::new(1 << 30)).expect("the limit is in range");
    let log = EventLog::new(1 << 16, Keep::Last);
    let [mut plain, mut recorded] = [f64::MAX; 2];
    for _ in 0..ROUNDS {
        plain = plain.min(churn(&pool));
        pool.start_recording(&log).expect("the pool is usable");
        recorded = recorded.min(churn(&pool));
        pool.stop_recording(&log).expect("the pool is usable");
    }
    assert!(log.lost() > 0 && log.events().len() == 1 << 16, "the ring is full");
    let mut table = Table::new("recording", &["ns an event", "plain", "recorded", "more"]);
    let [plain, more, recorded] = [plain, recorded - plain, recorded].map(table::figure);
    table.row(&["churn of up to 64 KiB", &plain, &recorded, &more]);
}

/// Returns the nanoseconds of an event.
fn churn(pool: &Pool) -> f64 {
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    let allocate = |bytes| pool.allocate(bytes).expect("the limit is ample").address;
    let mut live: Vec<u64> = (0..LIVE).map(|_| allocate(256 + next(65_536))).collect();
    let start = Instant::now();
    for _ in 0..EVENTS / 2 {
        let place = usize::try_from(next(LIVE as u64)).expect("a small number");
        pool.free(live[place]).expect("it is live");
        live[place] = allocate(256 + next(65_536));
    }
    let nanoseconds = start.elapsed().as_secs_f64() * 1e9 / f64::from(EVENTS);
    for address in live {
        pool.free(address).expect("it is live");
    }
    nanoseconds
}
