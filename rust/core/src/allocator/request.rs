//! What is asked of an allocator.

use crate::owner::OwnerId;
use crate::units::{GRANULE, MAX_BYTES, round_up};

/// A request in bytes, and in the bytes a chunk must have to serve it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) bytes: u64,
    pub(crate) needed: u64,
    /// Whom it is for, with the request noted as pending; none for nobody in particular.
    pub(crate) owner: Option<OwnerId>,
    /// Whether what serves it is held from the start.
    pub(crate) held: bool,
}

impl Request {
    /// A request of `bytes` bytes at a multiple of `alignment`; above the granule that takes padding.
    ///
    /// None above [`MAX_BYTES`].
    pub(crate) fn new(bytes: u64, alignment: u64) -> Option<Self> {
        let padded = bytes.checked_add(alignment.saturating_sub(GRANULE))?;
        (padded <= MAX_BYTES).then(|| Self { bytes, needed: round_up(padded), owner: None, held: false })
    }

    /// The request in whole granules: what its owner holds.
    pub(crate) fn rounded(&self) -> u64 {
        round_up(self.bytes)
    }
}
