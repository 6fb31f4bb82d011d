//! The `Explanation` class and the details of a refusal: groups of allocations, and the splitter.

use allotment::{Details, OutOfMemory};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::fields::quoted;

use crate::advice::advice_of;

/// Allocations of one size, or of a range of sizes.
#[pyclass(frozen, get_all, eq, module = "allotment", skip_from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct SizeGroup {
    /// Total size of their chunks in bytes.
    bytes: u64,
    /// Number of allocations.
    count: u64,
    /// Size of the smallest chunk, in bytes.
    smallest: u64,
    /// Size of the largest chunk, in bytes.
    largest: u64,
}

/// Allocations of one owner.
#[pyclass(frozen, get_all, eq, module = "allotment", skip_from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct OwnerGroup {
    /// Requested bytes, rounded up to granules of 256.
    bytes: u64,
    /// Number of allocations.
    count: u64,
    /// The tag or scope, with the enclosing scopes.
    owner: String,
}

/// An allocation between two free chunks; its free would merge them.
#[pyclass(frozen, get_all, eq, module = "allotment", skip_from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Splitter {
    /// First byte of its chunk.
    address: u64,
    /// Size of its chunk in bytes.
    size: u64,
    /// Number of the allocation.
    id: u64,
    /// Its owner, if one is recorded.
    owner: Option<String>,
    /// Size of the free chunk before it, in bytes.
    before: u64,
    /// Size of the free chunk after it, in bytes.
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

/// Whether a request would be served, and if not, why.
#[pyclass(frozen, module = "allotment")]
pub(crate) struct Explanation(pub(crate) Option<Box<OutOfMemory>>);

#[pymethods]
impl Explanation {
    /// Whether it would be served now, provided the source grants what the limit allows.
    #[getter]
    fn fits(&self) -> bool {
        self.0.is_none()
    }

    /// The reason for a refusal, as in `OutOfMemoryError`; `"fits"` if it would be served.
    #[getter]
    fn verdict(&self) -> &'static str {
        self.0.as_ref().map_or("fits", |refused| refused.verdict.as_str())
    }

    /// The text of the refusal, in at most 25 lines.
    #[getter]
    fn text(&self) -> String {
        self.0.as_ref().map_or_else(|| "the request would be served".to_owned(), ToString::to_string)
    }

    /// The advice as one sentence; `None` if it would be served.
    #[getter]
    fn suggestion(&self) -> Option<String> {
        self.0.as_ref().map(|refused| refused.suggestion())
    }

    /// Changes that make the request succeed, the most useful first; empty if it would be served.
    #[getter]
    fn advice<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        advice_of(py, self.0.as_ref().map_or(&[][..], |refused| &refused.advice))
    }

    /// The size groups with the most bytes, in descending order.
    #[getter]
    fn by_size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        by_size(py, self.details())
    }

    /// The owners with the most bytes, in descending order.
    #[getter]
    fn by_owner<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        by_owner(py, self.details())
    }

    /// The allocation that splits the largest free chunks, if there is one.
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
