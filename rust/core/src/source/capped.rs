//! A cap on what a source hands out, which several pools may share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Gauge, Grant, Headroom, Refusal, RegionSource};
use crate::fork;
use crate::guard::MemoryGuard;

/// How many bytes may be out at once, over all sources that share the cap.
#[derive(Debug)]
pub struct Cap {
    bytes: u64,
    used: AtomicU64,
    /// The process that `used` counts for: what a parent has out is none of a forked child's.
    process: AtomicU64,
}

impl Cap {
    /// A cap of `bytes` bytes with nothing out yet.
    #[must_use]
    pub fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self { bytes, used: AtomicU64::new(0), process: AtomicU64::new(fork::generation()) })
    }

    /// The most that may be out at once.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that are out now.
    #[must_use]
    pub fn used(&self) -> u64 {
        let is_ours = self.process.load(Ordering::Relaxed) == fork::generation();
        if is_ours { self.used.load(Ordering::Relaxed) } else { 0 }
    }

    fn take(&self, bytes: u64) -> bool {
        if self.process.swap(fork::generation(), Ordering::Relaxed) != fork::generation() {
            self.used.store(0, Ordering::Relaxed);
        }
        let grown = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.bytes);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Declines what would take its [`Cap`] over the top, and passes the rest to its upstream.
#[derive(Debug)]
pub struct Capped<S> {
    upstream: S,
    cap: Arc<Cap>,
}

impl<S: RegionSource> Capped<S> {
    /// `upstream` under `cap`.
    #[must_use]
    pub fn new(upstream: S, cap: Arc<Cap>) -> Self {
        Self { upstream, cap }
    }
}

impl<S: RegionSource> RegionSource for Capped<S> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, Refusal> {
        let mut taken = Taken::new(&self.cap, bytes).ok_or(Refusal::Declined)?;
        let grant = self.upstream.reserve(bytes, alignment)?;
        // The upstream may have been generous; the surplus counts too, or the grant goes back.
        if !taken.becomes(grant.bytes) {
            self.upstream.release(grant);
            return Err(Refusal::Declined);
        }
        taken.keep();
        Ok(grant)
    }

    fn release(&mut self, region: Grant) {
        self.upstream.release(region);
        self.cap.give_back(region.bytes);
    }

    fn joins_regions(&self) -> bool {
        self.upstream.joins_regions()
    }

    fn discards(&self) -> bool {
        self.upstream.discards()
    }

    fn discard(&mut self, span: Grant) {
        self.upstream.discard(span);
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        Some(Arc::new(CappedGauge { upstream: self.upstream.gauge(), cap: Arc::clone(&self.cap) }))
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        self.upstream.guard()
    }
}

/// What the upstream could grant, and the cap allows.
#[derive(Debug)]
struct CappedGauge {
    upstream: Option<Arc<dyn Gauge>>,
    cap: Arc<Cap>,
}

impl Gauge for CappedGauge {
    fn headroom(&self) -> Headroom {
        let upstream = self.upstream.as_ref().map_or(Headroom::UNKNOWN, |upstream| upstream.headroom());
        let left = self.cap.bytes().saturating_sub(self.cap.used());
        // While the cap is what binds, what is released comes back.
        let grants_released = upstream.grants_released || upstream.sure >= self.cap.bytes();
        Headroom { sure: upstream.sure.min(left), most: upstream.most.min(left), grants_released, ..upstream }
    }
}

/// Bytes of a cap that go back unless they are kept, also when the upstream panics.
struct Taken<'a> {
    cap: &'a Cap,
    bytes: u64,
}

impl<'a> Taken<'a> {
    fn new(cap: &'a Cap, bytes: u64) -> Option<Self> {
        cap.take(bytes).then(|| Self { cap, bytes })
    }

    /// Takes more or gives some back, so that it is `bytes` in the end; false if the cap has no more.
    fn becomes(&mut self, bytes: u64) -> bool {
        if !self.cap.take(bytes.saturating_sub(self.bytes)) {
            return false;
        }
        self.cap.give_back(self.bytes.saturating_sub(bytes));
        self.bytes = bytes;
        true
    }

    fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.cap.give_back(self.bytes);
    }
}
