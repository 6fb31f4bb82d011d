//! Sources of pages: addresses are reserved first, and memory is committed to them page by page.

use super::{Grant, RegionSource, ReserveError, SourceFailure};
use crate::units::GRANULE;

/// Reserves ranges of addresses, and commits memory to pages of them.
///
/// A pool with [`Options::elastic`](crate::Options) uses this interface of a source instead of
/// [`RegionSource::reserve`](super::RegionSource::reserve). It calls it as it calls the source: from one thread at a
/// time, and never while it holds its lock. All spans are multiples of the pool's page size in address and length, and
/// lie in one range.
///
/// Every call does all of its work or none: after an error all pages are as they were before it.
pub trait PageSource {
    /// Returns the smallest page size in bytes, a power of two. Page sizes of pools are multiples of it. Must be
    /// constant.
    fn granule(&self) -> u64;

    /// Returns the page size in bytes of pools that set none. Must be constant.
    fn page_size(&self) -> u64 {
        self.granule()
    }

    /// Reserves `bytes` addresses without memory, at a multiple of `page_size`, the pool's page size.
    ///
    /// # Errors
    /// If there are not that many addresses.
    fn reserve_addresses(&mut self, bytes: u64, page_size: u64) -> Result<Grant, ReserveError>;

    /// Takes a reserved range back. No page of it is committed.
    fn release_addresses(&mut self, range: Grant);

    /// Commits memory to all pages of a span; none of them is committed. Its content is undefined.
    ///
    /// # Errors
    /// If there is not that much memory.
    fn commit(&mut self, span: Grant) -> Result<(), ReserveError>;

    /// Takes the memory of all pages of a span; all of them are committed.
    ///
    /// # Errors
    /// If the memory stays where it is.
    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure>;

    /// Moves the memory of the committed pages in `from` to the pages at `to`, of which none is committed. The content
    /// is undefined afterwards.
    ///
    /// # Errors
    /// [`ReserveError::Declined`] if the source cannot move memory: the pool decommits and commits instead.
    fn move_pages(&mut self, from: Grant, to: u64) -> Result<(), ReserveError> {
        let _ = (from, to);
        Err(ReserveError::Declined)
    }

    /// Makes decommitted memory of a range free, for drivers that free it only when the reservation of its addresses
    /// ends: releases the reservation of pages without memory and reserves the same addresses again. The pool calls it
    /// before it gives up on a commit that was declined.
    ///
    /// Returns whether a commit may succeed now that was declined before.
    ///
    /// # Errors
    /// If a reservation was lost. The pool never uses pages of `range` again that have no memory.
    fn recycle(&mut self, range: Grant) -> Result<bool, SourceFailure> {
        let _ = range;
        Ok(false)
    }

    /// Returns whether committed memory is zeros until something is written there or moved there. Must be constant.
    ///
    /// A pool that resumes does not write zeros then, so that pages that were never written take no memory.
    fn commits_zeros(&mut self) -> bool {
        false
    }

    /// Reads committed memory.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), SourceFailure>;

    /// Writes committed memory.
    ///
    /// # Errors
    /// If it cannot be written.
    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), SourceFailure>;
}

/// The page sizes of a wrapper's upstream. The wrapper keeps them: [`RegionSource::pages`] takes a mutable source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageSizes {
    /// Whether the upstream is a source of pages at all.
    pub(crate) exist: bool,
    pub(crate) granule: u64,
    pub(crate) default: u64,
}

impl PageSizes {
    pub(crate) fn of(source: &mut impl RegionSource) -> Self {
        match source.pages() {
            Some(pages) => Self { exist: true, granule: pages.granule(), default: pages.page_size() },
            None => Self { exist: false, granule: GRANULE, default: GRANULE },
        }
    }
}

/// Returns the pages of an upstream in which [`PageSizes::exist`].
pub(super) fn of_upstream(upstream: &mut impl RegionSource) -> &mut dyn PageSource {
    upstream.pages().expect("whether a source has pages is constant")
}
