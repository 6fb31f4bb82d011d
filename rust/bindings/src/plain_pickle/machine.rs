//! Follows the instructions of a pickle.
//!
//! Longer than 300 lines: one instruction after the other, on one stack.

use std::collections::HashMap;

use super::document::{Data, Document, Fault, Kind, Make, Reader, Value, push, with_room};
use super::opcodes::{Opcode, refused_name};

/// What a pickle has built so far.
pub(super) struct Machine<'data> {
    reader: Reader<'data>,
    document: Document,
    stack: Vec<Value>,
    /// Lengths of the stack at the marks.
    marks: Vec<usize>,
    /// Objects that may be referred to, by number, and those with numbers that do not follow one another.
    memo: Vec<Value>,
    sparse: HashMap<u64, Value>,
}

impl<'data> Machine<'data> {
    pub(super) fn new(data: &'data [u8]) -> Self {
        Self {
            reader: Reader { data, start: 0, at: 0 },
            document: Document::new(data.len()),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: with_room(data.len() / 32),
            sparse: HashMap::new(),
        }
    }

    /// Follows so many instructions; returns whether the last one was met.
    pub(super) fn run(&mut self, steps: usize) -> Result<bool, Fault> {
        for _ in 0..steps {
            self.reader.start = self.reader.at;
            let [code] = self.reader.array()?;
            match Opcode::of(code) {
                Some(Opcode::Stop) => {
                    let root = self.pop()?;
                    self.document.finish(root);
                    return Ok(true);
                }
                Some(opcode) => self.step(opcode)?,
                None => return Err(self.refuse(code)),
            }
        }
        Ok(false)
    }

    pub(super) fn into_document(self) -> Document {
        self.document
    }

    fn step(&mut self, opcode: Opcode) -> Result<(), Fault> {
        let value = match opcode {
            Opcode::Proto => {
                return match self.reader.unsigned::<1>()? {
                    2..=5 => Ok(()),
                    other => Err(self.fault(&format!("is a pickle of protocol {other}; 2 to 5 are read"))),
                };
            }
            Opcode::Frame => {
                // The length of a frame helps readers of streams only.
                return self.reader.array::<8>().map(drop);
            }
            Opcode::Mark => return Ok(push(&mut self.marks, self.stack.len())?),
            Opcode::Pop => return self.pop().map(drop),
            Opcode::PopMark => {
                let mark = self.mark()?;
                self.stack.truncate(mark);
                return Ok(());
            }
            Opcode::Append => {
                let first = self.last(1)?;
                return self.append(first);
            }
            Opcode::Appends => {
                let first = self.mark()?;
                return self.append(first);
            }
            Opcode::SetItem => {
                let first = self.last(2)?;
                return self.set_items(first);
            }
            Opcode::SetItems => {
                let first = self.mark()?;
                return self.set_items(first);
            }
            Opcode::Memoize | Opcode::Put { .. } => return self.remember(opcode),
            Opcode::Get { wide } => {
                let number = if wide { self.reader.unsigned::<4>()? } else { self.reader.unsigned::<1>()? };
                let known = usize::try_from(number).ok().and_then(|number| self.memo.get(number));
                let known = known.or_else(|| self.sparse.get(&number)).copied();
                known.ok_or_else(|| self.fault(&format!("refers to object {number}, which is not there")))?
            }
            Opcode::Duplicate => self.top()?,
            Opcode::None | Opcode::Stop => Value::NONE,
            Opcode::Bool(value) => Value::bool(value),
            Opcode::EmptyList => self.document.make(Make::List, &[])?,
            Opcode::EmptyTuple => self.document.make(Make::Tuple, &[])?,
            Opcode::EmptyDict => self.document.make(Make::Dict, &[])?,
            Opcode::List => {
                let first = self.mark()?;
                self.make(Make::List, first)?
            }
            Opcode::Tuple => {
                let first = self.mark()?;
                self.make(Make::Tuple, first)?
            }
            Opcode::TupleOf(length) => {
                let first = self.last(length)?;
                self.make(Make::Tuple, first)?
            }
            Opcode::Dict => {
                let first = self.mark()?;
                self.check_keys(first)?;
                self.make(Make::Dict, first)?
            }
            Opcode::Unsigned { .. }
            | Opcode::Int
            | Opcode::Long { .. }
            | Opcode::Float
            | Opcode::Text { .. }
            | Opcode::Bytes { .. } => self.data(opcode)?,
        };
        Ok(push(&mut self.stack, value)?)
    }

    /// Reads a number, text or bytes.
    fn data(&mut self, opcode: Opcode) -> Result<Value, Fault> {
        let at = self.reader.start;
        match Data::read(&mut self.reader, opcode)? {
            Some(Data::Int(number)) => Ok(Value::int(number).unwrap_or(Value::data(at))),
            Some(Data::Text(text)) if !is_python_text(text) => {
                Err(self.fault("holds a text that is not UTF-8"))
            }
            _ => Ok(Value::data(at)),
        }
    }

    fn make(&mut self, make: Make, first: usize) -> Result<Value, Fault> {
        let container = self.document.make(make, &self.stack[first..]);
        let container = container.map_err(|fault| self.here(fault))?;
        self.stack.truncate(first);
        Ok(container)
    }

