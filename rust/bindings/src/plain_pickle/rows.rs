//! The `PickledRows` class: a list of a pickle, with its items as columns.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::document::{Data, Document, Kind, Lookup, Value};
use super::objects::{Objects, python_text};
use super::stacks::PickledStacks;

/// Rows between two checks for signals.
const SIGNAL_ROWS: usize = 1 << 16;

/// A list in a pickle of plain data, with a column for each key of its dictionaries.
///
/// Items are made when they are asked for.
#[pyclass(frozen, sequence, module = "allotment")]
pub(crate) struct PickledRows {
    pub(super) document: Arc<Document>,
    pub(super) content: Py<PyBytes>,
    /// The number of the list.
    pub(super) list: usize,
}

#[pymethods]
impl PickledRows {
    fn __len__(&self) -> usize {
        self.rows().len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let row = self
            .rows()
            .get(index)
            .ok_or_else(|| PyIndexError::new_err(format!("there is no row {index}")))?;
        Objects::new(py, &self.document, self.content.as_bytes(py), HashMap::new()).object(*row)
    }

    /// Return the integers under a key.
    ///
    /// Args:
    ///     key: The key.
    ///     most: The largest integer that the column takes; the smallest is 0.
    ///
    /// Returns:
    ///     Unsigned integers of 64 bits, one a row, and a byte each: 1 where the row has such an integer, 0 otherwise.
    #[pyo3(signature = (key, /, most))]
    fn integers<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        most: u64,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let content = self.content.as_bytes(py);
        let (mut numbers, mut is_there) = (self.column(8)?, self.column(1)?);
        self.each(py, key, |value| {
            let number = match value.map(Value::kind) {
                Some(Kind::Int(number)) => u64::try_from(number).ok(),
                Some(Kind::Data(at)) => match Data::at(content, at) {
                    Data::Int(number) => u64::try_from(number).ok(),
                    _ => None,
                },
                _ => None,
            };
            let number = number.filter(|&number| number <= most);
            numbers.extend_from_slice(&number.unwrap_or(0).to_ne_bytes());
            is_there.push(u8::from(number.is_some()));
            Ok(())
        })?;
        Ok((PyBytes::new(py, &numbers), PyBytes::new(py, &is_there)))
    }

    /// Return the texts under a key.
    ///
    /// Args:
    ///     key: The key.
    ///
    /// Returns:
    ///     A number for each row, signed of 32 bits: an index of the texts, -1 where the row has no text under the key.
    ///     And the texts, each once.
    #[pyo3(signature = (key, /))]
    fn texts<'py>(
        &self,
        py: Python<'py>,
        key: &str,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<Bound<'py, PyAny>>)> {
        let content = self.content.as_bytes(py);
        let mut numbers = self.column(4)?;
        let mut known: HashMap<&[u8], i32> = HashMap::new();
        let mut texts = Vec::new();
        self.each(py, key, |value| {
            let mut number = -1;
            if let Some(Kind::Data(at)) = value.map(Value::kind)
                && let Data::Text(text) = Data::at(content, at)
            {
                let next = i32::try_from(known.len())?;
                number = *known.entry(text).or_insert(next);
                if number == next {
                    texts.push(python_text(py, text)?);
                }
            }
            numbers.extend_from_slice(&number.to_ne_bytes());
            Ok(())
        })?;
        Ok((PyBytes::new(py, &numbers), texts))
    }

    /// Number the stacks under a key, each a list of frames.
    ///
    /// Args:
    ///     key: The key.
    ///     stacks: Receives the stacks.
    ///     only: A byte for each row: 0 where its stack does not count.
    ///
    /// Returns:
    ///     A number for each row, signed of 32 bits: an index of ``stacks``, -1 where there is no stack.
    #[pyo3(signature = (key, /, stacks, only))]
    fn stacks<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        stacks: &PickledStacks,
        only: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut found = stacks.lock();
        let mut reader = found.reader(&self.document, self.content.as_bytes(py));
        let mut numbers = self.column(4)?;
        let mut counts = only.iter();
        self.each(py, key, |value| {
            let number = match value.map(Value::kind) {
                Some(Kind::List(list)) if counts.next().is_some_and(|&counts| counts != 0) => {
                    reader.number(list)?
                }
                Some(Kind::List(_)) => -1,
                _ => {
                    counts.next();
                    -1
                }
            };
            numbers.extend_from_slice(&number.to_ne_bytes());
            Ok(())
        })?;
        Ok(PyBytes::new(py, &numbers))
    }
}

impl PickledRows {
    fn rows(&self) -> &[Value] {
        self.document.items(self.list)
    }

    /// Returns room for a column of numbers of so many bytes.
    fn column(&self, width: usize) -> PyResult<Vec<u8>> {
        let mut column = Vec::new();
        let room = column.try_reserve_exact(width * self.rows().len());
        room.map_err(|_| PyMemoryError::new_err("a column does not fit into memory"))?;
        Ok(column)
    }

    /// Calls a function with the value under a key of each row.
    fn each(
        &self,
        py: Python<'_>,
        key: &str,
        mut call: impl FnMut(Option<Value>) -> PyResult<()>,
    ) -> PyResult<()> {
        let lookup = Lookup::new(&self.document, self.content.as_bytes(py), key);
        for (place, row) in self.rows().iter().enumerate() {
            call(match row.kind() {
                Kind::Dict(number) => lookup.get(number),
                _ => None,
            })?;
            if place % SIGNAL_ROWS == 0 {
                py.check_signals()?;
            }
        }
        Ok(())
    }
}
