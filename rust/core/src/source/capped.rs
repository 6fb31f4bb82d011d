//! A cap on the granted bytes of a source, which several pools may share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::forwarding::{forward_page_sizes, forward_region_source};
use super::pages::{PageSizes, of_upstream};
use super::{Gauge, Grant, Headroom, PageSource, RegionSource, ReserveError, SourceFailure};
use crate::fork;

/// The most bytes that all sources under the cap may grant at once.
#[derive(Debug)]
pub struct Cap {
    bytes: u64,
    used: AtomicU64,
    /// The process that `used` counts for: a forked child does not own its parent's grants.
    process: AtomicU64,
}

impl Cap {
    /// Creates a cap of `bytes` bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self { bytes, used: AtomicU64::new(0), process: AtomicU64::new(fork::generation()) })
    }

    /// Returns the cap in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the granted bytes.
    #[must_use]
    pub fn used(&self) -> u64 {
        let is_ours = self.process.load(Ordering::Relaxed) == fork::generation();
        if is_ours { self.used.load(Ordering::Relaxed) } else { 0 }
    }

    fn reserve(&self, bytes: u64) -> bool {
        if self.process.swap(fork::generation(), Ordering::Relaxed) != fork::generation() {
            self.used.store(0, Ordering::Relaxed);
        }
        let grown = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.bytes);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok()
    }

    fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Declines requests that would exceed its [`Cap`] and passes the others to its upstream. Committed pages count
/// against the cap, addresses without memory do not.
#[derive(Debug)]
pub struct Capped<S> {
    upstream: S,
    cap: Arc<Cap>,
    page_sizes: PageSizes,
}

impl<S: RegionSource> Capped<S> {
    /// Wraps `upstream` with `cap`.
    #[must_use]
    pub fn new(mut upstream: S, cap: Arc<Cap>) -> Self {
        let page_sizes = PageSizes::of(&mut upstream);
        Self { upstream, cap, page_sizes }
    }
}

impl<S: RegionSource> RegionSource for Capped<S> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let mut reservation = CapReservation::new(&self.cap, bytes).ok_or(ReserveError::Declined)?;
        let grant = self.upstream.reserve(bytes, alignment)?;
        // The upstream may grant more than requested; the surplus counts, or the grant is released.
        if !reservation.resize(grant.bytes) {
            self.upstream.release(grant);
            return Err(ReserveError::Declined);
        }
        reservation.keep();
        Ok(grant)
    }

    fn release(&mut self, region: Grant) {
        self.upstream.release(region);
        self.cap.release(region.bytes);
    }

    forward_region_source!();

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        Some(Arc::new(CappedGauge { upstream: self.upstream.gauge(), cap: Arc::clone(&self.cap) }))
    }
}

impl<S: RegionSource> PageSource for Capped<S> {
    forward_page_sizes!();

    fn reserve_addresses(&mut self, bytes: u64, page_size: u64) -> Result<Grant, ReserveError> {
        of_upstream(&mut self.upstream).reserve_addresses(bytes, page_size)
    }

    fn release_addresses(&mut self, range: Grant) {
        of_upstream(&mut self.upstream).release_addresses(range);
    }

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        let reservation = CapReservation::new(&self.cap, span.bytes).ok_or(ReserveError::Declined)?;
        of_upstream(&mut self.upstream).commit(span)?;
        reservation.keep();
        Ok(())
    }

    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        of_upstream(&mut self.upstream).decommit(span)?;
        self.cap.release(span.bytes);
        Ok(())
    }

    fn move_pages(&mut self, from: Grant, to: u64) -> Result<(), ReserveError> {
        of_upstream(&mut self.upstream).move_pages(from, to)
    }

    fn recycle(&mut self, range: Grant) -> Result<bool, SourceFailure> {
        of_upstream(&mut self.upstream).recycle(range)
    }

    fn commits_zeros(&mut self) -> bool {
        of_upstream(&mut self.upstream).commits_zeros()
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), SourceFailure> {
        of_upstream(&mut self.upstream).read(address, into)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), SourceFailure> {
        of_upstream(&mut self.upstream).write(address, from)
    }
}

/// The smaller of the upstream's headroom and the room under the cap.
#[derive(Debug)]
struct CappedGauge {
    upstream: Option<Arc<dyn Gauge>>,
    cap: Arc<Cap>,
}

impl Gauge for CappedGauge {
    fn headroom(&self) -> Headroom {
        let upstream = self.upstream.as_ref().map_or(Headroom::UNKNOWN, |upstream| upstream.headroom());
        let left = self.cap.bytes().saturating_sub(self.cap.used());
        // While the cap is the bottleneck, released bytes can be granted again.
        let grants_released = upstream.grants_released || upstream.guaranteed >= self.cap.bytes();
        Headroom {
            guaranteed: upstream.guaranteed.min(left),
            maximum: upstream.maximum.min(left),
            grants_released,
            ..upstream
        }
    }
}

/// Reserved bytes of a cap that are returned on drop unless kept, also when the upstream panics.
struct CapReservation<'a> {
    cap: &'a Cap,
    bytes: u64,
}

impl<'a> CapReservation<'a> {
    fn new(cap: &'a Cap, bytes: u64) -> Option<Self> {
        cap.reserve(bytes).then(|| Self { cap, bytes })
    }

    /// Changes the reservation to `bytes`; returns false if the cap has no more.
    fn resize(&mut self, bytes: u64) -> bool {
        if !self.cap.reserve(bytes.saturating_sub(self.bytes)) {
            return false;
        }
        self.cap.release(self.bytes.saturating_sub(bytes));
        self.bytes = bytes;
        true
    }

    fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for CapReservation<'_> {
    fn drop(&mut self) {
        self.cap.release(self.bytes);
    }
}
