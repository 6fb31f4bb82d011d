//! A driver's habit: decommitted memory is free only after the range was recycled.

use std::collections::BTreeMap;

use allotment::source::{Grant, PageSource, RegionSource, ReserveError, SourceFailure};

/// Commits at most a number of bytes, and counts decommitted memory until its range is recycled or released, as AMD's
/// driver does. Grants no regions.
pub(crate) struct FreedByRecycling<S> {
    upstream: S,
    /// Granule and page size of the upstream.
    sizes: (u64, u64),
    capacity: u64,
    /// Committed bytes, and those that were decommitted and are not free yet.
    used: u64,
    /// End of each range, and its decommitted bytes that are not free yet.
    ranges: BTreeMap<u64, (u64, u64)>,
}

impl<S: RegionSource> FreedByRecycling<S> {
    /// Wraps a source of pages with `capacity` bytes of memory.
    pub(crate) fn new(mut upstream: S, capacity: u64) -> Self {
        let pages = upstream.pages().expect("a source of pages");
        let sizes = (pages.granule(), pages.page_size());
        Self { upstream, sizes, capacity, used: 0, ranges: BTreeMap::new() }
    }

    fn pages_of_upstream(&mut self) -> &mut dyn PageSource {
        self.upstream.pages().expect("a source of pages")
    }

    /// Returns the decommitted bytes of the range around an address that are not free yet.
    fn held(&mut self, address: u64) -> &mut u64 {
        let (_, (_, held)) = self.ranges.range_mut(..=address).next_back().expect("a reserved range");
        held
    }
}

impl<S: RegionSource> RegionSource for FreedByRecycling<S> {
    fn reserve(&mut self, _bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        Err(ReserveError::Declined)
    }

    fn release(&mut self, _region: Grant) {}

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        Some(self)
    }
}

impl<S: RegionSource> PageSource for FreedByRecycling<S> {
    fn granule(&self) -> u64 {
        self.sizes.0
    }

    fn page_size(&self) -> u64 {
        self.sizes.1
    }

    fn reserve_addresses(&mut self, bytes: u64, page_size: u64) -> Result<Grant, ReserveError> {
        let range = self.pages_of_upstream().reserve_addresses(bytes, page_size)?;
        self.ranges.insert(range.address, (range.end(), 0));
        Ok(range)
    }

    fn release_addresses(&mut self, range: Grant) {
        self.pages_of_upstream().release_addresses(range);
        let (_, held) = self.ranges.remove(&range.address).expect("a reserved range");
        self.used -= held;
    }

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        if self.used + span.bytes > self.capacity {
            return Err(ReserveError::Declined);
        }
        self.pages_of_upstream().commit(span)?;
        self.used += span.bytes;
        Ok(())
    }

    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        self.pages_of_upstream().decommit(span)?;
        *self.held(span.address) += span.bytes;
        Ok(())
    }

    fn move_pages(&mut self, from: Grant, to: u64) -> Result<(), ReserveError> {
        self.pages_of_upstream().move_pages(from, to)
    }

    fn recycle(&mut self, range: Grant) -> Result<bool, SourceFailure> {
        self.pages_of_upstream().recycle(range)?;
        let freed = std::mem::take(self.held(range.address));
        self.used -= freed;
        Ok(freed > 0)
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), SourceFailure> {
        self.pages_of_upstream().read(address, into)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), SourceFailure> {
        self.pages_of_upstream().write(address, from)
    }
}
