//! Values in messages: escaped, so that none can change what a terminal shows, and cut, so that none buries the text.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

/// The most characters of a value that a message shows.
const MOST: usize = 200;

/// A text as messages show it: characters that do not print as escapes, cut at 200 characters.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn show_text(text: &Bound<'_, PyString>) -> PyResult<String> {
    let printable: bool = text.call_method0("isprintable")?.extract()?;
    if printable {
        return Ok(cut(text.to_str()?));
    }
    let quoted = text.repr()?;
    let quoted = quoted.to_str()?;
    // `repr` escapes whatever does not print. Both quotes are ASCII.
    Ok(cut(&quoted[1..quoted.len() - 1]))
}

/// A value as messages show it: its `repr`, with characters that do not print as escapes, cut at 200 characters.
#[pyfunction]
#[pyo3(signature = (value, /))]
pub(crate) fn show_value(value: &Bound<'_, PyAny>) -> String {
    let shown = value.repr().or_else(|error| {
        // Python refuses to write a whole number of more than 4300 digits, and an object may refuse anything.
        if !value.is_instance_of::<PyInt>() {
            return Err(error);
        }
        Ok(value.call_method1("__format__", ("#x",))?.cast_into()?)
    });
    shown.and_then(|text| show_text(&text)).unwrap_or_else(|_| unprintable(value))
}

/// What is shown of an object whose `repr` fails.
fn unprintable(value: &Bound<'_, PyAny>) -> String {
    let kind = value.get_type().name().map_or_else(|_| "unknown".to_owned(), |name| name.to_string());
    format!("<{kind} object that cannot be printed>")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}... ({} characters)", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}
