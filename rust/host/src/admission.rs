//! Admission control: pools refuse requests that the machine has no memory for, instead of being killed by the
//! kernel.
//!
//! Reserving takes only address space, so regions may add up to any size. A controlled pool has an allowance. A
//! request subtracts its bytes from it with one atomic operation. If the allowance does not suffice, the control
//! checks the machine's memory. There are two kinds of requests:
//!
//! - Array data will be written sooner or later. All allocated bytes count as if they were written: `allocated +
//!   allowances ≤ available − margin + pages already written`, over all controlled pools.
//! - An address may never be written to, as in a test of limits. Its request is admitted while the machine has
//!   [`MAX_ALLOWANCE`], or the bytes of the request, left beside the margin.
//!
//! Memory that other programs, or other parts of this program, take between two checks is only seen at the next
//! check. The exposure is the allowances: an eighth of the memory that was left, at most 1 GiB per pool. Beyond that,
//! a program can write more memory than there is only into addresses that it first requested and did not write to.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use allotment::{Bytes, Pool};
use thiserror::Error;

use crate::clear::touched_bytes;
use crate::machine_memory::MachineMemory;

/// The allowance between two checks: this fraction of the memory that is left, up to [`MAX_ALLOWANCE`]. A check costs
/// far less than writing that many bytes.
const ALLOWANCE_FRACTION: u64 = 8;
const MAX_ALLOWANCE: u64 = 1 << 30;

/// The memory that always stays free, in bytes: a fraction of the machine's memory, within these bounds.
const MIN_MARGIN: u64 = 64 << 20;
const MAX_MARGIN: u64 = 1 << 30;
const MARGIN_FRACTION: u64 = 32;

/// A request that the machine has no memory for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "this machine has {} left, of which {} stay free and {} are promised to memory that was allocated before: {} more could \
     end in the kernel's out-of-memory killer; free something, or end other programs",
    Bytes(*available), Bytes(*margin), Bytes(*promised), Bytes(*requested)
)]
pub struct MachineOutOfMemory {
    /// Requested bytes.
    pub requested: u64,
    /// Available bytes of the machine.
    pub available: u64,
    /// Bytes that always stay free.
    pub margin: u64,
    /// Bytes that are allocated, or may be without a check, and were not written yet.
    pub promised: u64,
}

/// The admission control of one pool.
#[derive(Debug)]
pub struct AdmissionControl {
    pool: Arc<Pool>,
    /// Bytes that may be allocated before the next check; below 0 while a check is due.
    allowance: AtomicI64,
    machine_memory: fn() -> Option<MachineMemory>,
}

/// The memory that the controlled pools have allocated.
#[derive(Debug, Default, Clone, Copy)]
struct Outstanding {
    /// Requested bytes of live allocations.
    requested: u64,
    /// Bytes of regions outside of all allocations.
    free: u64,
    /// Bytes of regions that were written to.
    touched: u64,
}

impl AdmissionControl {
    /// Creates the control of a pool over [`HostMemory`](crate::HostMemory), without an allowance before the first
    /// check.
    #[must_use]
    pub fn new(pool: &Arc<Pool>) -> Self {
        Self { pool: Arc::clone(pool), allowance: AtomicI64::new(0), machine_memory: MachineMemory::now }
    }

    /// Admits a request for array data if the machine has memory for it. `peers` returns all controls of the process,
    /// this one included; it is called if the allowance does not suffice.
    ///
    /// # Errors
    /// If the machine has no memory for the request.
    pub fn admit_data(
        &self,
        bytes: u64,
        peers: impl FnOnce() -> Vec<Arc<Self>>,
    ) -> Result<(), MachineOutOfMemory> {
        if self.take(bytes) { Ok(()) } else { self.check_outstanding(bytes, &peers()) }
    }

    /// Admits a request for an address that may never be written to.
    ///
    /// # Errors
    /// If the machine has almost no memory left.
    pub fn admit_address(
        &self,
        bytes: u64,
        peers: impl FnOnce() -> Vec<Arc<Self>>,
    ) -> Result<(), MachineOutOfMemory> {
        let bytes = bytes.min(MAX_ALLOWANCE);
        if self.take(bytes) { Ok(()) } else { self.check_remaining(bytes, &peers()) }
    }

