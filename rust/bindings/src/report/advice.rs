//! The `Advice` class: one change that makes a refused request succeed.

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

/// One change that makes a refused request succeed; ``str()`` of it is one sentence.
///
/// ===============  =============================================================================
/// ``action``       the change, and the meaning of ``bytes``
/// ===============  =============================================================================
/// ``free``         free all of ``allocations``; the bytes of their chunks
/// ``raise_limit``  set the pool's limit to ``bytes``, or start the program again with that limit
/// ``ask_for``      request ``bytes`` bytes instead
/// ``trim``         trim the pool, or the pools in ``targets`` on the same memory; the bytes that go back
/// ``raise_scope``  set the limit of each scope in ``targets`` to the number there; the largest of them
/// ``policy``       start the program again with ``policy="tight"``; bytes lost inside chunks now
/// ``elastic``      start the program again with ``elastic=True`` and pages of ``bytes`` bytes
/// ===============  =============================================================================
#[pyclass(frozen, get_all, eq, module = "allotment", skip_from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Advice {
    /// The change: ``free``, ``raise_limit``, ``ask_for``, ``trim``, ``raise_scope``, ``policy`` or ``elastic``.
    action: String,
    /// The number of bytes that belongs to the action.
    bytes: u64,
    /// ``now`` for a change of the pool as it is, ``next run`` for one before the program starts again.
    when: String,
    /// The advice as one line of text.
    text: String,
    /// The ids of the allocations to free, ascending; empty unless the action is ``free``.
    allocations: Vec<u64>,
    /// Names and bytes that belong to the action; empty unless it is ``raise_scope`` or ``trim``.
    ///
    /// With ``raise_scope``, the scopes and their new limits, the outermost first. With ``trim``, other pools and
    /// the bytes that each gives back.
    targets: Vec<(String, u64)>,
    /// Whether the number is the best one: no smaller limit serves, no larger size is served.
    exact: bool,
    /// Whether the advice holds only if the source grants more, where the pool cannot know that.
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
