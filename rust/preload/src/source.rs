//! The pool's source: host memory whose pages are counted, and are known to be zero after they gave their memory back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allotment::Gauge;
use allotment::source::{Grant, PageSource, RegionSource, ReserveError, SourceFailure};
use allotment_host::HostMemory;

use crate::ranges;

/// Bytes of pages that have memory, free ones included.
static COMMITTED: AtomicU64 = AtomicU64::new(0);

/// Returns the bytes of pages that have memory, free ones included.
pub(crate) fn committed() -> u64 {
    COMMITTED.load(Ordering::Relaxed)
}

/// Host memory for one elastic pool. Pages are not moved by the kernel: that needs a file descriptor, and programs close
/// those that they do not know.
pub(crate) struct BlockSource(HostMemory);

impl BlockSource {
    pub(crate) fn new() -> Self {
        Self(HostMemory::without_page_moves())
    }
}

impl RegionSource for BlockSource {
    /// Declines: an elastic pool reserves addresses and commits pages.
    fn reserve(&mut self, _bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        Err(ReserveError::Declined)
    }

    fn release(&mut self, region: Grant) {
        self.0.release(region);
    }

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        Some(self)
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        self.0.gauge()
    }
}

impl PageSource for BlockSource {
    fn granule(&self) -> u64 {
        self.0.granule()
    }

    fn page_size(&self) -> u64 {
        self.0.page_size()
    }

    fn reserve_addresses(&mut self, bytes: u64, page_size: u64) -> Result<Grant, ReserveError> {
        let range = self.0.reserve_addresses(bytes, page_size)?;
        let (start, length) = numbers(range);
        if ranges::add(start, length) {
            return Ok(range);
        }
        self.0.release_addresses(range);
        Err(ReserveError::Declined)
    }

    fn release_addresses(&mut self, range: Grant) {
        ranges::remove(numbers(range).0);
        self.0.release_addresses(range);
    }

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        self.0.commit(span)?;
        COMMITTED.fetch_add(span.bytes, Ordering::Relaxed);
        Ok(())
    }

    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        self.0.decommit(span)?;
        let (start, length) = numbers(span);
        ranges::mark_zero(start, length);
        COMMITTED.fetch_sub(span.bytes, Ordering::Relaxed);
        Ok(())
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), SourceFailure> {
        self.0.read(address, into)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), SourceFailure> {
        self.0.write(address, from)
    }
}

/// Returns start and length of a span of this process as its numbers.
fn numbers(span: Grant) -> (usize, usize) {
    let number = |value| usize::try_from(value).expect("an address of this process");
    (number(span.address), number(span.bytes))
}
