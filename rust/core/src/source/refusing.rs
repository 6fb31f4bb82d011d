//! Refusals on order, so that running out of memory is an ordinary test.

use std::sync::Arc;

use super::{Grant, Refusal, RegionSource};
use crate::guard::MemoryGuard;

/// Declines each request that a rule picks, and passes the rest to its upstream.
#[derive(Debug)]
pub struct Refusing<S, R> {
    upstream: S,
    rule: R,
    asked: u64,
}

impl<S: RegionSource, R: FnMut(u64, u64) -> bool + Send> Refusing<S, R> {
    /// `upstream`, except where `rule(number of the request from 0, bytes)` is true.
    #[must_use]
    pub fn new(upstream: S, rule: R) -> Self {
        Self { upstream, rule, asked: 0 }
    }
}

impl<S: RegionSource, R: FnMut(u64, u64) -> bool + Send> RegionSource for Refusing<S, R> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, Refusal> {
        let number = self.asked;
        self.asked += 1;
        if (self.rule)(number, bytes) {
            Err(Refusal::Declined)
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
