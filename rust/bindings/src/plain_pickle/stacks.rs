//! The `PickledStacks` class: stacks of a snapshot as numbers, and their texts.

use std::hash::{BuildHasher, Hash};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::{DefaultHashBuilder, HashTable};
use pyo3::exceptions::{PyIndexError, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::document::{Data, Document, Kind, Lookup, Value};
use super::objects::python_text;

/// Frames of a stack that its text has; the innermost ones.
const MAX_FRAMES: usize = 40;

/// Dictionaries of frames that are looked up without reading their texts.
const CACHED_FRAMES: usize = 1 << 14;

/// Stacks, each a list of frames: dictionaries with ``filename``, ``line`` and ``name``.
///
/// As a sequence it has the text of each stack: a frame in each line, ``file:line name``, the innermost first. Texts
/// are made when they are asked for.
#[pyclass(frozen, sequence, module = "allotment")]
#[derive(Default)]
pub(crate) struct PickledStacks(Mutex<Interned>);

#[pymethods]
impl PickledStacks {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        self.lock().stacks.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let text = self.lock().text(index);
        let text = text.ok_or_else(|| PyIndexError::new_err(format!("there is no stack {index}")))?;
        python_text(py, &text)
    }

    /// Return the number of a stack, -1 if there is none.
    ///
    /// Args:
    ///     frames: A list of dictionaries; anything else is no stack.
    #[pyo3(signature = (frames, /))]
    fn number(&self, frames: &Bound<'_, PyAny>) -> PyResult<i32> {
        let Ok(frames) = frames.cast::<PyList>() else { return Ok(-1) };
        let mut texts = Vec::new();
        for frame in frames.iter().take(MAX_FRAMES) {
            if let Ok(frame) = frame.cast::<PyDict>() {
                let part = |key: &str| frame.get_item(key)?.map_or(Ok(Vec::new()), |value| part_of(&value));
                texts.push(frame_text(&part("filename")?, &part("line")?, &part("name")?));
            }
        }
        let mut found = self.lock();
        let mut stack = Vec::new();
        for text in texts {
            stack.push(found.frames.number(&text)?);
        }
        found.number(stack, frames.len())
    }
}

impl PickledStacks {
    pub(super) fn lock(&self) -> MutexGuard<'_, Interned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a part of a frame: a text or an integer, as text.
fn part_of(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = value.cast::<PyString>() {
        return text.call_method1("encode", ("utf-8", "surrogatepass"))?.extract();
    }
    Ok(value.extract::<i128>().map_or(Vec::new(), |number| number.to_string().into_bytes()))
}

fn frame_text(file: &[u8], line: &[u8], name: &[u8]) -> Vec<u8> {
    match (file, name) {
        ([], name) => name.to_vec(),
        (file, []) => [file, b":", line].concat(),
        (file, name) => [file, b":", line, b" ", name].concat(),
    }
}

/// Frames by their texts, and stacks by the numbers of their frames.
#[derive(Default)]
pub(super) struct Interned {
    frames: Interner<u8>,
    stacks: Interner<u32>,
}

impl Interned {
    /// Returns the number of a stack of `length` frames, the first of which are given.
    fn number(&mut self, mut frames: Vec<u32>, length: usize) -> PyResult<i32> {
        let more = length.saturating_sub(MAX_FRAMES);
        if more > 0 {
            // No other stack has as many numbers as this one with the number of frames that are left out.
            frames.resize(MAX_FRAMES, u32::MAX);
            frames.push(u32::try_from(more).unwrap_or(u32::MAX));
        }
        let is_empty = match frames[..] {
            [] => true,
            [frame] => self.frames.get(frame as usize).is_some_and(<[_]>::is_empty),
            _ => false,
        };
        if is_empty { Ok(-1) } else { Ok(i32::try_from(self.stacks.number(&frames)?)?) }
    }

