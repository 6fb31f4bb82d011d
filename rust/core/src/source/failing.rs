//! A source that declines on demand, for tests of out-of-memory handling.

use alloc::sync::Arc;

use super::{Grant, RegionSource, ReserveError};
use crate::guard::MemoryGuard;

/// Declines the requests that a rule selects and passes the others to its upstream.
#[derive(Debug)]
pub struct FailingSource<S, R> {
    upstream: S,
    rule: R,
    asked: u64,
}

impl<S: RegionSource, R: FnMut(u64, u64) -> bool + Send> FailingSource<S, R> {
    /// Wraps `upstream`; declines where `rule(number of the request from 0, bytes)` is true.
    #[must_use]
    pub fn new(upstream: S, rule: R) -> Self {
        Self { upstream, rule, asked: 0 }
    }
}

impl<S: RegionSource, R: FnMut(u64, u64) -> bool + Send> RegionSource for FailingSource<S, R> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let number = self.asked;
        self.asked += 1;
        if (self.rule)(number, bytes) {
            Err(ReserveError::Declined)
        } else {
            self.upstream.reserve(bytes, alignment)
        }
    }

    fn release(&mut self, region: Grant) {
        self.upstream.release(region);
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

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        self.upstream.guard()
    }
}
