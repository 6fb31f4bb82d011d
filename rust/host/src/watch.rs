//! Keeps pools from filling more memory than the machine has left: what the kernel would end with a kill is a refusal
//! here.
//!
//! Reserving takes address space only, so regions may add up to any size. A pool that is watched has an allowance. A
//! request takes its bytes from it, which is one atomic operation. Where the allowance does not reach, the watch looks
//! at the machine. Requests are of two kinds:
//!
//! - Data of arrays will be written to, now or later. All that was handed out counts as if it were written to:
//!   `handed out + allowances ≤ available − margin + pages written to already`, over all watched pools.
//! - An address may never be written to, as in a test of limits. Its request passes while the machine has
//!   [`LARGEST_ALLOWANCE`] left, or the bytes of the request, beside the margin.
//!
//! Memory that other programs, or other parts of this one, take between two looks is not seen before the next. The
//! exposure is the allowances: an eighth of what was left, at most 1 GiB for each pool. Beyond that, a program can
//! write more than there is only into addresses of which it first got more than it wrote to.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use allotment::{Bytes, Pool};
use thiserror::Error;

use crate::clear::touched_bytes;
use crate::machine::Machine;

/// What a pool hands out between two looks: a share of the memory that is left, and at most so much. A look costs far
/// less than to write to so many bytes.
const ALLOWANCE_SHARE: u64 = 8;
const LARGEST_ALLOWANCE: u64 = 1 << 30;

/// What the machine keeps in any case, in bytes; a share of a large machine's memory is more.
const MARGIN: u64 = 64 << 20;
const LARGEST_MARGIN: u64 = 1 << 30;
const MARGIN_SHARE: u64 = 32;

/// A request that the machine has no memory for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "this machine has {} left, of which {} stay free and {} are promised to what was handed out before: {} more could \
     end in the kernel's out-of-memory killer; free something, or end other programs",
    Bytes(*available), Bytes(*margin), Bytes(*promised), Bytes(*requested)
)]
pub struct MachineFull {
    /// Bytes of the request.
    pub requested: u64,
    /// Bytes that the machine has left.
    pub available: u64,
    /// Bytes that it keeps in any case.
    pub margin: u64,
    /// Bytes that were handed out, or may be without a look, and were not written to yet.
    pub promised: u64,
}

/// Watches what one pool hands out.
#[derive(Debug)]
pub struct Watch {
    pool: Arc<Pool>,
    /// Bytes that may be handed out before the next look; below 0 while a look is due.
    allowance: AtomicI64,
    machine: fn() -> Option<Machine>,
}

/// What the watched pools have handed out.
#[derive(Debug, Default, Clone, Copy)]
struct HandedOut {
    /// Bytes asked for and held.
    requested: u64,
    /// Bytes of regions that no allocation holds.
    free: u64,
    /// Bytes of regions that were written to.
    touched: u64,
}

impl Watch {
    /// A watch over a pool of [`HostMemory`](crate::HostMemory), which may hand out nothing before the first look.
    #[must_use]
    pub fn new(pool: &Arc<Pool>) -> Self {
        Self { pool: Arc::clone(pool), allowance: AtomicI64::new(0), machine: Machine::now }
    }

    /// Lets a request for the data of an array pass, if the machine has memory for it. `peers` are all the watches of
    /// the process, this one among them; they are asked for where the allowance does not reach.
    ///
    /// # Errors
    /// When the machine has no memory for the request.
    pub fn admit_data(&self, bytes: u64, peers: impl FnOnce() -> Vec<Arc<Self>>) -> Result<(), MachineFull> {
        if self.take(bytes) { Ok(()) } else { self.look(bytes, &peers()) }
    }

    /// The same for a request for an address, which may never be written to.
    ///
    /// # Errors
    /// When the machine has next to no memory left.
    pub fn admit_address(
        &self,
        bytes: u64,
        peers: impl FnOnce() -> Vec<Arc<Self>>,
    ) -> Result<(), MachineFull> {
        let bytes = bytes.min(LARGEST_ALLOWANCE);
        if self.take(bytes) { Ok(()) } else { self.look_at_what_is_left(bytes, &peers()) }
    }

