//! Random programs, threads, and waiting.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use allotment::{Allocation, Request};

use super::{KIB, guarded, over_paper, sound};

/// A small deterministic generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn random_programs_leave_no_leak_and_no_false_report() {
    for seed in 0..30 {
        let mut numbers = Numbers(seed);
        let options = guarded(256 * KIB)
            .growth(seed % 2 == 0)
            .trim_on_oom(seed % 3 == 0)
            .quarantine(numbers.below(64) * KIB);
        let (pool, memory) = over_paper(options);
        let mut live: Vec<(Allocation, u8)> = Vec::new();
        for step in 0..1500_u32 {
            if numbers.below(5) < 3 {
                let bytes = 1 + numbers.below(6000);
                let alignment = 1 << numbers.below(13);
                match pool.allocate_with_retry(Request::new(bytes).align(alignment), |_| false) {
                    Ok(a) => {
                        let stamp = u8::try_from(step % 250).unwrap();
                        (a.address..a.address + bytes).for_each(|address| memory.write(address, stamp));
                        live.push((a, stamp));
                    }
                    Err(allotment::AllocError::OutOfMemory(_)) => {
                        assert!(!pool.can_allocate(bytes + alignment.saturating_sub(256)).unwrap());
                    }
                    Err(other) => panic!("{other:?}"),
                }
            } else if !live.is_empty() {
                let index = usize::try_from(numbers.below(live.len() as u64)).unwrap();
                let (a, stamp) = live.swap_remove(index);
                assert!(memory.read(a.address, a.requested).iter().all(|&byte| byte == stamp));
                if step % 2 == 0 { pool.free(a.address).unwrap() } else { pool.free_deferred(&a) }
            }
            if step % 50 == 0 {
                assert_eq!(sound(&pool).num_live, live.len() as u64);
            }
        }
        for (a, _) in live {
            pool.free_allocation(&a).unwrap();
        }
        assert_eq!(pool.inspect().unwrap(), []);
        pool.trim().unwrap();
        assert_eq!(sound(&pool).reserved, 0);
        pool.allocate(256 * KIB - 512).unwrap();
    }
}

#[test]
fn threads_do_not_damage_each_other() {
    let (pool, memory) = over_paper(guarded(1024 * KIB).quarantine(32 * KIB));
    let pool = Arc::new(pool);
    thread::scope(|scope| {
        for number in 0..8_u8 {
            let (pool, memory) = (&pool, &memory);
            scope.spawn(move || {
                let mut held: Vec<Allocation> = Vec::new();
                for step in 0..400_u64 {
                    let a = pool.allocate(1 + step * 37 % 3000).unwrap();
                    memory.write(a.address, number);
                    memory.write(a.address + a.requested - 1, number);
                    held.push(a);
                    if held.len() > 8 {
                        let a = held.swap_remove(usize::try_from(step % 8).unwrap());
                        assert_eq!(memory.read(a.address + a.requested - 1, 1), [number]);
                        if step % 3 == 0 { pool.free_deferred(&a) } else { pool.free(a.address).unwrap() }
                    }
                }
                for a in held {
                    pool.free_allocation(&a).unwrap();
                }
            });
        }
    });
    let stats = sound(&pool);
    assert_eq!((stats.num_live, stats.in_use, stats.requested), (0, 0, 0));
    assert_eq!(pool.inspect().unwrap(), []);
}

#[test]
fn a_waiting_request_gets_quarantined_memory() {
    let options = guarded(64 * KIB).growth(false).wait(Duration::from_secs(20)).quarantine(64 * KIB);
    let (pool, _) = over_paper(options);
    let held = pool.allocate(60 * KIB).unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| pool.allocate(50 * KIB));
        thread::sleep(Duration::from_millis(30));
        pool.free(held.address).unwrap();
        waits.join().unwrap().unwrap();
    });
    assert_eq!(sound(&pool).num_refused, 0);
}
