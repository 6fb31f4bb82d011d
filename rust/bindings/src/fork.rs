//! Tells the core when this process is a forked child.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Registers with the interpreter's hook, where the system can fork at all.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    if let Some(register) = os.getattr_opt("register_at_fork")? {
        let hooks = PyDict::new(py);
        hooks.set_item("after_in_child", wrap_pyfunction!(entered_child, py)?)?;
        register.call((), Some(&hooks))?;
    }
    Ok(())
}

#[pyfunction]
fn entered_child() {
    allotment::fork::entered_child();
}
