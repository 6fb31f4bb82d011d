//! A reader of pickles that hold plain data: it builds containers, numbers and texts, and never looks up a name.
//!
//! Opcodes are those of Python's `pickletools`, protocols 2 to 5. Every other opcode is refused, with its position.
//!
//! Longer than 300 lines: the opcodes of one format.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

mod opcodes;

use opcodes::{Opcode, refused_name};

/// Opcodes between two checks for signals.
const SIGNAL_STEPS: usize = 1 << 20;

/// The longest integer that is read, in bytes.
const MAX_INT_BYTES: usize = 16;

/// Read a pickle of plain data. Nothing in it is executed or imported.
///
/// Plain data are ``None``, booleans, numbers, texts, bytes, lists, tuples, and dictionaries whose keys are texts or
/// integers.
///
/// Args:
///     data: The pickle, protocol 2 to 5. Bytes behind its end are ignored.
///
/// Raises:
///     ValueError: It asks for anything else, or is damaged or truncated; the text starts with ``byte N:``.
#[pyfunction]
#[pyo3(signature = (data, /))]
pub(crate) fn read_plain_pickle<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    Machine { py, data, at: 0, start: 0, stack: Vec::new(), marks: Vec::new(), memo: HashMap::new() }.run()
}

/// The reader's position in the pickle, and the values that it has built so far.
struct Machine<'py, 'data> {
    py: Python<'py>,
    data: &'data [u8],
    /// The next byte to read.
    at: usize,
    /// The first byte of the current instruction.
    start: usize,
    stack: Vec<Bound<'py, PyAny>>,
    /// Lengths of the stack at the marks.
    marks: Vec<usize>,
    memo: HashMap<u64, Bound<'py, PyAny>>,
}

