//! A pool under observation, with offsets instead of addresses.

use allotment::source::{AddressSpace, Call, Cap, Capped, Log, Recording};
use allotment::{AllocError, FreeError, Options, Pool, RegionSource, Stats};

/// More than any test here reserves.
pub(crate) const NO_CAP: u64 = 1 << 40;

/// A pool over made-up addresses whose source calls are recorded.
pub(crate) struct Probe {
    pub(crate) pool: Pool,
    log: Log,
}

/// TensorFlow's default options: no growth, no trimming, regions not joined.
pub(crate) fn options(limit: u64) -> Options {
    Options::new(limit).growth(false).trim_on_oom(false).joins_regions(false)
}

impl Probe {
    /// Creates a pool with adjacent regions and no cap.
    pub(crate) fn new(options: Options) -> Self {
        Self::over(options, bump(0, NO_CAP))
    }

    pub(crate) fn over(options: Options, source: impl RegionSource + 'static) -> Self {
        let log = Log::default();
        let pool = Pool::new(Recording::new(source, log.clone()), options).unwrap();
        Self { pool, log }
    }

    /// Returns offset and size of the chunk; `None` for a refusal and for zero bytes.
    pub(crate) fn alloc(&self, bytes: u64) -> Option<(u64, u64)> {
        match self.pool.allocate(bytes) {
            Ok(nothing) if nothing.address == 0 => None,
            Ok(allocation) => Some((allocation.address - AddressSpace::START, allocation.size)),
            Err(AllocError::OutOfMemory(_)) => None,
            Err(other) => panic!("{other}"),
        }
    }

    /// Frees the allocation at an offset.
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

    /// Returns offset and size of every free chunk, in address order.
    pub(crate) fn free_chunks(&self) -> Vec<(u64, u64)> {
        let snapshot = self.pool.snapshot().unwrap();
        let chunks = snapshot.regions.iter().flat_map(|region| &region.chunks).filter(|chunk| !chunk.in_use);
        chunks.map(|chunk| (chunk.address - AddressSpace::START, chunk.size)).collect()
    }

    /// Returns the record of source calls, to be read after the pool's end.
    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }

    /// Returns the source calls since the last call of this method.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.log.take()
    }

    /// Returns the sizes requested since the last call, and whether they were granted.
    pub(crate) fn asked(&self) -> Vec<(u64, bool)> {
        let asked = self.calls().into_iter().filter_map(|call| match call {
            Call::Reserve { bytes, answer } => Some((bytes, answer.is_some())),
            _ => None,
        });
        asked.collect()
    }

    /// Returns offset and size of every region granted since the last call.
    pub(crate) fn granted(&self) -> Vec<(u64, u64)> {
        let granted = self.calls().into_iter().filter_map(|call| match call {
            Call::Reserve { answer, .. } => answer.map(|g| (g.address - AddressSpace::START, g.bytes)),
            _ => None,
        });
        granted.collect()
    }
}

/// Creates a source that grants after the previous grant plus a gap, at most `cap` bytes at once.
pub(crate) fn bump(gap: u64, cap: u64) -> Capped<AddressSpace> {
    Capped::new(AddressSpace::new(gap), Cap::new(cap))
}
