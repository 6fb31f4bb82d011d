//! A source that declines on demand, for tests of out-of-memory handling.

use super::forwarding::{forward_page_sizes, forward_region_source};
use super::pages::{PageSizes, of_upstream};
use super::{Grant, PageSource, RegionSource, ReserveError, SourceFailure};

/// Declines the requests that a rule selects and passes the others to its upstream. Requests are those for regions and
/// those to commit pages.
#[derive(Debug)]
pub struct FailingSource<S, R> {
    upstream: S,
    rule: R,
    asked: u64,
    page_sizes: PageSizes,
}

impl<S: RegionSource, R: FnMut(u64, u64) -> bool + Send> FailingSource<S, R> {
    /// Wraps `upstream`; declines where `rule(number of the request from 0, bytes)` is true.
    #[must_use]
    pub fn new(mut upstream: S, rule: R) -> Self {
        let page_sizes = PageSizes::of(&mut upstream);
        Self { upstream, rule, asked: 0, page_sizes }
    }

    fn ask(&mut self, bytes: u64) -> Result<(), ReserveError> {
        let number = self.asked;
        self.asked += 1;
        if (self.rule)(number, bytes) { Err(ReserveError::Declined) } else { Ok(()) }
    }
}

impl<S: RegionSource, R: FnMut(u64, u64) -> bool + Send> RegionSource for FailingSource<S, R> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.ask(bytes)?;
        self.upstream.reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        self.upstream.release(region);
    }

    forward_region_source!();
}

impl<S: RegionSource, R: FnMut(u64, u64) -> bool + Send> PageSource for FailingSource<S, R> {
    forward_page_sizes!();

    fn reserve_addresses(&mut self, bytes: u64, page_size: u64) -> Result<Grant, ReserveError> {
        of_upstream(&mut self.upstream).reserve_addresses(bytes, page_size)
    }

    fn release_addresses(&mut self, range: Grant) {
        of_upstream(&mut self.upstream).release_addresses(range);
    }

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        self.ask(span.bytes)?;
        of_upstream(&mut self.upstream).commit(span)
    }

    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        of_upstream(&mut self.upstream).decommit(span)
    }

    fn move_pages(&mut self, from: Grant, to: u64) -> Result<(), ReserveError> {
        of_upstream(&mut self.upstream).move_pages(from, to)
    }

    fn recycle(&mut self, range: Grant) -> Result<bool, SourceFailure> {
        of_upstream(&mut self.upstream).recycle(range)
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
