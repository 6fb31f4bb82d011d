//! Builds the out-of-memory error of a refused request: its figures and its verdict.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{ChunkRequest, Elastic, Tables};
use crate::chunk::Chunk;
use crate::report::out_of_memory::{OutOfMemory, Verdict};
use crate::stats::Stats;
use crate::units::round_up;

impl Tables {
    /// Returns the error of a refused request with the current figures. `margins` are the bytes that guard mode adds
    /// to each allocation.
    pub(crate) fn out_of_memory(
        &self,
        request: ChunkRequest,
        source_refused: bool,
        margins: u64,
    ) -> OutOfMemory {
        let stats = self.stats();
        let Stats {
            requested: live_requested, in_use, reserved, limit, free, largest_free, num_live, ..
        } = stats;
        // In pages, an elastic pool needs no padding, and its limit is a whole number of them.
        let page_size = self.elastic.as_ref().map_or(0, Elastic::page_size);
        let (needed, alone, most) = match page_size {
            0 => (request.needed, request.needed, limit),
            _ => (
                request.rounded(),
                request.rounded().next_multiple_of(page_size),
                limit / page_size * page_size,
            ),
        };
        let verdict = if alone > most {
            Verdict::Limit
        } else if source_refused {
            Verdict::Source
        } else if needed <= most - in_use {
            Verdict::Fragmented
        } else if needed <= most - live_requested && needed <= most - self.tight_in_use(margins) {
            Verdict::Slack
        } else {
            Verdict::Full
        };
        OutOfMemory {
            requested: request.bytes,
            needed: request.needed,
            page_size,
            limit,
            limit_set_by: Arc::clone(&self.limit_set_by),
            live_requested,
            in_use,
            internal_fragmentation: stats.internal_fragmentation,
            reserved,
            free,
            largest_free,
            num_live,
            verdict,
            scope_limit: None,
            advice: Vec::new(),
            details: None,
        }
    }

    /// Returns the bytes in use if each chunk had exactly its rounded request and its red zones.
    ///
    /// # Cost
    /// Linear in the number of chunks.
    fn tight_in_use(&self, margins: u64) -> u64 {
        let tight = |chunk: &Chunk| (round_up(chunk.requested) + margins).min(chunk.size);
        self.chunks.in_use().map(tight).sum()
    }
}
