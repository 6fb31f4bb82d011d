//! Memory of another allocator of this process as a source of pools for the host's arrays.

use std::sync::Arc;

use allotment::source::{Grant, RegionSource, ReserveError};
use allotment::{Gauge, MemoryGuard};

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
}

impl<S: HostAccessible> Registered<S> {
    /// Wraps `upstream`.
    #[must_use]
    pub fn new(upstream: S) -> Self {
        Self { upstream, grants: Arc::default() }
    }
}

impl<S: HostAccessible> RegionSource for Registered<S> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let grant = self.upstream.reserve(bytes, alignment)?;
        regions::register(grant.address, grant.end(), Origin::Other);
        self.grants.insert(grant);
        Ok(grant)
    }

    /// Releases the grants that a region consists of.
    ///
    /// # Panics
    /// If this source did not grant the region or has already released it.
    fn release(&mut self, region: Grant) {
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

// SAFETY: grants pass through unchanged. The guard accesses live grants only.
unsafe impl<S: HostAccessible> HostAccessible for Registered<S> {}

#[cfg(test)]
mod tests;