    fn append(&mut self, first: usize) -> Result<(), Fault> {
        match self.below(first)?.kind() {
            Kind::List(number) => {
                let done = self.document.extend(number, &self.stack[first..]);
                done.map_err(|fault| self.here(fault))?;
            }
            _ => return Err(self.fault("appends to what is not a list")),
        }
        self.stack.truncate(first);
        Ok(())
    }

    fn set_items(&mut self, first: usize) -> Result<(), Fault> {
        match self.below(first)?.kind() {
            Kind::Dict(number) => {
                self.check_keys(first)?;
                let done = self.document.insert(number, &self.stack[first..]);
                done.map_err(|fault| self.here(fault))?;
            }
            _ => return Err(self.fault("sets an item of what is not a dictionary")),
        }
        self.stack.truncate(first);
        Ok(())
    }

    /// Checks keys and values that are on the stack in turns.
    fn check_keys(&self, first: usize) -> Result<(), Fault> {
        let (pairs, rest) = self.stack[first..].as_chunks::<2>();
        if !rest.is_empty() {
            return Err(self.fault("has a key without a value"));
        }
        for [key, _] in pairs {
            let kind = match key.kind() {
                Kind::Int(_) => continue,
                Kind::Data(at) => match Data::at(self.reader.data, at) {
                    Data::Int(_) | Data::Text(_) => continue,
                    Data::Float(_) => "float",
                    Data::Bytes(_) => "bytes",
                },
                Kind::None => "NoneType",
                Kind::Bool(_) => "bool",
                Kind::List(_) => "list",
                Kind::Tuple(_) => "tuple",
                Kind::Dict(_) => "dict",
            };
            // Other keys could compare by recursion.
            return Err(self.fault(&format!("has a key of type {kind}: texts and integers are read")));
        }
        Ok(())
    }

    fn remember(&mut self, opcode: Opcode) -> Result<(), Fault> {
        let next = self.memo.len() as u64;
        let number = match opcode {
            Opcode::Put { wide: true } => self.reader.unsigned::<4>()?,
            Opcode::Put { wide: false } => self.reader.unsigned::<1>()?,
            _ => next + self.sparse.len() as u64,
        };
        let value = self.top()?;
        if number == next {
            self.sparse.remove(&number);
            push(&mut self.memo, value)?;
        } else if let Some(known) = usize::try_from(number).ok().and_then(|number| self.memo.get_mut(number))
        {
            *known = value;
        } else {
            self.sparse.try_reserve(1)?;
            self.sparse.insert(number, value);
        }
        Ok(())
    }

    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<Value, Fault> {
        self.below(self.stack.len())
    }

    /// Returns the value below a place of the stack, which is above the last mark.
    fn below(&self, place: usize) -> Result<Value, Fault> {
        let value = self.stack.get(self.floor()..place).and_then(<[_]>::last).copied();
        value.ok_or_else(|| self.too_few())
    }

    fn pop(&mut self) -> Result<Value, Fault> {
        let value = self.top()?;
        self.stack.pop();
        Ok(value)
    }

    /// Returns the place of the last `length` values.
    fn last(&self, length: usize) -> Result<usize, Fault> {
        let first = self.stack.len().checked_sub(length).filter(|&first| first >= self.floor());
        first.ok_or_else(|| self.too_few())
    }

    /// Removes the last mark and returns its place.
    fn mark(&mut self) -> Result<usize, Fault> {
        self.marks.pop().ok_or_else(|| self.fault("takes the values behind a mark that is not there"))
    }

    fn too_few(&self) -> Fault {
        self.fault("takes more values than there are")
    }

    fn fault(&self, problem: &str) -> Fault {
        self.reader.fault(problem)
    }

    /// Gives a fault of a container the current instruction as its place.
    fn here(&self, fault: Fault) -> Fault {
        match fault {
            Fault::At(_, text) => self.fault(&text),
            Fault::NoMemory => Fault::NoMemory,
        }
    }

    /// Says what an instruction wants that is not read, by the name of the object that it asks for.
    fn refuse(&self, code: u8) -> Fault {
        const END: &str = "only plain data are read, and nothing was executed";
        let Some(name) = refused_name(code) else {
            return self.fault(&format!("{code:#04x} is not an instruction of a pickle"));
        };
        let data = self.reader.data;
        let object = match name {
            "GLOBAL" | "INST" => {
                let mut lines =
                    data[self.reader.at..].split(|&byte| byte == b'\n').map(String::from_utf8_lossy);
                Some([lines.next().unwrap_or_default(), lines.next().unwrap_or_default()].join("."))
            }
            "STACK_GLOBAL" => {
                let named =
                    self.stack[self.stack.len().saturating_sub(2)..].iter().map(|value| match value.kind() {
                        Kind::Data(at) => match Data::at(data, at) {
                            Data::Text(text) => String::from_utf8_lossy(text),
                            _ => "?".into(),
                        },
                        _ => "?".into(),
                    });
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

/// Whether bytes are UTF-8 in which halves of surrogate pairs are allowed: Python writes them as it keeps them.
fn is_python_text(mut text: &[u8]) -> bool {
    loop {
        let valid = match std::str::from_utf8(text) {
            Ok(_) => return true,
            Err(error) => error.valid_up_to(),
        };
        match text[valid..] {
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => text = &text[valid + 3..],
            _ => return false,
        }
    }
}
