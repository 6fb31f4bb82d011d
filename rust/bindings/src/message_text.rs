//! Values in messages: escaped, so that they cannot control a terminal, and truncated.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

/// The most characters of a value that a message shows.
const MAX_SHOWN: usize = 200;

/// Return a text as messages show it: unprintable characters as escapes, cut at 200 characters.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn show_text(text: &Bound<'_, PyString>) -> PyResult<String> {
    let printable: bool = text.call_method0("isprintable")?.extract()?;
    if printable {
        return Ok(truncate(text.to_str()?));
    }
    let quoted = text.repr()?;
    let quoted = quoted.to_str()?;
    // `repr` escapes unprintable characters. Both quotes are ASCII.
    Ok(truncate(&quoted[1..quoted.len() - 1]))
}

/// Return a value as messages show it: its ``repr``, unprintable characters as escapes, cut at 200 characters.
#[pyfunction]
#[pyo3(signature = (value, /))]
pub(crate) fn show_value(value: &Bound<'_, PyAny>) -> String {
    let shown = value.repr().or_else(|error| {
        // Python refuses to format integers of more than 4300 digits, and any object's `repr` may fail.
        if !value.is_instance_of::<PyInt>() {
            return Err(error);
        }
        Ok(value.call_method1("__format__", ("#x",))?.cast_into()?)
    });
    shown.and_then(|text| show_text(&text)).unwrap_or_else(|_| unprintable(value))
}

/// Returns a text for an object whose `repr` fails.
fn unprintable(value: &Bound<'_, PyAny>) -> String {
    let kind = value.get_type().name().map_or_else(|_| "unknown".to_owned(), |name| name.to_string());
    format!("<{kind} object that cannot be printed>")
}

fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}... ({} characters)", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}
