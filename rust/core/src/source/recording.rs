//! A recorder of the calls of a source and their results.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Gauge, Grant, RegionSource, ReserveError};
use crate::guard::MemoryGuard;

/// One call of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A request of `bytes` bytes, granted as `answer` or refused.
    Reserve {
        /// The requested bytes.
        bytes: u64,
        /// The grant, if any.
        answer: Option<Grant>,
    },
    /// A release of a region.
    Release(Grant),
}

/// The calls so far, in order; clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Call>>>);

impl Log {
    /// Removes and returns the calls recorded since the last call of this method.
    #[must_use]
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, call: Call) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

/// Passes every call to its upstream and records it in a [`Log`].
#[derive(Debug)]
pub struct Recording<S> {
    upstream: S,
    log: Log,
}

impl<S: RegionSource> Recording<S> {
    /// Wraps `upstream`; records into `log`.
    #[must_use]
    pub fn new(upstream: S, log: Log) -> Self {
        Self { upstream, log }
    }
}

impl<S: RegionSource> RegionSource for Recording<S> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let answer = self.upstream.reserve(bytes, alignment);
        self.log.push(Call::Reserve { bytes, answer: answer.as_ref().ok().copied() });
        answer
    }

    fn release(&mut self, region: Grant) {
        self.upstream.release(region);
        self.log.push(Call::Release(region));
    }

    fn joins_regions(&self) -> bool {
        self.upstream.joins_regions()
    }

    fn starts_at_zero(&self) -> bool {
        self.upstream.starts_at_zero()
    }

    fn discards(&self) -> bool {
        self.upstream.discards()
    }

    fn discard(&mut self, span: Grant) {
        self.upstream.discard(span);
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        self.upstream.gauge()
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        self.upstream.guard()
    }
}
