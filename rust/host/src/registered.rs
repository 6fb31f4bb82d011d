//! Memory of another allocator of this process as a source of pools for the host's arrays.

use std::sync::Arc;

use allotment::source::{Grant, RegionSource, ReserveError};
use allotment::{GRANULE, Gauge, MAX_BYTES, MemoryGuard};

use crate::HostAccessible;
use crate::grants::Grants;
use crate::guard::HostGuard;
use crate::regions::{self, Origin};

/// Adds to a source of memory of this process what [`HostMemory`] has beside its regions: [`end_of_region`] finds them,
/// and pools over them can have a guard.
///
/// Regions are never joined, have no pages of their own, and their content is not discarded.
///
/// [`end_of_region`]: crate::end_of_region
/// [`HostMemory`]: crate::HostMemory
#[derive(Debug)]
pub struct Registered<S> {
    upstream: S,
    grants: Arc<Grants>,
    /// Grants that cannot be regions, until they are released.
    unusable: Vec<Grant>,
}

impl<S: HostAccessible> Registered<S> {
    /// Wraps `upstream`.
    #[must_use]
    pub fn new(upstream: S) -> Self {
        Self { upstream, grants: Arc::default(), unusable: Vec::new() }
    }
}

impl<S: HostAccessible> RegionSource for Registered<S> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let grant = self.upstream.reserve(bytes, alignment)?;
        // A pool refuses the grants that are not registered here: it releases an unusable one, and never one that
        // overlaps another, as the memory of that one is in use.
        if !is_usable(grant) {
            self.unusable.push(grant);
        } else if self.grants.insert(grant) {
            regions::register(grant.address, grant.end(), Origin::Other);
        }
        Ok(grant)
    }

    /// Releases the grants that a region consists of, or a grant that cannot be a region.
    ///
    /// # Panics
    /// If this source did not grant the region or has already released it.
    fn release(&mut self, region: Grant) {
        if let Some(at) = self.unusable.iter().position(|&grant| grant == region) {
            self.unusable.swap_remove(at);
            self.upstream.release(region);
            return;
        }
        for grant in self.grants.remove(region) {
            regions::unregister(grant.address);
            self.upstream.release(grant);
        }
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        self.upstream.gauge()
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        Some(Arc::new(HostGuard::new(&self.grants)))
    }
}

/// Returns whether a grant can be a region of this process's memory.
fn is_usable(grant: Grant) -> bool {
    let Grant { address, bytes } = grant;
    let end = address.checked_add(bytes).filter(|&end| end <= MAX_BYTES);
    let are_granules = address.is_multiple_of(GRANULE) && bytes.is_multiple_of(GRANULE);
    address > 0 && bytes > 0 && are_granules && end.is_some()
}

// SAFETY: grants pass through unchanged. The guard accesses live grants only.
unsafe impl<S: HostAccessible> HostAccessible for Registered<S> {}

#[cfg(test)]
mod tests;
