//! What a source has out.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use allotment::source::Grant;

/// The grants that are out: address to length, as granted.
#[derive(Debug, Default)]
pub(crate) struct Out(Mutex<BTreeMap<u64, u64>>);

impl Out {
    pub(crate) fn insert(&self, grant: Grant) {
        self.grants().insert(grant.address, grant.bytes);
    }

    /// Takes out the grants that a region is made of: one, or several that a pool was told to join.
    ///
    /// # Panics
    /// When the region is not made of grants that are out. Those in front of the first that is not are gone.
    pub(crate) fn remove(&self, region: Grant) -> Vec<Grant> {
        let mut removed = Vec::new();
        let mut address = region.address;
        while address < region.end() {
            let bytes = self.grants().remove(&address).filter(|bytes| address + bytes <= region.end());
            let bytes = bytes.unwrap_or_else(|| panic!("{region:?} was not granted by this source"));
            removed.push(Grant { address, bytes });
            address += bytes;
        }
        removed
    }

    /// Does something with a span, which stays out meanwhile.
    ///
    /// # Panics
    /// When the span is not all within grants that are out.
    pub(crate) fn with<T>(&self, span: Grant, work: impl FnOnce() -> T) -> T {
        let grants = self.grants();
        let mut covered = span.address;
        while covered < span.end() {
            let around = grants.range(..=covered).next_back().map(|(address, bytes)| address + bytes);
            covered = around.filter(|&end| end > covered).unwrap_or_else(|| panic!("{span:?} is not out"));
        }
        work()
    }

    fn grants(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        // A panic over a foreign region leaves the table sound.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Out {
    pub(crate) fn is_empty(&self) -> bool {
        self.grants().is_empty()
    }
}
