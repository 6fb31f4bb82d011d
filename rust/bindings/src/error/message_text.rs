//! Values in messages: escaped, so that they cannot control a terminal, and truncated.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

/// The most characters of a value that a message shows.
const MAX_SHOWN: usize = 200;

/// Return a text with an escape for every unprintable character, such as a newline in a file name.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn one_line(text: &Bound<'_, PyString>) -> PyResult<String> {
    if is_printable(text)? {
        return Ok(text.to_str()?.to_owned());
    }
    let mut escaped = String::new();
    for character in text.try_iter()? {
        let character = character?.cast_into::<PyString>()?;
        if is_printable(&character)? {
            escaped.push_str(character.to_str()?);
        } else {
            escaped.push_str(without_quotes(character.repr()?.to_str()?));
        }
    }
    Ok(escaped)
}

/// Return a text as messages show it: unprintable characters as escapes, cut at 200 characters.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn show_text(text: &Bound<'_, PyString>) -> PyResult<String> {
    if is_printable(text)? {
        return Ok(truncate(text.to_str()?));
    }
    Ok(truncate(without_quotes(text.repr()?.to_str()?)))
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

fn is_printable(text: &Bound<'_, PyString>) -> PyResult<bool> {
    text.call_method0("isprintable")?.extract()
}

/// Returns what is between the quotes of a `repr`, which are ASCII. Its unprintable characters are escapes.
fn without_quotes(repr: &str) -> &str {
    &repr[1..repr.len() - 1]
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
