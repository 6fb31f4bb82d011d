//! A pool under observation, in offsets instead of addresses.

use allotment::source::{AddressSpace, Call, Cap, Capped, Log, Recording};
use allotment::{AllocError, FreeError, Options, Pool, RegionSource, Stats};

/// More than any test here reserves.
pub(crate) const NO_CAP: u64 = 1 << 40;

/// A pool over made-up addresses whose source calls are written down.
pub(crate) struct Probe {
    pub(crate) pool: Pool,
    log: Log,
}

/// What TensorFlow's allocator does unless told otherwise: no growth, no trimming, regions not joined.
pub(crate) fn options(limit: u64) -> Options {
    Options { growth: false, trim_on_oom: false, joins_regions: Some(false), ..Options::new(limit) }
}

impl Probe {
    /// Regions that touch, and no cap.
    pub(crate) fn new(options: Options) -> Self {
        Self::over(options, bump(0, NO_CAP))
    }

    pub(crate) fn over(options: Options, source: impl RegionSource + 'static) -> Self {
        let log = Log::default();
        let pool = Pool::new(Recording::new(source, log.clone()), options).unwrap();
        Self { pool, log }
    }

    /// Offset and size of the chunk; none for a refusal and for zero bytes.
    pub(crate) fn alloc(&self, bytes: u64) -> Option<(u64, u64)> {
        match self.pool.allocate(bytes) {
            Ok(nothing) if nothing.address == 0 => None,
            Ok(allocation) => Some((allocation.address - AddressSpace::START, allocation.size)),
            Err(AllocError::OutOfMemory(_)) => None,
            Err(other) => panic!("{other}"),
        }
    }

    /// Frees what starts at an offset.
    pub(crate) fn free(&self, offset: u64) {
        self.try_free(AddressSpace::START + offset).unwrap();
    }

    pub(crate) fn try_free(&self, address: u64) -> Result<(), FreeError> {
        let freed = self.pool.free(address);
        self.pool.check().unwrap();
        freed
    }

    pub(crate) fn stats(&self) -> Stats {
        self.pool.stats().unwrap()
    }

    /// Offset and size of every free chunk, in address order.
    pub(crate) fn free_chunks(&self) -> Vec<(u64, u64)> {
        let snapshot = self.pool.snapshot().unwrap();
        let chunks = snapshot.regions.iter().flat_map(|region| &region.chunks).filter(|chunk| !chunk.in_use);
        chunks.map(|chunk| (chunk.address - AddressSpace::START, chunk.size)).collect()
    }

    /// The calls of the source, to be read when the pool is gone.
    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }

    /// Calls of the source since the last time this was asked.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.log.take()
    }

    /// Sizes asked for since the last time, and whether they were granted.
    pub(crate) fn asked(&self) -> Vec<(u64, bool)> {
        let asked = self.calls().into_iter().filter_map(|call| match call {
            Call::Reserve { bytes, answer } => Some((bytes, answer.is_some())),
            Call::Release(_) => None,
        });
        asked.collect()
    }

    /// Offset and size of every region granted since the last time.
    pub(crate) fn granted(&self) -> Vec<(u64, u64)> {
        let granted = self.calls().into_iter().filter_map(|call| match call {
            Call::Reserve { answer, .. } => answer.map(|g| (g.address - AddressSpace::START, g.bytes)),
            Call::Release(_) => None,
        });
        granted.collect()
    }
}

/// Grants where the last one ended plus a gap, `cap` bytes at once.
pub(crate) fn bump(gap: u64, cap: u64) -> Capped<AddressSpace> {
    Capped::new(AddressSpace::new(gap), Cap::new(cap))
}
