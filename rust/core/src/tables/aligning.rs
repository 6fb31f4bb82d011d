//! Requests with an alignment above the granule: their chunk starts at the aligned address.

use core::num::NonZeroU64;

use super::{ChunkRequest, Tables};
use crate::bins::free_list::FreeChunk;
use crate::units::align_up;

impl Tables {
    /// Puts a request into a free chunk that holds an aligned piece; what lies before the piece stays free.
    ///
    /// Takes the best fit for the size alone if it holds an aligned piece, so that a freed piece serves the same
    /// request again; else the best fit for the size and its padding.
    #[cold]
    #[inline(never)]
    pub(super) fn take_aligned(&mut self, request: ChunkRequest) -> Option<(u64, NonZeroU64)> {
        let FreeChunk { size, address, mut handle } = self.take_aligned_fit(request)?;
        // A second run under other settings would pad otherwise.
        self.history.end();
        let start = align_up(address, request.alignment);
        let front = start - address;
        if front > 0 {
            // The front keeps the handle: it may be the first chunk of its region.
            let piece = self.chunks.split(handle, front, size - front);
            self.bins.insert(&mut self.chunks, handle, front);
            handle = piece;
        }
        self.occupy(
            FreeChunk { size: size - front, address: start, handle },
            request.bytes,
            request.rounded(),
        )
    }

    fn take_aligned_fit(&mut self, request: ChunkRequest) -> Option<FreeChunk> {
        for size in [request.rounded(), request.needed] {
            let fit = self.bins.take_best_fit(&mut self.chunks, size)?;
            let start = align_up(fit.address, request.alignment);
            if start - fit.address + request.rounded() <= fit.size {
                return Some(fit);
            }
            self.bins.insert(&mut self.chunks, fit.handle, fit.size);
        }
        None
    }
}
