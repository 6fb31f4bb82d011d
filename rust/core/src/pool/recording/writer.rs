//! How a pool adds its events to a log.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::EventKind;
use super::batch::{Batch, RawEvent};
use super::log::EventLog;

/// The end of a log that a pool adds its events to.
#[derive(Debug)]
pub(super) struct Writer {
    log: EventLog,
    pool: u64,
    /// Absent before the first event, and while the log is full and keeps what it has.
    batch: Option<Arc<Batch>>,
    /// The time of the last event.
    last: u64,
    /// The last tag, and its number.
    tag: Option<(Arc<str>, u32)>,
}

impl Writer {
    pub(super) fn new(log: &EventLog, pool: u64) -> Self {
        Self { log: log.clone(), pool, batch: None, last: 0, tag: None }
    }

    pub(super) fn log(&self) -> &EventLog {
        &self.log
    }

    pub(super) fn is_of(&self, log: &EventLog) -> bool {
        Arc::ptr_eq(&self.log.0, &log.0)
    }

    /// Adds an event of this thread.
    #[inline]
    pub(super) fn add(&mut self, kind: EventKind, id: u64, bytes: u64, thread: u32, tag: Option<&Arc<str>>) {
        // The counters of two cores may differ by some ticks.
        self.last = self.log.0.clock.ticks().max(self.last);
        let tag = tag.map_or(0, |tag| self.tag_number(tag));
        let event = RawEvent { ticks: self.last, id, bytes, thread, tag, kind };
        if !self.batch.as_ref().is_some_and(|batch| batch.add(event)) {
            self.add_to_next(event);
        }
        if kind == EventKind::Refused {
            self.log.0.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn tag_number(&mut self, tag: &Arc<str>) -> u32 {
        match &self.tag {
            Some((last, number)) if Arc::ptr_eq(last, tag) => *number,
            _ => {
                let number = self.log.tag_number(tag);
                self.tag = Some((Arc::clone(tag), number));
                number
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn add_to_next(&mut self, event: RawEvent) {
        let full = self.batch.take();
        self.batch = self.log.next_batch(self.pool, full, event);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(batch) = self.batch.take() {
            self.log.close(batch);
        }
    }
}
