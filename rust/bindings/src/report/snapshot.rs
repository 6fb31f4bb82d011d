//! The `Snapshot` class and its parts: immutable copies of a pool's regions and chunks.

use std::sync::Arc;

use allotment::{Bytes, ChunkSnapshot, RegionSnapshot};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::interpreter::detach;
use crate::report::fields::{Reduced, quoted, reduced};
use crate::report::stats::PoolStats;

/// The regions, chunks and counters of a pool at one moment: the result of ``Pool.snapshot``.
#[pyclass(frozen, eq, module = "allotment")]
#[derive(PartialEq)]
pub(crate) struct Snapshot(pub(crate) Arc<allotment::Snapshot>);

#[pymethods]
impl Snapshot {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "arguments are converted by value")]
    fn new(name: String, stats: &PoolStats, regions: Vec<PyRef<'_, Region>>) -> Self {
        let regions = regions.iter().map(|region| region.get().clone()).collect();
        Self(Arc::new(allotment::Snapshot { name, stats: stats.0, regions }))
    }

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

    /// The regions in address order.
    #[getter]
    fn regions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let region = |index| Region(Whole::Part(Arc::clone(&self.0), index));
        let regions = (0..self.0.regions.len()).map(|index| Bound::new(py, region(index)));
        PyTuple::new(py, regions.collect::<PyResult<Vec<_>>>()?)
    }

    /// Return a few lines of text: the totals and the largest groups of allocations.
    fn summary(&self) -> String {
        self.0.to_string()
    }

    /// Return all of it as one JSON object whose keys are the names of the fields.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        let json = detach(py, || serde_json::to_string(&*self.0));
        json.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Return the fields by name.
    #[pyo3(name = "_asdict")]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("name", self.name())?;
        fields.set_item("stats", self.stats())?;
        fields.set_item("regions", self.regions(py)?)?;
        Ok(fields)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        Ok(reduced::<Self>(&self.fields(py)?))
    }

    fn __repr__(&self) -> String {
        let allotment::Snapshot { name, stats, regions } = &*self.0;
        format!(
            "<allotment.Snapshot of {name:?}: {} in use, {} reserved in {} region{}, limit {}>",
            Bytes(stats.in_use),
            Bytes(stats.reserved),
            regions.len(),
            if regions.len() == 1 { "" } else { "s" },
            Bytes(stats.limit)
        )
    }
}

/// A span of memory from the source, or several that touched and were joined.
#[pyclass(frozen, eq, module = "allotment")]
pub(crate) struct Region(Whole);

/// The storage of a region's data.
enum Whole {
    /// Part of a snapshot, at this index.
    Part(Arc<allotment::Snapshot>, usize),
    /// Created on its own.
    Alone(RegionSnapshot),
}

impl PartialEq for Region {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Region {
    fn get(&self) -> &RegionSnapshot {
        match &self.0 {
            Whole::Part(snapshot, index) => &snapshot.regions[*index],
            Whole::Alone(region) => region,
        }
    }
}

#[pymethods]
impl Region {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "arguments are converted by value")]
    fn new(address: u64, size: u64, chunks: Vec<PyRef<'_, Chunk>>) -> Self {
        let chunks = chunks.iter().map(|chunk| chunk.0.clone()).collect();
        Self(Whole::Alone(RegionSnapshot { address, size, chunks }))
    }

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

    /// The chunks in address order; they cover the region without gaps.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let chunks = self.get().chunks.iter().map(|chunk| Bound::new(py, Chunk(chunk.clone())));
        PyTuple::new(py, chunks.collect::<PyResult<Vec<_>>>()?)
    }

    /// Return the fields by name.
    #[pyo3(name = "_asdict")]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("address", self.address())?;
        fields.set_item("size", self.size())?;
        fields.set_item("chunks", self.chunks(py)?)?;
        Ok(fields)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        Ok(reduced::<Self>(&self.fields(py)?))
    }

    fn __repr__(&self) -> String {
        let region = self.get();
        format!("Region(address={:#x}, size={}, {} chunks)", region.address, region.size, region.chunks.len())
    }
}

/// A part of a region, wholly in use or wholly free.
#[pyclass(frozen, eq, module = "allotment", skip_from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Chunk(ChunkSnapshot);

#[pymethods]
impl Chunk {
    #[new]
    fn new(address: u64, size: u64, requested: u64, id: u64, in_use: bool, owner: Option<String>) -> Self {
        Self(ChunkSnapshot { address, size, requested, id, in_use, owner: owner.map(Arc::from) })
    }

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

    /// Bytes that were requested, 0 if the chunk is free.
    #[getter]
    fn requested(&self) -> u64 {
        self.0.requested
    }

    /// Number of the allocation, 0 if the chunk is free.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id
    }

    /// Whether an allocation holds the chunk.
    #[getter]
    fn in_use(&self) -> bool {
        self.0.in_use
    }

    /// Owner of the allocation, after the scopes around it; ``None`` if none is recorded.
    #[getter]
    fn owner(&self) -> Option<&str> {
        self.0.owner.as_deref()
    }

    /// Return the fields by name.
    #[pyo3(name = "_asdict")]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("address", self.0.address)?;
        fields.set_item("size", self.0.size)?;
        fields.set_item("requested", self.0.requested)?;
        fields.set_item("id", self.0.id)?;
        fields.set_item("in_use", self.0.in_use)?;
        fields.set_item("owner", self.owner())?;
        Ok(fields)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        Ok(reduced::<Self>(&self.fields(py)?))
    }

    fn __repr__(&self) -> String {
        let ChunkSnapshot { address, size, requested, id, in_use, .. } = self.0;
        let in_use = if in_use { "True" } else { "False" };
        let owner = quoted(self.owner());
        format!(
            "Chunk(address={address:#x}, size={size}, requested={requested}, id={id}, in_use={in_use}, owner={owner})"
        )
    }
}

/// A region that a trim cannot give back, because an allocation in it is live.
#[pyclass(frozen, get_all, eq, module = "allotment", skip_from_py_object)]
#[derive(PartialEq)]
pub(crate) struct KeptRegion {
    /// First byte.
    address: u64,
    /// Length in bytes.
    size: u64,
    /// Bytes of its chunks in use.
    in_use: u64,
    /// Number of live allocations in it.
    num_live: u64,
    /// Number (``Allocation.id``) of the largest of them.
    largest: u64,
    /// Owner of the largest of them; ``None`` if none is recorded.
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
    #[new]
    fn new(address: u64, size: u64, in_use: u64, num_live: u64, largest: u64, owner: Option<String>) -> Self {
        Self { address, size, in_use, num_live, largest, owner }
    }

    /// Return the fields by name.
    #[pyo3(name = "_asdict")]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("address", self.address)?;
        fields.set_item("size", self.size)?;
        fields.set_item("in_use", self.in_use)?;
        fields.set_item("num_live", self.num_live)?;
        fields.set_item("largest", self.largest)?;
        fields.set_item("owner", self.owner.as_deref())?;
        Ok(fields)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        Ok(reduced::<Self>(&self.fields(py)?))
    }

    fn __repr__(&self) -> String {
        let Self { address, size, in_use, num_live, largest, owner } = self;
        let owner = quoted(owner.as_deref());
        format!(
            "KeptRegion(address={address:#x}, size={size}, in_use={in_use}, num_live={num_live}, largest={largest}, \
             owner={owner})"
        )
    }
}
