//! Python objects of what a pickle holds.

use std::collections::{HashMap, HashSet};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::document::{Data, Document, Kind, Value};

/// Makes objects. An object that is referred to twice is made once.
pub(super) struct Objects<'py, 'document> {
    py: Python<'py>,
    document: &'document Document,
    content: &'document [u8],
    /// The objects of containers, by number.
    made: HashMap<usize, Bound<'py, PyAny>>,
}

impl<'py, 'document> Objects<'py, 'document> {
    /// `made` has the objects of containers that are made already.
    pub(super) fn new(
        py: Python<'py>,
        document: &'document Document,
        content: &'document [u8],
        made: HashMap<usize, Bound<'py, PyAny>>,
    ) -> Self {
        Self { py, document, content, made }
    }

    /// Returns the object of a value. Values may be nested to any depth.
    pub(super) fn object(&mut self, value: Value) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let new = self.reached(value);
        // What a tuple holds was made before it; lists and dictionaries may hold what was made later.
        for &value in &new {
            let (number, object) = match value.kind() {
                Kind::List(number) => (number, PyList::empty(py).into_any()),
                Kind::Dict(number) => (number, PyDict::new(py).into_any()),
                Kind::Tuple(number) => (number, PyTuple::new(py, self.items(number)?)?.into_any()),
                _ => continue,
            };
            self.made.insert(number, object);
        }
        for value in new {
            match value.kind() {
                Kind::List(number) => {
                    let list = self.made[&number].cast::<PyList>()?;
                    for &item in self.document.items(number) {
                        list.append(self.known(item)?)?;
                    }
                }
                Kind::Dict(number) => {
                    let dict = self.made[&number].cast::<PyDict>()?;
                    for (key, value) in self.document.pairs(number) {
                        dict.set_item(self.known(key)?, self.known(value)?)?;
                    }
                }
                _ => {}
            }
        }
        self.known(value)
    }

    /// Returns all containers that a value holds and that are not made, in the order in which the pickle made them.
    fn reached(&self, value: Value) -> Vec<Value> {
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        let mut waiting = vec![value];
        while let Some(value) = waiting.pop() {
            let (Kind::List(number) | Kind::Tuple(number) | Kind::Dict(number)) = value.kind() else {
                continue;
            };
            if self.made.contains_key(&number) || !seen.insert(number) {
                continue;
            }
            found.push((number, value));
            match value.kind() {
                Kind::Dict(_) => waiting.extend(self.document.pairs(number).map(|(_, value)| value)),
                _ => waiting.extend(self.document.items(number)),
            }
        }
        found.sort_unstable_by_key(|(number, _)| *number);
        found.into_iter().map(|(_, value)| value).collect()
    }

    fn items(&self, number: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.document.items(number).iter().map(|&item| self.known(item)).collect()
    }

    /// Returns the object of a value, which is made already if it is a container.
    fn known(&self, value: Value) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match value.kind() {
            Kind::None => py.None().into_bound(py),
            Kind::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
            Kind::Int(number) => PyInt::new(py, number).into_any(),
            Kind::Data(at) => match Data::at(self.content, at) {
                Data::Int(number) => number.into_pyobject(py)?.into_any(),
                Data::Float(number) => PyFloat::new(py, number).into_any(),
                Data::Text(text) => python_text(py, text)?,
                Data::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
            },
            Kind::List(number) | Kind::Tuple(number) | Kind::Dict(number) => self.made[&number].clone(),
        })
    }
}

/// Returns the object of a text that was checked.
pub(super) fn python_text<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match std::str::from_utf8(text) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => PyBytes::new(py, text).call_method1("decode", ("utf-8", "surrogatepass")),
    }
}
