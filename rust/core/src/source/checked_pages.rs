//! A check of the contract between pools and sources of pages, for tests of both.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::forwarding::{forward_page_sizes, forward_region_source};
use super::pages::{PageSizes, of_upstream};
use super::spans::Spans;
use super::{Gauge, Grant, PageSource, RegionSource, ReserveError, SourceFailure};

/// Panics where a pool breaks the contract of [`PageSource`], and keeps account of all committed pages.
///
/// Checked are: spans are multiples of the page size and lie in one range; only pages without memory are committed, only
/// pages with memory are decommitted, moved, read and written; pages are moved to pages without memory; a range that is
/// released has no page with memory; a range that was lost when it was recycled gets no more memory. The ranges of the
/// upstream must be aligned and must not overlap.
#[derive(Debug)]
pub struct CheckedPages<S> {
    upstream: S,
    page_size: u64,
    page_sizes: PageSizes,
    pages: CommittedPages,
}

/// The account of a [`CheckedPages`]; clones share it.
#[derive(Debug, Clone, Default)]
pub struct CommittedPages(Arc<Mutex<Account>>);

/// The numbers of successful calls of a [`CheckedPages`], and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageCalls {
    /// Commits.
    pub commits: u64,
    /// Bytes of all commits.
    pub committed_bytes: u64,
    /// Decommits.
    pub decommits: u64,
    /// Bytes of all decommits.
    pub decommitted_bytes: u64,
    /// Moves.
    pub moves: u64,
    /// Bytes of all moves.
    pub moved_bytes: u64,
}

#[derive(Debug, Default)]
struct Account {
    /// Reserved ranges: start to end.
    ranges: BTreeMap<u64, u64>,
    /// The ranges of which a recycling failed.
    lost: BTreeSet<u64>,
    committed: Spans,
    bytes: u64,
    most_bytes: u64,
    calls: PageCalls,
}

impl<S: RegionSource> CheckedPages<S> {
    /// Wraps the source of a pool with pages of `page_size` bytes; returns the source for the pool, and the account.
    ///
    /// # Panics
    /// If `page_size` is no power of two, or less than the granule of `upstream`.
    #[must_use]
    pub fn new(mut upstream: S, page_size: u64) -> (Self, CommittedPages) {
        let page_sizes = PageSizes::of(&mut upstream);
        let is_valid = page_size.is_power_of_two() && page_size >= page_sizes.granule;
        assert!(is_valid, "pages of {page_size} bytes over a granule of {} bytes", page_sizes.granule);
        let pages = CommittedPages::default();
        (Self { upstream, page_size, page_sizes, pages: pages.clone() }, pages)
    }

    /// Panics unless a span consists of pages of one range.
    fn check(&self, call: fmt::Arguments<'_>, account: &Account, span: Grant) {
        let is_whole = |bytes: u64| bytes.is_multiple_of(self.page_size);
        assert!(
            span.bytes > 0 && is_whole(span.address) && is_whole(span.bytes),
            "{call}: {span:?} is not made of pages of {} bytes",
            self.page_size
        );
        assert!(account.has_range_around(span), "{call}: {span:?} lies in no range of {:?}", account.ranges);
    }
}

impl Account {
    fn has_range_around(&self, span: Grant) -> bool {
        self.ranges.range(..=span.address).next_back().is_some_and(|(_, &end)| span.end() <= end)
    }

    /// Returns whether pages of a span may get memory.
    fn is_vacant(&self, span: Grant) -> bool {
        let range = self.ranges.range(..=span.address).next_back();
        !self.committed.meets(span) && range.is_some_and(|(start, _)| !self.lost.contains(start))
    }
}

