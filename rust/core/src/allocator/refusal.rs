//! The figures and the verdict of a refused request.

use std::sync::Arc;

use super::{Allocator, Request};
use crate::chunk::Chunk;
use crate::refusal::{OutOfMemory, Verdict};
use crate::stats::Stats;
use crate::units::round_up;

impl Allocator {
    /// The refusal of a request, with the figures of this moment. `margins` are bytes that each allocation takes more
    /// than was asked for, whatever the policy.
    pub(crate) fn refusal(&self, request: Request, source_refused: bool, margins: u64) -> OutOfMemory {
        let stats = self.stats();
        let Stats {
            requested: live_requested, in_use, reserved, limit, free, largest_free, num_live, ..
        } = stats;
        let verdict = if request.needed > limit {
            Verdict::Limit
        } else if source_refused {
            Verdict::Source
        } else if request.needed <= limit - in_use {
            Verdict::Fragmented
        } else if request.needed <= limit - live_requested
            && request.needed <= limit - self.tight_in_use(margins)
        {
            Verdict::Slack
        } else {
            Verdict::Full
        };
        OutOfMemory {
            requested: request.bytes,
            needed: request.needed,
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
            capped: None,
            advice: Vec::new(),
            details: None,
        }
    }

    /// Bytes that would be in use if each chunk had just the whole granules of its request, and its red zones.
    ///
    /// # Cost
    /// Linear in the chunks.
    fn tight_in_use(&self, margins: u64) -> u64 {
        let tight = |chunk: &Chunk| (round_up(chunk.requested) + margins).min(chunk.size);
        self.chunks.in_use().map(tight).sum()
    }
}
