//! A recorder of the calls of a source and their results.

use std::sync::{Arc, Mutex, PoisonError};

use super::forwarding::{forward_page_sizes, forward_region_source};
use super::pages::{PageSizes, of_upstream};
use super::{Gauge, Grant, PageSource, RegionSource, ReserveError, SourceFailure};

/// One call of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
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
    /// A request of `bytes` addresses, granted as `answer` or refused.
    ReserveAddresses {
        /// The requested bytes.
        bytes: u64,
        /// The range, if any.
        answer: Option<Grant>,
    },
    /// A release of a range of addresses.
    ReleaseAddresses(Grant),
    /// A commit of pages.
    Commit {
        /// The pages.
        span: Grant,
        /// Whether they have memory now.
        done: bool,
    },
    /// A decommit of pages.
    Decommit {
        /// The pages.
        span: Grant,
        /// Whether their memory was taken.
        done: bool,
    },
    /// A move of pages.
    Move {
        /// The pages.
        from: Grant,
        /// The new address of their memory.
        to: u64,
        /// Whether they were moved.
        done: bool,
    },
    /// A recycling of a range.
    Recycle(Grant),
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

/// Passes every call to its upstream and records it in a [`Log`], except reads and writes of pages.
#[derive(Debug)]
pub struct Recording<S> {
    upstream: S,
    log: Log,
    page_sizes: PageSizes,
}

impl<S: RegionSource> Recording<S> {
    /// Wraps `upstream`; records into `log`.
    #[must_use]
    pub fn new(mut upstream: S, log: Log) -> Self {
        let page_sizes = PageSizes::of(&mut upstream);
        Self { upstream, log, page_sizes }
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

    forward_region_source!();

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        self.upstream.gauge()
    }
}

impl<S: RegionSource> PageSource for Recording<S> {
    forward_page_sizes!();

    fn reserve_addresses(&mut self, bytes: u64, page_size: u64) -> Result<Grant, ReserveError> {
        let answer = of_upstream(&mut self.upstream).reserve_addresses(bytes, page_size);
        self.log.push(Call::ReserveAddresses { bytes, answer: answer.as_ref().ok().copied() });
        answer
    }

    fn release_addresses(&mut self, range: Grant) {
        of_upstream(&mut self.upstream).release_addresses(range);
        self.log.push(Call::ReleaseAddresses(range));
    }

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        let answer = of_upstream(&mut self.upstream).commit(span);
        self.log.push(Call::Commit { span, done: answer.is_ok() });
        answer
    }

    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        let answer = of_upstream(&mut self.upstream).decommit(span);
        self.log.push(Call::Decommit { span, done: answer.is_ok() });
        answer
    }

    fn move_pages(&mut self, from: Grant, to: u64) -> Result<(), ReserveError> {
        let answer = of_upstream(&mut self.upstream).move_pages(from, to);
        self.log.push(Call::Move { from, to, done: answer.is_ok() });
        answer
    }

    fn recycle(&mut self, range: Grant) -> Result<bool, SourceFailure> {
        let answer = of_upstream(&mut self.upstream).recycle(range);
        self.log.push(Call::Recycle(range));
        answer
    }

    fn commits_zeros(&mut self) -> bool {
        of_upstream(&mut self.upstream).commits_zeros()
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), SourceFailure> {
        of_upstream(&mut self.upstream).read(address, into)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), SourceFailure> {
        of_upstream(&mut self.upstream).write(address, from)
    }
}