    /// Takes the bytes of a request from the allowance, if it reaches. Two threads at once may both find that it does
    /// not, and both look.
    #[inline]
    fn take(&self, bytes: u64) -> bool {
        let taken = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.allowance.load(Ordering::Relaxed) >= taken
            && self.allowance.fetch_sub(taken, Ordering::Relaxed) >= taken
    }

    #[cold]
    fn look_at_what_is_left(&self, bytes: u64, peers: &[Arc<Self>]) -> Result<(), MachineFull> {
        let Some(machine) = self.machine() else { return Ok(()) };
        let margin = margin(machine);
        let promised: u64 = peers.iter().map(|peer| peer.allowance()).sum();
        let room = machine.available.saturating_sub(margin);
        if promised + bytes > room {
            return Err(MachineFull { requested: bytes, available: machine.available, margin, promised });
        }
        self.allow(room - promised - bytes, margin, peers);
        Ok(())
    }

    /// The machine at a look, which begins with no allowance. A system that does not tell cannot be watched.
    fn machine(&self) -> Option<Machine> {
        let machine = (self.machine)();
        self.allowance.store(if machine.is_some() { 0 } else { i64::MAX }, Ordering::Relaxed);
        machine
    }

    /// Sets the allowance until the next look, of `left` bytes that are free.
    fn allow(&self, left: u64, margin: u64, peers: &[Arc<Self>]) {
        // Small requests near the end need not look each time. The margin has room for them, and they count in the next.
        let least = margin / (4 * peers.len().max(1) as u64);
        let allowance = (left / ALLOWANCE_SHARE).min(LARGEST_ALLOWANCE).max(least);
        self.allowance.store(i64::try_from(allowance).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    #[cold]
    fn look(&self, bytes: u64, peers: &[Arc<Self>]) -> Result<(), MachineFull> {
        let Some(machine) = self.machine() else { return Ok(()) };
        let margin = margin(machine);
        let room = machine.available.saturating_sub(margin);
        let allowances: u64 = peers.iter().map(|peer| peer.allowance()).sum();
        // Most often it fits even if nothing was written to yet. Else the pages that were count as paid; of those that
        // no allocation holds it is not known whether the next request gets them. At last they go back to the system.
        let mut out = HandedOut::of(peers, false);
        let mut paid = 0;
        if out.requested + allowances + bytes > room {
            out = HandedOut::of(peers, true);
            paid = out.touched.saturating_sub(out.free);
        }
        let (mut room, mut available) = (room, machine.available);
        if out.requested + allowances + bytes > room + paid && out.touched > 0 {
            for peer in peers {
                // A pool that cannot be trimmed just now keeps its pages, which count as not available.
                let _ = peer.pool.trim();
            }
            out = HandedOut::of(peers, true);
            paid = out.touched;
            available = (self.machine)().map_or(available, |machine| machine.available);
            room = available.saturating_sub(margin);
        }
        let promised = (out.requested + allowances).saturating_sub(paid);
        if promised + bytes > room {
            return Err(MachineFull { requested: bytes, available, margin, promised });
        }
        self.allow(room - promised - bytes, margin, peers);
        Ok(())
    }

    fn allowance(&self) -> u64 {
        u64::try_from(self.allowance.load(Ordering::Relaxed)).unwrap_or(0)
    }
}

/// Bytes that a machine keeps in any case.
fn margin(machine: Machine) -> u64 {
    (machine.total / MARGIN_SHARE).clamp(MARGIN, LARGEST_MARGIN)
}

impl HandedOut {
    /// What the pools hold now; with `scan` also how much of their regions was written to.
    fn of(watches: &[Arc<Watch>], scan: bool) -> Self {
        let mut sum = Self::default();
        for watch in watches {
            // A pool that a fork left behind hands out nothing.
            let Ok(stats) = watch.pool.stats() else { continue };
            sum.requested += stats.requested;
            sum.free += stats.reserved - stats.requested;
            if let (true, Ok(snapshot)) = (scan, watch.pool.snapshot()) {
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