impl<'py> Machine<'py, '_> {
    fn run(mut self) -> PyResult<Bound<'py, PyAny>> {
        for step in 1.. {
            self.start = self.at;
            let [code] = self.array()?;
            match Opcode::of(code) {
                Some(Opcode::Stop) => return self.pop(),
                Some(opcode) => self.step(opcode)?,
                None => return Err(self.refuse(code)),
            }
            if step % SIGNAL_STEPS == 0 {
                self.py.check_signals()?;
            }
        }
        unreachable!("the data end before the steps do")
    }

    fn step(&mut self, opcode: Opcode) -> PyResult<()> {
        let py = self.py;
        let value: Bound<'py, PyAny> = match opcode {
            Opcode::Proto => return self.protocol(),
            Opcode::Frame => {
                // The length of a frame helps readers of streams only.
                let [..] = self.array::<8>()?;
                return Ok(());
            }
            Opcode::Stop => return Ok(()),
            Opcode::Mark => {
                self.marks.push(self.stack.len());
                return Ok(());
            }
            Opcode::Pop => return self.pop().map(drop),
            Opcode::PopMark => return self.since_mark().map(drop),
            Opcode::Append | Opcode::Appends => return self.append(opcode),
            Opcode::SetItem | Opcode::SetItems => return self.set_items(opcode),
            Opcode::Memoize | Opcode::Put { .. } => return self.remember(opcode),
            Opcode::Get { wide } => {
                let index = if wide { self.unsigned::<4>()? } else { self.unsigned::<1>()? };
                let value = self.memo.get(&index).cloned();
                value.ok_or_else(|| self.fault(&format!("refers to object {index}, which is not there")))?
            }
            Opcode::Duplicate => self.top()?.clone(),
            Opcode::None => py.None().into_bound(py),
            Opcode::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
            Opcode::Unsigned { bytes: 1 } => int(py, i128::from(self.unsigned::<1>()?))?,
            Opcode::Unsigned { .. } => int(py, i128::from(self.unsigned::<2>()?))?,
            Opcode::Int => {
                let number = i32::from_le_bytes(self.array()?);
                int(py, i128::from(number))?
            }
            Opcode::Long { wide } => self.long(wide)?,
            Opcode::Float => PyFloat::new(py, f64::from_be_bytes(self.array()?)).into_any(),
            Opcode::Text { bytes } => {
                let content = self.sized(bytes)?;
                // Python writes the halves of surrogate pairs as it keeps them.
                let text = PyBytes::new(py, content).call_method1("decode", ("utf-8", "surrogatepass"));
                match std::str::from_utf8(content) {
                    Ok(text) => PyString::new(py, text).into_any(),
                    Err(_) => text.map_err(|_| self.fault("holds a text that is not UTF-8"))?,
                }
            }
            Opcode::Bytes { bytes } => {
                let content = self.sized(bytes)?;
                PyBytes::new(py, content).into_any()
            }
            Opcode::EmptyList => PyList::empty(py).into_any(),
            Opcode::List => {
                let items = self.since_mark()?;
                PyList::new(py, items)?.into_any()
            }
            Opcode::EmptyTuple => PyTuple::empty(py).into_any(),
            Opcode::Tuple => {
                let items = self.since_mark()?;
                PyTuple::new(py, items)?.into_any()
            }
            Opcode::TupleOf(length) => {
                let first = self.stack.len().checked_sub(length).filter(|&first| first >= self.floor());
                let first = first.ok_or_else(|| self.fault("takes more values than there are"))?;
                PyTuple::new(py, self.stack.split_off(first))?.into_any()
            }
            Opcode::EmptyDict => PyDict::new(py).into_any(),
            Opcode::Dict => {
                let items = self.since_mark()?;
                let dict = PyDict::new(py);
                self.fill(&dict, &items)?;
                dict.into_any()
            }
        };
        self.stack.push(value);
        Ok(())
    }

    fn protocol(&mut self) -> PyResult<()> {
        match self.unsigned::<1>()? {
            2..=5 => Ok(()),
            other => Err(self.fault(&format!("is a pickle of protocol {other}; 2 to 5 are read"))),
        }
    }

    fn long(&mut self, wide: bool) -> PyResult<Bound<'py, PyAny>> {
        let length = if wide { self.unsigned::<4>()? } else { self.unsigned::<1>()? };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > MAX_INT_BYTES {
            return Err(
                self.fault(&format!("holds an integer of {length} bytes; at most {MAX_INT_BYTES} are read"))
            );
        }
        let content = self.take(length)?;
        let negative = content.last().is_some_and(|&byte| byte >= 0x80);
        let mut bytes = [if negative { 0xff } else { 0 }; MAX_INT_BYTES];
        bytes[..length].copy_from_slice(content);
        int(self.py, i128::from_le_bytes(bytes))
    }

    fn append(&mut self, opcode: Opcode) -> PyResult<()> {
        let items = match opcode {
            Opcode::Append => vec![self.pop()?],
            _ => self.since_mark()?,
        };
        let list = self.top()?.cast::<PyList>().cloned();
        let list = list.map_err(|_| self.fault("appends to what is not a list"))?;
        items.into_iter().try_for_each(|item| list.append(item))
    }

    fn set_items(&mut self, opcode: Opcode) -> PyResult<()> {
        let items = match opcode {
            Opcode::SetItem => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.since_mark()?,
        };
        let dict = self.top()?.cast::<PyDict>().cloned();
        let dict = dict.map_err(|_| self.fault("sets an item of what is not a dictionary"))?;
        self.fill(&dict, &items)
    }

    fn fill(&self, dict: &Bound<'py, PyDict>, items: &[Bound<'py, PyAny>]) -> PyResult<()> {
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(self.fault("has a key without a value"));
        }
        for [key, value] in pairs {
            // Other keys could compare by recursion.
            if !key.is_exact_instance_of::<PyString>() && !key.is_exact_instance_of::<PyInt>() {
                let kind = key.get_type();
                return Err(
                    self.fault(&format!("has a key of type {}: texts and integers are read", kind.name()?))
                );
            }
            dict.set_item(key, value)?;
        }
        Ok(())
    }

    fn remember(&mut self, opcode: Opcode) -> PyResult<()> {
        let index = match opcode {
            Opcode::Put { wide: true } => self.unsigned::<4>()?,
            Opcode::Put { wide: false } => self.unsigned::<1>()?,
            _ => self.memo.len() as u64,
        };
        let value = self.top()?.clone();
        self.memo.insert(index, value);
        Ok(())
    }

    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> PyResult<&Bound<'py, PyAny>> {
        let value = self.stack.get(self.floor()..).and_then(<[_]>::last);
        value.ok_or_else(|| self.fault("takes more values than there are"))
    }

    fn pop(&mut self) -> PyResult<Bound<'py, PyAny>> {
        self.top()?;
        self.stack.pop().ok_or_else(|| self.fault("takes more values than there are"))
    }

    fn since_mark(&mut self) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mark =
            self.marks.pop().ok_or_else(|| self.fault("takes the values behind a mark that is not there"))?;
        Ok(self.stack.split_off(mark))
    }

    /// Reads a length of `bytes` bytes, and as many bytes as it says.
    fn sized(&mut self, bytes: usize) -> PyResult<&[u8]> {
        let length = match bytes {
            1 => self.unsigned::<1>()?,
            4 => self.unsigned::<4>()?,
            _ => self.unsigned::<8>()?,
        };
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn unsigned<const N: usize>(&mut self) -> PyResult<u64> {
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(&self.array::<N>()?);
        Ok(u64::from_le_bytes(bytes))
    }

    fn array<const N: usize>(&mut self) -> PyResult<[u8; N]> {
        let taken = self.take(N)?;
        Ok(taken.try_into().unwrap_or([0; N]))
    }

    fn take(&mut self, length: usize) -> PyResult<&[u8]> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.data.len());
        let end = end.ok_or_else(|| {
            let missing = length - (self.data.len() - self.at);
            PyValueError::new_err(format!(
                "byte {}: the pickle ends here; {missing} bytes are missing",
                self.data.len()
            ))
        })?;
        let taken = &self.data[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn fault(&self, problem: &str) -> PyErr {
        PyValueError::new_err(format!("byte {}: {problem}", self.start))
    }

    /// Says what an instruction wants that is not read, by the name of the object that it asks for.
    fn refuse(&self, code: u8) -> PyErr {
        const END: &str = "only plain data are read, and nothing was executed";
        let Some(name) = refused_name(code) else {
            return self.fault(&format!("{code:#04x} is not an instruction of a pickle"));
        };
        let object = match name {
            "GLOBAL" | "INST" => {
                let mut lines =
                    self.data[self.at..].split(|&byte| byte == b'\n').map(String::from_utf8_lossy);
                Some([lines.next().unwrap_or_default(), lines.next().unwrap_or_default()].join("."))
            }
            "STACK_GLOBAL" => {
                let named = self.stack.iter().rev().take(2).rev().map(ToString::to_string);
                Some(named.collect::<Vec<_>>().join("."))
            }
            _ => None,
        };
        match object {
            // A name may be as long as the file.
            Some(object) => {
                let object: String = object.chars().take(200).collect();
                self.fault(&format!("asks for {object} ({name}): {END}"))
            }
            None => self.fault(&format!("has the instruction {name}: {END}")),
        }
    }
}

fn int(py: Python<'_>, number: i128) -> PyResult<Bound<'_, PyAny>> {
    match i64::try_from(number) {
        Ok(number) => Ok(number.into_pyobject(py)?.into_any()),
        Err(_) => Ok(number.into_pyobject(py)?.into_any()),
    }
}
