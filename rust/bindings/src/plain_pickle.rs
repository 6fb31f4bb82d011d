//! A reader of pickles that hold plain data: it builds containers, numbers and texts, and never looks up a name.
//!
//! Opcodes are those of Python's `pickletools`, protocols 2 to 5. Every other opcode is refused, with its position.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::interpreter::detach;

mod document;
mod machine;
mod objects;
mod opcodes;
pub(crate) mod rows;
pub(crate) mod stacks;

use document::{Document, Fault, Kind};
use machine::Machine;
use objects::Objects;
use rows::PickledRows;

/// Instructions between two checks for signals.
const SIGNAL_STEPS: usize = 1 << 20;

/// Read a pickle of plain data. Nothing in it is executed or imported.
///
/// Plain data are ``None``, booleans, numbers, texts, bytes, lists, tuples, and dictionaries whose keys are texts or
/// integers.
///
/// Args:
///     data: The pickle, protocol 2 to 5. Bytes behind its end are ignored.
///     rows: A key of the outermost dictionary, which has a list of lists there. Each of these becomes a
///         :class:`PickledRows`, which takes less memory than objects do.
///
/// Raises:
///     ValueError: It asks for anything else, or is damaged or truncated; the text starts with ``byte N:``.
#[pyfunction]
#[pyo3(signature = (data, /, rows = None))]
pub(crate) fn read_plain_pickle<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyBytes>,
    rows: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let content = data.as_bytes();
    let mut machine = Machine::new(content);
    while !detach(py, || machine.run(SIGNAL_STEPS)).map_err(into_error)? {
        py.check_signals()?;
    }
    let document = Arc::new(machine.into_document());
    let mut made = HashMap::new();
    for list in rows.map_or(Vec::new(), |key| lists_under(&document, content, key)) {
        let rows = PickledRows { document: Arc::clone(&document), content: data.clone().unbind(), list };
        made.insert(list, Bound::new(py, rows)?.into_any());
    }
    Objects::new(py, &document, content, made).object(document.root)
}

/// Returns the lists in the list under a key of the outermost dictionary.
fn lists_under(document: &Document, content: &[u8], key: &str) -> Vec<usize> {
    let Kind::Dict(outer) = document.root.kind() else { return Vec::new() };
    let Some(Kind::List(lists)) = document.get(content, outer, key).map(document::Value::kind) else {
        return Vec::new();
    };
    let lists = document.items(lists).iter().filter_map(|item| match item.kind() {
        Kind::List(list) => Some(list),
        _ => None,
    });
    lists.collect()
}

fn into_error(fault: Fault) -> PyErr {
    match fault {
        Fault::At(byte, problem) => PyValueError::new_err(format!("byte {byte}: {problem}")),
        Fault::NoMemory => PyMemoryError::new_err("what the pickle holds does not fit into memory"),
    }
}