    /// Subtracts a request from the allowance if it suffices. Two concurrent threads may both find that it does not,
    /// and both check.
    #[inline]
    fn take(&self, bytes: u64) -> bool {
        let taken = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.allowance.load(Ordering::Relaxed) >= taken
            && self.allowance.fetch_sub(taken, Ordering::Relaxed) >= taken
    }

    #[cold]
    fn check_remaining(&self, bytes: u64, peers: &[Arc<Self>]) -> Result<(), MachineOutOfMemory> {
        let Some(machine_memory) = self.machine_memory() else { return Ok(()) };
        let margin = margin(machine_memory);
        let promised: u64 = peers.iter().map(|peer| peer.allowance()).sum();
        let room = machine_memory.available.saturating_sub(margin);
        if promised + bytes > room {
            return Err(MachineOutOfMemory {
                requested: bytes,
                available: machine_memory.available,
                margin,
                promised,
            });
        }
        self.allow(room - promised - bytes, margin, peers);
        Ok(())
    }

    /// Resets the allowance and returns the machine's memory. Without figures the allowance is unlimited.
    fn machine_memory(&self) -> Option<MachineMemory> {
        let machine_memory = (self.machine_memory)();
        self.allowance.store(if machine_memory.is_some() { 0 } else { i64::MAX }, Ordering::Relaxed);
        machine_memory
    }

    /// Sets the allowance until the next check, from `left` free bytes.
    fn allow(&self, left: u64, margin: u64, peers: &[Arc<Self>]) {
        // Small requests near the end need no check each time: the margin has room for them, and the next check
        // counts them.
        let least = margin / (4 * peers.len().max(1) as u64);
        let allowance = (left / ALLOWANCE_FRACTION).min(MAX_ALLOWANCE).max(least);
        self.allowance.store(i64::try_from(allowance).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    #[cold]
    fn check_outstanding(&self, bytes: u64, peers: &[Arc<Self>]) -> Result<(), MachineOutOfMemory> {
        let Some(machine_memory) = self.machine_memory() else { return Ok(()) };
        let margin = margin(machine_memory);
        let room = machine_memory.available.saturating_sub(margin);
        let allowances: u64 = peers.iter().map(|peer| peer.allowance()).sum();
        // Usually the request fits even if no page was written yet. Else written pages count as taken, except those
        // outside of all allocations, which the next request may not get. Last, those are released to the system.
        let mut outstanding = Outstanding::of(peers, false);
        let mut written = 0;
        if outstanding.requested + allowances + bytes > room {
            outstanding = Outstanding::of(peers, true);
            written = outstanding.touched.saturating_sub(outstanding.free);
        }
        let (mut room, mut available) = (room, machine_memory.available);
        if outstanding.requested + allowances + bytes > room + written && outstanding.touched > 0 {
            for peer in peers {
                // A pool that cannot be trimmed now keeps its pages, which count as unavailable.
                let _ = peer.pool.trim();
            }
            outstanding = Outstanding::of(peers, true);
            written = outstanding.touched;
            available = (self.machine_memory)().map_or(available, |machine_memory| machine_memory.available);
            room = available.saturating_sub(margin);
        }
        let promised = (outstanding.requested + allowances).saturating_sub(written);
        if promised + bytes > room {
            return Err(MachineOutOfMemory { requested: bytes, available, margin, promised });
        }
        self.allow(room - promised - bytes, margin, peers);
        Ok(())
    }

    fn allowance(&self) -> u64 {
        u64::try_from(self.allowance.load(Ordering::Relaxed)).unwrap_or(0)
    }
}

/// Returns the bytes that always stay free on a machine.
fn margin(machine_memory: MachineMemory) -> u64 {
    (machine_memory.total / MARGIN_FRACTION).clamp(MIN_MARGIN, MAX_MARGIN)
}

impl Outstanding {
    /// Sums up the pools' memory; with `scan` also the written bytes of their regions.
    fn of(admission_controls: &[Arc<AdmissionControl>], scan: bool) -> Self {
        let mut sum = Self::default();
        for admission in admission_controls {
            // An inherited pool of a forked child allocates nothing.
            let Ok(stats) = admission.pool.stats() else { continue };
            sum.requested += stats.requested;
            sum.free += stats.reserved - stats.requested;
            if let (true, Ok(snapshot)) = (scan, admission.pool.snapshot()) {
                sum.touched += snapshot
                    .regions
                    .iter()
                    .map(|region| touched_bytes(region.address, region.size))
                    .sum::<u64>();
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests;
