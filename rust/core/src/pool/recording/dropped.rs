//! The allocations of which a log that keeps the last events has dropped the event, and which are not freed.

use std::collections::HashMap;

use super::EventKind;
use super::batch::RawEvent;

/// Live allocations by pool and number, after all events that left a log: those are live before its first kept event.
///
/// Events of one pool leave in their order. Those of several pools need no order among each other.
#[derive(Debug, Clone, Default)]
pub(super) struct Dropped(HashMap<(u64, u64), RawEvent>);

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
