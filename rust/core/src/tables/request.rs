//! A request to the allocator.

use crate::owner::OwnerId;
use crate::units::{GRANULE, MAX_BYTES, round_up};

/// Requested bytes, and the chunk size needed to serve them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkRequest {
    pub(crate) bytes: u64,
    pub(crate) needed: u64,
    /// Owner of the request, which counts as pending for it; `None` without scope and tag.
    pub(crate) owner: Option<OwnerId>,
    /// Whether the new allocation is held.
    pub(crate) held: bool,
}

impl ChunkRequest {
    /// Creates a request for `bytes` bytes aligned to `alignment`; alignments above the granule add padding.
    ///
    /// Returns `None` if the padded size exceeds [`MAX_BYTES`].
    pub(crate) fn new(bytes: u64, alignment: u64) -> Option<Self> {
        let padded = bytes.checked_add(alignment.saturating_sub(GRANULE))?;
        (padded <= MAX_BYTES).then(|| Self { bytes, needed: round_up(padded), owner: None, held: false })
    }

    /// Returns the requested bytes rounded up to granules: the amount its owner is charged.
    pub(crate) fn rounded(&self) -> u64 {
        round_up(self.bytes)
    }
}
