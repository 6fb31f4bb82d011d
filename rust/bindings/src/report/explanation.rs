//! The `Explanation` class and the details of a refusal: groups of allocations, and the splitter.

use allotment::{Details, OutOfMemory};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::report::fields::quoted;

use crate::report::advice::advice_of;

/// Live allocations whose chunks have one size, or a range of sizes.
#[pyclass(frozen, get_all, eq, module = "allotment", skip_from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct SizeGroup {
    /// Bytes of all their chunks.
    bytes: u64,
    /// Number of allocations.
    count: u64,
    /// Bytes of the smallest chunk.
    smallest: u64,
    /// Bytes of the largest chunk.
    largest: u64,
}

/// Live allocations of one owner.
#[pyclass(frozen, get_all, eq, module = "allotment", skip_from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct OwnerGroup {
    /// Bytes requested, each request in whole granules of 256.
    bytes: u64,
    /// Number of allocations.
    count: u64,
    /// The tag or scope, after the scopes around it.
    owner: String,
}

/// An allocation between two free chunks, which would be one chunk without it.
#[pyclass(frozen, get_all, eq, module = "allotment", skip_from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Splitter {
    /// First byte of its chunk.
    address: u64,
    /// Bytes of its chunk.
    size: u64,
    /// Number of the allocation.
    id: u64,
    /// Its owner; ``None`` in a pool without ``owner_tags``.
    owner: Option<String>,
    /// Bytes of the free chunk before it.
    before: u64,
    /// Bytes of the free chunk after it.
    after: u64,
}

#[pymethods]
impl SizeGroup {
    #[new]
    fn new(bytes: u64, count: u64, smallest: u64, largest: u64) -> Self {
        Self { bytes, count, smallest, largest }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (u64, u64, u64, u64)) {
        (py.get_type::<Self>(), (self.bytes, self.count, self.smallest, self.largest))
    }

    fn __repr__(&self) -> String {
        let Self { bytes, count, smallest, largest } = self;
        format!("SizeGroup(bytes={bytes}, count={count}, smallest={smallest}, largest={largest})")
    }
}

#[pymethods]
impl OwnerGroup {
    #[new]
    fn new(bytes: u64, count: u64, owner: String) -> Self {
        Self { bytes, count, owner }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (u64, u64, &str)) {
        (py.get_type::<Self>(), (self.bytes, self.count, &self.owner))
    }

    fn __repr__(&self) -> String {
        let Self { bytes, count, owner } = self;
        format!("OwnerGroup(bytes={bytes}, count={count}, owner={owner:?})")
    }
}

#[pymethods]
impl Splitter {
    #[new]
    fn new(address: u64, size: u64, id: u64, owner: Option<String>, before: u64, after: u64) -> Self {
        Self { address, size, id, owner, before, after }
    }

    #[expect(clippy::type_complexity, reason = "the fields, one after the other")]
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyType>, (u64, u64, u64, Option<&str>, u64, u64)) {
        let Self { address, size, id, before, after, ref owner } = *self;
        (py.get_type::<Self>(), (address, size, id, owner.as_deref(), before, after))
    }

    fn __repr__(&self) -> String {
        let Self { address, size, id, owner, before, after } = self;
        let owner = quoted(owner.as_deref());
        format!(
            "Splitter(address={address:#x}, size={size}, id={id}, owner={owner}, before={before}, after={after})"
        )
    }
}

/// Whether a request would be served, and if not, the reason: the result of ``Pool.explain``.
#[pyclass(frozen, module = "allotment")]
pub(crate) struct Explanation(pub(crate) Option<Box<OutOfMemory>>);

#[pymethods]
impl Explanation {
    /// Whether the request would be served now, provided the source grants what the limit allows.
    #[getter]
    fn fits(&self) -> bool {
        self.0.is_none()
    }

    /// The reason why it would be refused, as in ``OutOfMemoryError``; ``"fits"`` if it would be served.
    #[getter]
    fn verdict(&self) -> &'static str {
        self.0.as_ref().map_or("fits", |refused| refused.verdict.as_str())
    }

    /// The report that the refusal would have, at most 25 lines.
    #[getter]
    fn text(&self) -> String {
        self.0.as_ref().map_or_else(|| "the request would be served".to_owned(), ToString::to_string)
    }

    /// The advice in one sentence; ``None`` if the request would be served.
    #[getter]
    fn suggestion(&self) -> Option<String> {
        self.0.as_ref().map(|refused| refused.suggestion())
    }

    /// Changes that make the request succeed, the most useful first; empty if it would be served.
    #[getter]
    fn advice<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        advice_of(py, self.0.as_ref().map_or(&[][..], |refused| &refused.advice))
    }

    /// The allocations that take most, grouped by size, the largest first; at most four groups.
    #[getter]
    fn by_size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        by_size(py, self.details())
    }

    /// The owners that hold most, the largest first; at most four, empty in a pool without ``owner_tags``.
    #[getter]
    fn by_owner<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        by_owner(py, self.details())
    }

    /// The allocation between the largest free chunks, if there is one.
    #[getter]
    fn splitter(&self) -> Option<Splitter> {
        splitter(self.details())
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __repr__(&self) -> String {
        match self.suggestion() {
            Some(suggestion) => format!("<allotment.Explanation: {}: {suggestion}>", self.verdict()),
            None => format!("<allotment.Explanation: {}>", self.verdict()),
        }
    }
}

impl Explanation {
    fn details(&self) -> Option<&Details> {
        self.0.as_ref().and_then(|refused| refused.details.as_deref())
    }
}

pub(crate) fn by_size<'py>(py: Python<'py>, details: Option<&Details>) -> PyResult<Bound<'py, PyTuple>> {
    let groups = details.map_or(&[][..], |details| &details.by_size).iter().map(|group| {
        let allotment::SizeGroup { bytes, count, smallest, largest } = *group;
        Bound::new(py, SizeGroup { bytes, count, smallest, largest })
    });
    PyTuple::new(py, groups.collect::<PyResult<Vec<_>>>()?)
}

pub(crate) fn by_owner<'py>(py: Python<'py>, details: Option<&Details>) -> PyResult<Bound<'py, PyTuple>> {
    let groups = details.map_or(&[][..], |details| &details.by_owner).iter().map(|group| {
        let allotment::OwnerGroup { bytes, count, owner } = group.clone();
        Bound::new(py, OwnerGroup { bytes, count, owner })
    });
    PyTuple::new(py, groups.collect::<PyResult<Vec<_>>>()?)
}

pub(crate) fn splitter(details: Option<&Details>) -> Option<Splitter> {
    let allotment::Splitter { address, size, id, owner, before, after } = details?.splitter.clone()?;
    Some(Splitter { address, size, id, owner, before, after })
}
