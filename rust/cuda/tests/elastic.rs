//! Elastic pools of device memory: random programs at the limit, and every call of the driver failing in turn.

use allotment::source::{CheckedPages, Grant, RegionSource};
use allotment::{AllocError, Allocation, Options, PausedContent, Pool};
use allotment_cuda::{CudaError, CudaVirtualMemory, Driver};

#[path = "../../../tests/support/numbers.rs"]
#[allow(dead_code)]
mod numbers;
mod support;

use numbers::Numbers;
use support::{MIB, Outstanding, StandIn, UNKNOWN, bytes_at};

const PAGE: u64 = 2 * MIB;

fn pool(source: impl RegionSource + 'static, pages: u64) -> Pool {
    Pool::new(source, Options::new(pages * PAGE).elastic(true)).expect("options in range")
}

fn ends(allocation: &Allocation) -> [&'static mut [u8]; 2] {
    let last = allocation.address + allocation.size - 8;
    [allocation.address, last].map(|address| bytes_at(Grant { address, bytes: 8 }))
}

#[test]
fn contents_survive_while_pages_move() {
    let stand_in = StandIn::new(1);
    let source = CudaVirtualMemory::new(&stand_in.driver(), 0).unwrap();
    let (source, account) = CheckedPages::new(source, PAGE);
    let pool = pool(source, 16);
    let mut random = Numbers::new(1);
    let mut live: Vec<(Allocation, u8)> = Vec::new();
    let mut refusals = 0;
    for event in 0..4000_u64 {
        let byte = u8::try_from(event % 255).unwrap();
        if random.chance(60) {
            let most = if random.chance(60) { PAGE / 2 } else { 4 * PAGE };
            match pool.allocate(16 + random.below(most)) {
                Ok(allocation) => {
                    for end in ends(&allocation) {
                        end.fill(byte);
                    }
                    live.push((allocation, byte));
                    continue;
                }
                Err(AllocError::OutOfMemory(_)) => refusals += 1,
                Err(error) => panic!("{error}"),
            }
        }
        for _ in 0..random.below(4).min(live.len() as u64) {
            let (allocation, byte) = live.swap_remove(random.place(live.len()));
            assert!(ends(&allocation).into_iter().flatten().all(|found| *found == byte));
            pool.free(allocation.address).unwrap();
        }
        assert_eq!(stand_in.outstanding().bytes, account.bytes());
        assert_eq!(pool.stats().unwrap().reserved, account.bytes());
    }
    assert!(refusals > 50 && account.calls().moves > 50, "{refusals} {:?}", account.calls());
    pool.check().unwrap();
    pool.pause(PausedContent::Memory).unwrap();
    assert_eq!(stand_in.outstanding().bytes, 0);
    pool.resume().unwrap();
    for (allocation, byte) in live {
        assert!(ends(&allocation).into_iter().flatten().all(|found| *found == byte));
        pool.free(allocation.address).unwrap();
    }
    drop(pool);
    assert_eq!(stand_in.outstanding(), Outstanding::default());
}

#[test]
fn every_call_of_an_elastic_pool_fails_in_turn() {
    let stand_in = StandIn::new(1);
    let driver = stand_in.driver();
    let play = |driver: &Driver| {
        let pool = pool(CudaVirtualMemory::new(driver, 0)?, 8);
        let mut texts = Vec::new();
        let mut held: Vec<Allocation> = Vec::new();
        for round in 0..2 {
            for bytes in [3 * MIB, PAGE, 5 * MIB, MIB, 4 * MIB] {
                match pool.allocate(bytes) {
                    Ok(allocation) => held.push(allocation),
                    Err(AllocError::OutOfMemory(_)) => {}
                    Err(error) => texts.push(error.to_string()),
                }
                pool.check().expect("a pool in order");
            }
            // Holes between what stays, to which a longer request moves pages.
            for place in (0..held.len()).rev().step_by(2) {
                pool.free(held.swap_remove(place).address).expect("live");
            }
            if round == 1 {
                let paused = pool.pause(PausedContent::Memory).and_then(|_| pool.resume());
                if let Err(error) = paused {
                    texts.push(error.to_string());
                    pool.resume().expect("a failure that passes");
                }
                pool.check().expect("a pool in order");
            }
        }
        for allocation in held {
            pool.free(allocation.address).expect("live");
        }
        texts.extend(pool.trim().err().map(|error| error.to_string()));
        pool.check().expect("a pool in order");
        // The state that a failed trim leaves serves requests.
        if let Err(error) = pool.allocate(MIB).map(|allocation| pool.free(allocation.address).expect("live"))
        {
            texts.push(error.to_string());
        }
        // A page that the driver keeps stays committed, and the next trim tries again.
        for _ in 0..2 {
            texts.extend(pool.trim().err().map(|error| error.to_string()));
        }
        assert_eq!(pool.stats().expect("usable").reserved, 0, "{texts:?}");
        Ok::<_, CudaError>(texts)
    };
    let before = stand_in.calls();
    assert_eq!(play(&driver).unwrap(), Vec::<String>::new());
    for nth in 1..=stand_in.calls() - before {
        stand_in.fail_at(nth, UNKNOWN);
        let texts = play(&driver).unwrap_or_else(|error| vec![error.to_string()]);
        let call = stand_in.failed().expect("a call that was made");
        stand_in.fail_at(0, 0);
        assert_eq!(stand_in.outstanding(), Outstanding::default(), "call {nth}, {call}: {texts:?}");
        let is_named = |text: &String| text.contains(&format!("{call} failed: CUDA_ERROR_UNKNOWN"));
        assert!(texts.iter().all(is_named) && texts.len() < 2, "call {nth}, {call}: {texts:?}");
    }
}
