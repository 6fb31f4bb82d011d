//! Pieces of advice: changes that make a refused request succeed.

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

/// One change that makes a refused request succeed.
#[pyclass(frozen, get_all, eq, module = "allotment", skip_from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Advice {
    /// What to change.
    action: String,
    /// The number that belongs to the action, in bytes.
    bytes: u64,
    /// From when on it holds: `now` or `next run`.
    when: String,
    /// The advice in words.
    text: String,
    /// With `free`, the numbers of the allocations to free.
    allocations: Vec<u64>,
    /// With `raise_scope`, the scopes and their new limits; with `trim`, the other pools and what each hands back.
    targets: Vec<(String, u64)>,
    /// Whether no better number would do.
    exact: bool,
    /// Whether it holds only if the source grants more.
    needs_grant: bool,
}

/// The fields, in order.
type Fields = (String, u64, String, String, Vec<u64>, Vec<(String, u64)>, bool, bool);

#[pymethods]
impl Advice {
    #[new]
    #[pyo3(signature = (action, bytes, when, text, allocations = Vec::new(), targets = Vec::new(), exact = false,
        needs_grant = false),
        text_signature = "(action, bytes, when, text, allocations=(), targets=(), exact=False, needs_grant=False)")]
    #[expect(clippy::too_many_arguments, reason = "one for each field, by name")]
    fn new(
        action: String,
        bytes: u64,
        when: String,
        text: String,
        allocations: Vec<u64>,
        targets: Vec<(String, u64)>,
        exact: bool,
        needs_grant: bool,
    ) -> Self {
        Self { action, bytes, when, text, allocations, targets, exact, needs_grant }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, Fields) {
        let Self { action, bytes, when, text, allocations, targets, exact, needs_grant } = self.clone();
        (py.get_type::<Self>(), (action, bytes, when, text, allocations, targets, exact, needs_grant))
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        let Self { action, bytes, when, text, .. } = self;
        format!("Advice(action={action:?}, bytes={bytes}, when={when:?}, text={text:?})")
    }
}

impl Advice {
    fn new_from(advice: &allotment::Advice) -> Self {
        let allotment::Advice { action, bytes, when, allocations, targets, exact, needs_grant, .. } = advice;
        Self {
            action: action.as_str().to_owned(),
            bytes: *bytes,
            when: when.as_str().to_owned(),
            text: advice.to_string(),
            allocations: allocations.clone(),
            targets: targets.clone(),
            exact: *exact,
            needs_grant: *needs_grant,
        }
    }
}

/// The advice of a refusal, the most useful first.
pub(crate) fn advice_of<'py>(py: Python<'py>, advice: &[allotment::Advice]) -> PyResult<Bound<'py, PyTuple>> {
    let pieces = advice.iter().map(|piece| Bound::new(py, Advice::new_from(piece)));
    PyTuple::new(py, pieces.collect::<PyResult<Vec<_>>>()?)
}
