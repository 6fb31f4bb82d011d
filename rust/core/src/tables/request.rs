//! A request to the tables.

use crate::tables::owner::OwnerId;
use crate::units::{GRANULE, MAX_BYTES, round_up};

/// Requested bytes, and the chunk size needed to serve them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkRequest {
    pub(crate) bytes: u64,
    /// The size of a chunk that serves the request wherever it starts.
    pub(crate) needed: u64,
    /// The alignment of the allocation's chunk, if it is above the granule.
    pub(crate) alignment: u64,
    /// Owner of the request, which counts as pending for it; `None` without scope and tag.
    pub(crate) owner: Option<OwnerId>,
    /// Whether the new allocation is held.
    pub(crate) held: bool,
}

impl ChunkRequest {
    /// Creates a request for `bytes` bytes aligned to `alignment`; alignments above the granule add padding.
    ///
    /// Returns `None` if the padded size exceeds [`MAX_BYTES`].
    #[inline(always)]
    pub(crate) fn new(bytes: u64, alignment: u64) -> Option<Self> {
        let padded = bytes.checked_add(alignment.saturating_sub(GRANULE))?;
        (padded <= MAX_BYTES).then(|| Self { alignment, ..Self::for_chunk(bytes, round_up(padded)) })
    }

    /// Creates a request for `bytes` bytes in a chunk of at least `needed` bytes, at any granule.
    #[inline(always)]
    pub(crate) fn for_chunk(bytes: u64, needed: u64) -> Self {
        Self { bytes, needed, alignment: GRANULE, owner: None, held: false }
    }

    /// Returns whether a chunk must start at a multiple of more than the granule.
    #[inline(always)]
    pub(crate) fn is_aligned(&self) -> bool {
        self.alignment > GRANULE
    }

    /// Returns the requested bytes rounded up to granules: the amount its owner is charged.
    pub(crate) fn rounded(&self) -> u64 {
        round_up(self.bytes)
    }
}
