//! The allocations of which a log that keeps the last events has dropped the event, and which are not freed.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::EventKind;
use super::batch::RawEvent;

/// Live allocations by pool and number, after all events that left a log: those are live before its first kept event.
///
/// Events of one pool leave in their order. Those of several pools need no order among each other.
#[derive(Debug, Clone, Default)]
pub(super) struct Dropped(HashMap<(u64, u64), RawEvent, BuildHasherDefault<NumberHasher>>);

/// Hashes numbers of pools and allocations, which no input chooses: every event passes here while its pool is locked, and
/// the hash of the standard library would take longer than all the rest of its recording.
#[derive(Debug, Clone, Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The odd number next to 2^64 divided by the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Dropped {
    /// Adds an event of `pool` that leaves the log.
    pub(super) fn add(&mut self, pool: u64, event: RawEvent) {
        match event.kind {
            EventKind::Allocated => drop(self.0.insert((pool, event.id), event)),
            EventKind::Freed => drop(self.0.remove(&(pool, event.id))),
            EventKind::Refused => {}
        }
    }

    /// Returns the allocations by time, with their pools.
    pub(super) fn live(self) -> Vec<(u64, RawEvent)> {
        let mut live: Vec<(u64, RawEvent)> =
            self.0.into_iter().map(|((pool, _), event)| (pool, event)).collect();
        live.sort_unstable_by_key(|(pool, event)| (event.ticks, *pool, event.id));
        live
    }
}