impl CommittedPages {
    /// Returns the committed bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.account().bytes
    }

    /// Returns the high-water mark of the committed bytes.
    #[must_use]
    pub fn most_bytes(&self) -> u64 {
        self.account().most_bytes
    }

    /// Returns whether all pages of a span have memory.
    #[must_use]
    pub fn covers(&self, span: Grant) -> bool {
        self.account().committed.covers(span)
    }

    /// Returns the reserved ranges, in order of addresses.
    #[must_use]
    pub fn ranges(&self) -> Vec<Grant> {
        let range = |(&address, &end): (&u64, &u64)| Grant { address, bytes: end - address };
        self.account().ranges.iter().map(range).collect()
    }

    /// Returns the numbers of calls so far.
    #[must_use]
    pub fn calls(&self) -> PageCalls {
        self.account().calls
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        // A panic of a check leaves the account as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: RegionSource> RegionSource for CheckedPages<S> {
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

impl<S: RegionSource> PageSource for CheckedPages<S> {
    forward_page_sizes!();

    fn reserve_addresses(&mut self, bytes: u64, page_size: u64) -> Result<Grant, ReserveError> {
        assert!(
            page_size == self.page_size && bytes > 0 && bytes.is_multiple_of(page_size),
            "reserve: {bytes} bytes for pages of {page_size}, in a pool with pages of {}",
            self.page_size
        );
        let range = of_upstream(&mut self.upstream).reserve_addresses(bytes, page_size)?;
        assert!(
            range.bytes == bytes && range.address.is_multiple_of(page_size),
            "the source answers {bytes} bytes at a multiple of {page_size} with {range:?}"
        );
        let mut account = self.pages.account();
        let before = account.ranges.range(..range.end()).next_back();
        assert!(
            before.is_none_or(|(_, &end)| end <= range.address),
            "{range:?} overlaps {before:?}, which is reserved"
        );
        account.ranges.insert(range.address, range.end());
        Ok(range)
    }

    fn release_addresses(&mut self, range: Grant) {
        let pages = self.pages.clone();
        let mut account = pages.account();
        let end = account.ranges.get(&range.address).copied();
        assert_eq!(end, Some(range.end()), "release: {range:?} is no range");
        assert!(!account.committed.meets(range), "release: {range:?} has pages with memory");
        of_upstream(&mut self.upstream).release_addresses(range);
        account.ranges.remove(&range.address);
        account.lost.remove(&range.address);
    }

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        let pages = self.pages.clone();
        let mut account = pages.account();
        self.check(format_args!("commit"), &account, span);
        assert!(account.is_vacant(span), "commit: {span:?} has pages with memory, or was lost");
        of_upstream(&mut self.upstream).commit(span)?;
        let account = &mut *account;
        account.committed.insert(span);
        account.bytes += span.bytes;
        account.most_bytes = account.most_bytes.max(account.bytes);
        account.calls.commits += 1;
        account.calls.committed_bytes += span.bytes;
        Ok(())
    }

    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        let pages = self.pages.clone();
        let mut account = pages.account();
        self.check(format_args!("decommit"), &account, span);
        assert!(account.committed.covers(span), "decommit: {span:?} has pages without memory");
        of_upstream(&mut self.upstream).decommit(span)?;
        account.committed.remove(span);
        account.bytes -= span.bytes;
        account.calls.decommits += 1;
        account.calls.decommitted_bytes += span.bytes;
        Ok(())
    }

    fn move_pages(&mut self, from: Grant, to: u64) -> Result<(), ReserveError> {
        let pages = self.pages.clone();
        let mut account = pages.account();
        let target = Grant { address: to, ..from };
        self.check(format_args!("move to {to:#x}"), &account, from);
        self.check(format_args!("move from {:#x}", from.address), &account, target);
        assert!(account.committed.covers(from), "move to {to:#x}: {from:?} has pages without memory");
        assert!(
            account.is_vacant(target),
            "move of {from:?} to {to:#x}: there are pages with memory, or they were lost"
        );
        of_upstream(&mut self.upstream).move_pages(from, to)?;
        account.committed.remove(from);
        account.committed.insert(target);
        account.calls.moves += 1;
        account.calls.moved_bytes += from.bytes;
        Ok(())
    }

    fn recycle(&mut self, range: Grant) -> Result<bool, SourceFailure> {
        let mut account = self.pages.account();
        let end = account.ranges.get(&range.address).copied();
        assert_eq!(end, Some(range.end()), "recycle: {range:?} is no range");
        let result = of_upstream(&mut self.upstream).recycle(range);
        if result.is_err() {
            account.lost.insert(range.address);
        }
        result
    }

    fn commits_zeros(&mut self) -> bool {
        of_upstream(&mut self.upstream).commits_zeros()
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), SourceFailure> {
        let span = Grant { address, bytes: into.len() as u64 };
        assert!(self.pages.covers(span), "read: {span:?} has pages without memory");
        of_upstream(&mut self.upstream).read(address, into)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), SourceFailure> {
        let span = Grant { address, bytes: from.len() as u64 };
        assert!(self.pages.covers(span), "write: {span:?} has pages without memory");
        of_upstream(&mut self.upstream).write(address, from)
    }
}

#[cfg(test)]
mod tests;
