//! The live grants of one source.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use allotment::source::Grant;

/// The live grants: address to length.
#[derive(Debug, Default)]
pub(crate) struct Grants(Mutex<BTreeMap<u64, u64>>);

impl Grants {
    /// Adds a grant with an end, unless it overlaps a live one; returns whether it was added.
    pub(crate) fn insert(&self, grant: Grant) -> bool {
        let mut grants = self.grants();
        let before = grants.range(..grant.end()).next_back();
        let is_free = before.is_none_or(|(address, bytes)| address + bytes <= grant.address);
        if is_free {
            grants.insert(grant.address, grant.bytes);
        }
        is_free
    }

    /// Removes the grants that make up a region: one, or several that a pool joined.
    ///
    /// # Panics
    /// If the region does not consist of live grants. Those before the first unknown one are removed.
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

    /// Runs `work` on a span while its grants stay live.
    ///
    /// # Panics
    /// If the span is not covered by live grants.
    pub(crate) fn with<T>(&self, span: Grant, work: impl FnOnce() -> T) -> T {
        let grants = self.grants();
        let mut covered = span.address;
        while covered < span.end() {
            let around = grants.range(..=covered).next_back().map(|(address, bytes)| address + bytes);
            covered =
                around.filter(|&end| end > covered).unwrap_or_else(|| panic!("{span:?} is not granted"));
        }
        work()
    }

    fn grants(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        // A panic for an unknown region leaves the table consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Grants {
    pub(crate) fn is_empty(&self) -> bool {
        self.grants().is_empty()
    }
}
