//! Frozen pictures of a pool.

use std::sync::Arc;

use allotment::ChunkSnapshot;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::interpreter::detach;
use crate::stats::PoolStats;

/// Every region and every chunk of a pool, as of one moment.
#[pyclass(frozen, eq, module = "allotment")]
#[derive(PartialEq)]
pub(crate) struct Snapshot(pub(crate) Arc<allotment::Snapshot>);

#[pymethods]
impl Snapshot {
    /// The pool's name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The counters of the same moment.
    #[getter]
    fn stats(&self) -> PoolStats {
        PoolStats(self.0.stats)
    }

    /// Regions in address order.
    #[getter]
    fn regions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let region = |index| Region { snapshot: Arc::clone(&self.0), index };
        let regions = (0..self.0.regions.len()).map(|index| Bound::new(py, region(index)));
        PyTuple::new(py, regions.collect::<PyResult<Vec<_>>>()?)
    }

    /// A few lines for people: totals and the largest groups of allocations.
    fn summary(&self) -> String {
        self.0.to_string()
    }

    /// The whole picture as one JSON object, with the same names.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        let json = detach(py, || serde_json::to_string(&*self.0));
        json.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn __repr__(&self) -> String {
        format!("<allotment.Snapshot of {:?}: {} regions>", self.0.name, self.0.regions.len())
    }
}

/// One span got from the source, or several that touched and were joined.
#[pyclass(frozen, eq, module = "allotment")]
pub(crate) struct Region {
    snapshot: Arc<allotment::Snapshot>,
    index: usize,
}

impl PartialEq for Region {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Region {
    fn get(&self) -> &allotment::RegionSnapshot {
        &self.snapshot.regions[self.index]
    }
}

#[pymethods]
impl Region {
    /// First byte.
    #[getter]
    fn address(&self) -> u64 {
        self.get().address
    }

    /// Length in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.get().size
    }

    /// Chunks in address order; they cover the region without gaps.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let chunks = self.get().chunks.iter().map(|chunk| Bound::new(py, Chunk(chunk.clone())));
        PyTuple::new(py, chunks.collect::<PyResult<Vec<_>>>()?)
    }

    fn __repr__(&self) -> String {
        let region = self.get();
        format!("Region(address={:#x}, size={}, {} chunks)", region.address, region.size, region.chunks.len())
    }
}

/// A piece of a region, wholly in use or wholly free.
#[pyclass(frozen, eq, module = "allotment", skip_from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Chunk(ChunkSnapshot);

#[pymethods]
impl Chunk {
    /// First byte.
    #[getter]
    fn address(&self) -> u64 {
        self.0.address
    }

    /// Length in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.0.size
    }

    /// Bytes the caller asked for, 0 when free.
    #[getter]
    fn requested(&self) -> u64 {
        self.0.requested
    }

    /// Number of the allocation, 0 when free.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id
    }

    /// Whether an allocation holds it.
    #[getter]
    fn in_use(&self) -> bool {
        self.0.in_use
    }

    /// Whose allocation it is, after the scopes around it, if that is noted.
    #[getter]
    fn owner(&self) -> Option<&str> {
        self.0.owner.as_deref()
    }

    fn __repr__(&self) -> String {
        let ChunkSnapshot { address, size, requested, id, in_use, .. } = self.0;
        let in_use = if in_use { "True" } else { "False" };
        format!("Chunk(address={address:#x}, size={size}, requested={requested}, id={id}, in_use={in_use})")
    }
}

/// A region that a trim leaves, because something in it is in use.
#[pyclass(frozen, get_all, eq, module = "allotment", skip_from_py_object)]
#[derive(PartialEq)]
pub(crate) struct KeptRegion {
    /// First byte.
    address: u64,
    /// Length in bytes.
    size: u64,
    /// Bytes of its chunks in use.
    in_use: u64,
    /// Allocations in it.
    num_live: u64,
    /// Number of the largest of them.
    largest: u64,
    /// Whose that is, if it is noted.
    owner: Option<String>,
}

impl From<allotment::KeptRegion> for KeptRegion {
    fn from(kept: allotment::KeptRegion) -> Self {
        let allotment::KeptRegion { address, size, in_use, num_live, largest, owner } = kept;
        Self { address, size, in_use, num_live, largest, owner }
    }
}

#[pymethods]
impl KeptRegion {
    fn __repr__(&self) -> String {
        let Self { address, size, in_use, num_live, .. } = self;
        format!("KeptRegion(address={address:#x}, size={size}, in_use={in_use}, num_live={num_live})")
    }
}
