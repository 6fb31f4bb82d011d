//! Batches of events: one thread at a time adds events, and any thread reads those that are whole.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::EventKind;

/// An event as it is added: what takes no time to find out. The pool is that of its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawEvent {
    /// A reading of the log's clock.
    pub(super) ticks: u64,
    pub(super) id: u64,
    pub(super) bytes: u64,
    /// The number of the thread in the process.
    pub(super) thread: u32,
    /// The number of the tag in the log, below 2^30; 0 for none.
    pub(super) tag: u32,
    pub(super) kind: EventKind,
}

const WORDS: usize = 4;
const KIND_BITS: u32 = 2;

impl RawEvent {
    #[inline(always)]
    fn words(self) -> [u64; WORDS] {
        let Self { ticks, id, bytes, thread, tag, kind } = self;
        [ticks, id, bytes, u64::from(thread) << 32 | u64::from(tag << KIND_BITS | kind as u32)]
    }

    fn of([ticks, id, bytes, rest]: [u64; WORDS]) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let (thread, lower) = ((rest >> 32) as u32, rest as u32);
        let kind = match lower & ((1 << KIND_BITS) - 1) {
            0 => EventKind::Allocated,
            1 => EventKind::Freed,
            _ => EventKind::Refused,
        };
        Self { ticks, id, bytes, thread, tag: lower >> KIND_BITS, kind }
    }
}

/// A batch of events of one pool.
#[derive(Debug)]
pub(super) struct Batch {
    /// The number of the pool.
    pub(super) pool: u64,
    /// The number of events that are whole, at most that of slots.
    written: AtomicUsize,
    slots: Box<[[AtomicU64; WORDS]]>,
}

impl Batch {
    pub(super) fn new(pool: u64, events: usize) -> Self {
        let slots = (0..events).map(|_| <[AtomicU64; WORDS]>::default()).collect();
        Self { pool, written: AtomicUsize::new(0), slots }
    }

    /// Makes it an empty batch of a pool.
    pub(super) fn reset(&mut self, pool: u64) {
        self.pool = pool;
        *self.written.get_mut() = 0;
    }

    /// Adds an event; returns false if the batch is full. No two threads may do so at the same time: one of two events
    /// would be lost.
    #[inline(always)]
    pub(super) fn add(&self, event: RawEvent) -> bool {
        let at = self.written.load(Ordering::Relaxed);
        let Some(slot) = self.slots.get(at) else { return false };
        for (word, value) in slot.iter().zip(event.words()) {
            word.store(value, Ordering::Relaxed);
        }
        // A thread that sees the new number sees the words.
        self.written.store(at + 1, Ordering::Release);
        true
    }

    /// Returns the number of events that are whole.
    pub(super) fn len(&self) -> usize {
        self.written.load(Ordering::Acquire)
    }

    /// Returns the events from one place to another, at most [`Batch::len`].
    pub(super) fn read(&self, from: usize, to: usize) -> impl Iterator<Item = RawEvent> {
        self.slots[from..to]
            .iter()
            .map(|slot| RawEvent::of(std::array::from_fn(|word| slot[word].load(Ordering::Relaxed))))
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, EventKind, RawEvent};

    #[test]
    fn events_come_out_as_they_went_in_until_the_batch_is_full() {
        let kinds = [EventKind::Allocated, EventKind::Freed, EventKind::Refused];
        let made = kinds.map(|kind| RawEvent {
            ticks: u64::MAX,
            id: u64::MAX - 1,
            bytes: u64::MAX - 2,
            thread: u32::MAX,
            tag: (1 << 30) - 1,
            kind,
        });
        let mut batch = Batch::new(1, 3);
        assert!(made.iter().all(|event| batch.add(*event)));
        assert!(!batch.add(made[0]));
        assert_eq!(batch.read(0, batch.len()).collect::<Vec<_>>(), made);
        batch.reset(2);
        assert_eq!((batch.pool, batch.len()), (2, 0));
    }

    #[test]
    fn a_reader_sees_whole_events_only() {
        let batch = Batch::new(1, 100_000);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for n in 0..100_000 {
                    let event =
                        RawEvent { ticks: n, id: n, bytes: n, thread: 7, tag: 3, kind: EventKind::Freed };
                    assert!(batch.add(event));
                }
            });
            let mut seen = 0;
            while seen < 100_000 {
                let now = batch.len();
                for (n, event) in (seen as u64..).zip(batch.read(seen, now)) {
                    assert_eq!((event.ticks, event.id, event.bytes, event.thread), (n, n, n, 7));
                }
                seen = now;
            }
        });
    }
}
