//! Sources with a gauge or a guard of their own.

use std::sync::Arc;

use allotment::source::{Grant, PageSource, RegionSource, ReserveError};
use allotment::{Gauge, Headroom, MemoryGuard};

use crate::sources::Descending;

/// A source that guarantees any amount.
pub(crate) struct Plenty(pub(crate) Descending);

#[derive(Debug)]
struct Enough;

impl Gauge for Enough {
    fn headroom(&self) -> Headroom {
        Headroom { guaranteed: 1 << 46, maximum: u64::MAX, grants_released: true, is_sequential: false }
    }
}

impl RegionSource for Plenty {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.0.reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        self.0.release(region);
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        Some(Arc::new(Enough))
    }
}

/// A source whose guard reads and writes nothing: guard mode finds no damage there.
pub(crate) struct Blind(pub(crate) Box<dyn RegionSource>);

#[derive(Debug)]
struct NoMemory;

impl MemoryGuard for NoMemory {
    fn fill(&self, _address: u64, _bytes: u64, _byte: u8) {}

    fn first_other(&self, _address: u64, _bytes: u64, _byte: u8) -> Option<u64> {
        None
    }
}

impl RegionSource for Blind {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.0.reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        self.0.release(region);
    }

    fn joins_regions(&self) -> bool {
        self.0.joins_regions()
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        self.0.gauge()
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        Some(Arc::new(NoMemory))
    }

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        self.0.pages()
    }
}