    fn text(&self, stack: usize) -> Option<Vec<u8>> {
        let numbers = self.stacks.get(stack)?;
        let (frames, more) = numbers.split_at(numbers.len().min(MAX_FRAMES));
        let mut lines: Vec<_> =
            frames.iter().filter_map(|&frame| self.frames.get(frame as usize)).map(<[_]>::to_vec).collect();
        lines.extend(more.iter().map(|more| format!("and {more} more").into_bytes()));
        Some(lines.join(&b'\n'))
    }

    pub(super) fn reader<'found, 'document>(
        &'found mut self,
        document: &'document Document,
        content: &'document [u8],
    ) -> StackReader<'found, 'document> {
        StackReader {
            found: self,
            document,
            content,
            parts: ["filename", "line", "name"].map(|key| Lookup::new(document, content, key)),
            cache: vec![(usize::MAX, 0); CACHED_FRAMES],
        }
    }
}

/// Numbers the stacks of a document.
pub(super) struct StackReader<'found, 'document> {
    found: &'found mut Interned,
    document: &'document Document,
    content: &'document [u8],
    parts: [Lookup<'document>; 3],
    /// Dictionaries and the numbers of their frames: PyTorch makes one dictionary for each frame.
    cache: Vec<(usize, u32)>,
}

impl StackReader<'_, '_> {
    /// Returns the number of the stack in a list, -1 if there is none.
    pub(super) fn number(&mut self, list: usize) -> PyResult<i32> {
        let items = self.document.items(list);
        let mut frames = Vec::with_capacity(MAX_FRAMES + 1);
        for item in items.iter().take(MAX_FRAMES) {
            if let Kind::Dict(dict) = item.kind() {
                frames.push(self.frame(dict)?);
            }
        }
        self.found.number(frames, items.len())
    }

    fn frame(&mut self, dict: usize) -> PyResult<u32> {
        let place = dict % CACHED_FRAMES;
        if self.cache[place].0 != dict {
            let [file, line, name] = [0, 1, 2].map(|part| self.part(self.parts[part].get(dict)));
            self.cache[place] = (dict, self.found.frames.number(&frame_text(&file, &line, &name))?);
        }
        Ok(self.cache[place].1)
    }

    fn part(&self, value: Option<Value>) -> Vec<u8> {
        match value.map(Value::kind) {
            Some(Kind::Int(number)) => number.to_string().into_bytes(),
            Some(Kind::Data(at)) => match Data::at(self.content, at) {
                Data::Text(text) => text.to_vec(),
                Data::Int(number) => number.to_string().into_bytes(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

/// Sequences by number, each kept once, one behind the other.
struct Interner<T> {
    items: Vec<T>,
    /// Where each sequence ends.
    ends: Vec<usize>,
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        let hasher = DefaultHashBuilder::default();
        Self { items: Vec::new(), ends: Vec::new(), numbers: HashTable::new(), hasher }
    }
}

impl<T: Copy + Eq + Hash> Interner<T> {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, number: usize) -> Option<&[T]> {
        let start = number.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
        self.ends.get(number).map(|&end| &self.items[start..end])
    }

    /// Returns the number of a sequence, which is added if it is new.
    fn number(&mut self, sequence: &[T]) -> PyResult<u32> {
        let hash = self.hasher.hash_one(sequence);
        if let Some(&known) = self.numbers.find(hash, |&known| self.get(known as usize) == Some(sequence)) {
            return Ok(known);
        }
        let number = u32::try_from(self.ends.len())?;
        let (items, ends, hasher) = (&mut self.items, &mut self.ends, &self.hasher);
        let room = items.try_reserve(sequence.len()).is_ok() && ends.try_reserve(1).is_ok();
        let rehash = |&number: &u32| {
            let number = number as usize;
            let start = number.checked_sub(1).map_or(0, |before| ends[before]);
            hasher.hash_one(&items[start..ends[number]])
        };
        if !room || self.numbers.try_reserve(1, rehash).is_err() {
            return Err(PyMemoryError::new_err("the stacks do not fit into memory"));
        }
        self.numbers.insert_unique(hash, number, rehash);
        items.extend_from_slice(sequence);
        ends.push(items.len());
        Ok(number)
    }
}
