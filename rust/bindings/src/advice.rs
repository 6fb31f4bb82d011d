//! The `Advice` class: one change that makes a refused request succeed.

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

/// One change that makes a refused request succeed.
#[pyclass(frozen, get_all, eq, module = "allotment", skip_from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Advice {
    /// The kind of change.
    action: String,
    /// The number of the action, in bytes.
    bytes: u64,
    /// The time from which the advice applies: `now` or `next run`.
    when: String,
    /// The advice as a sentence.
    text: String,
    /// For `free`, the numbers of the allocations to free.
    allocations: Vec<u64>,
    /// For `raise_scope`, the scopes and their new limits; for `trim`, the other pools and the bytes that each
    /// releases.
    targets: Vec<(String, u64)>,
    /// Whether the number is known to be optimal.
    exact: bool,
    /// Whether the advice requires a grant that the source does not guarantee.
    needs_grant: bool,
}

/// The fields in order.
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

/// Converts the advice of a refusal, the most useful first.
pub(crate) fn advice_of<'py>(py: Python<'py>, advice: &[allotment::Advice]) -> PyResult<Bound<'py, PyTuple>> {
    let pieces = advice.iter().map(|piece| Bound::new(py, Advice::new_from(piece)));
    PyTuple::new(py, pieces.collect::<PyResult<Vec<_>>>()?)
}
