//! A source of pages whose calls fail on demand, for tests of what a pool does then.

use alloc::sync::Arc;

use thiserror::Error;

use super::forwarding::{forward_page_sizes, forward_region_source};
use super::pages::{PageSizes, of_upstream};
use super::{Gauge, Grant, PageSource, RegionSource, ReserveError, SourceFailure};

/// A call of a [`PageSource`] that may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageCall {
    /// [`PageSource::reserve_addresses`]
    ReserveAddresses,
    /// [`PageSource::commit`]
    Commit,
    /// [`PageSource::decommit`]
    Decommit,
    /// [`PageSource::move_pages`]
    Move,
    /// [`PageSource::recycle`]
    Recycle,
    /// [`PageSource::read`]
    Read,
    /// [`PageSource::write`]
    Write,
}

impl PageCall {
    /// All calls.
    pub const ALL: [Self; 7] = [
        Self::ReserveAddresses,
        Self::Commit,
        Self::Decommit,
        Self::Move,
        Self::Recycle,
        Self::Read,
        Self::Write,
    ];
}

/// Fails the page calls that a rule selects, without an effect, and passes the others to its upstream.
///
/// ```
/// use allotment::source::{AddressSpace, FailingPages, PageCall, RegionSource, ReserveError};
///
/// // Every third commit is declined.
/// let mut source = FailingPages::new(AddressSpace::new(0), |call, number, _span| {
///     (call == PageCall::Commit && number % 3 == 2).then_some(ReserveError::Declined)
/// });
/// let pages = source.pages().expect("a source of pages");
/// let range = pages.reserve_addresses(8 << 20, 2 << 20)?;
/// let commits = [(); 3].map(|()| pages.commit(range).is_ok());
/// assert_eq!(commits, [true, true, false]);
/// # Ok::<(), ReserveError>(())
/// ```
#[derive(Debug)]
pub struct FailingPages<S, R> {
    upstream: S,
    rule: R,
    /// The calls of each kind so far.
    asked: [u64; PageCall::ALL.len()],
    page_sizes: PageSizes,
}

impl<S: RegionSource, R: FnMut(PageCall, u64, Grant) -> Option<ReserveError> + Send> FailingPages<S, R> {
    /// Wraps `upstream`. A call fails where `rule(call, number of the call among its kind from 0, span)` returns an
    /// error. The span of a move is its start; that of a reservation is at address 0. A call that cannot be declined
    /// fails with [`RefusedOnPurpose`] where the rule returns [`ReserveError::Declined`].
    #[must_use]
    pub fn new(mut upstream: S, rule: R) -> Self {
        let page_sizes = PageSizes::of(&mut upstream);
        Self { upstream, rule, asked: [0; PageCall::ALL.len()], page_sizes }
    }

    fn ask(&mut self, call: PageCall, span: Grant) -> Result<(), ReserveError> {
        let asked = &mut self.asked[call as usize];
        let number = *asked;
        *asked += 1;
        (self.rule)(call, number, span).map_or(Ok(()), Err)
    }
}

/// The failure of a call of [`FailingPages`] that cannot be declined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("refused on purpose")]
pub struct RefusedOnPurpose;

fn failure(error: ReserveError) -> SourceFailure {
    match error {
        ReserveError::Declined => Arc::new(RefusedOnPurpose),
        ReserveError::Failed(failure) => failure,
    }
}

impl<S: RegionSource, R: FnMut(PageCall, u64, Grant) -> Option<ReserveError> + Send> RegionSource
    for FailingPages<S, R>
{
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.upstream.reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        self.upstream.release(region);
    }

    forward_region_source!();

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        self.upstream.gauge()
    }
}

impl<S: RegionSource, R: FnMut(PageCall, u64, Grant) -> Option<ReserveError> + Send> PageSource
    for FailingPages<S, R>
{
    forward_page_sizes!();

    fn reserve_addresses(&mut self, bytes: u64, page_size: u64) -> Result<Grant, ReserveError> {
        self.ask(PageCall::ReserveAddresses, Grant { address: 0, bytes })?;
        of_upstream(&mut self.upstream).reserve_addresses(bytes, page_size)
    }

    fn release_addresses(&mut self, range: Grant) {
        of_upstream(&mut self.upstream).release_addresses(range);
    }

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        self.ask(PageCall::Commit, span)?;
        of_upstream(&mut self.upstream).commit(span)
    }

    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        self.ask(PageCall::Decommit, span).map_err(failure)?;
        of_upstream(&mut self.upstream).decommit(span)
    }

    fn move_pages(&mut self, from: Grant, to: u64) -> Result<(), ReserveError> {
        self.ask(PageCall::Move, from)?;
        of_upstream(&mut self.upstream).move_pages(from, to)
    }

    fn recycle(&mut self, range: Grant) -> Result<bool, SourceFailure> {
        self.ask(PageCall::Recycle, range).map_err(failure)?;
        of_upstream(&mut self.upstream).recycle(range)
    }

    fn commits_zeros(&mut self) -> bool {
        of_upstream(&mut self.upstream).commits_zeros()
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), SourceFailure> {
        self.ask(PageCall::Read, Grant { address, bytes: into.len() as u64 }).map_err(failure)?;
        of_upstream(&mut self.upstream).read(address, into)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), SourceFailure> {
        self.ask(PageCall::Write, Grant { address, bytes: from.len() as u64 }).map_err(failure)?;
        of_upstream(&mut self.upstream).write(address, from)
    }
}
