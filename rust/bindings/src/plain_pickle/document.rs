//! What a pickle of plain data holds: 8 bytes for each value, and a range of them for each container.
//!
//! Numbers that do not fit and texts stay where they are, in the pickle.
//!
//! Longer than 300 lines: writing and reading the values share their layout.

use std::collections::{HashMap, TryReserveError};
use std::ops::Range;

use super::opcodes::Opcode;

/// Bits of a value that say what it is.
const TAG_BITS: u32 = 3;

/// The most lists of keys that dictionaries share.
const MAX_SHAPES: usize = 256;

/// Set in the start of a container that has room behind its items, up to a power of two of them.
const HAS_ROOM: u64 = 1 << 63;

const UNSHAPED: u32 = u32::MAX;

/// Why a pickle is not read.
pub(super) enum Fault {
    /// The first byte of what is wrong, and what is wrong.
    At(usize, String),
    NoMemory,
}

impl From<TryReserveError> for Fault {
    fn from(_: TryReserveError) -> Self {
        Self::NoMemory
    }
}

/// Adds an item to a vector that may grow large; `Vec::push` ends the process where there is no memory.
pub(super) fn push<T>(items: &mut Vec<T>, item: T) -> Result<(), TryReserveError> {
    items.try_reserve(1)?;
    items.push(item);
    Ok(())
}

/// A value. Two that are equal are the same object; two texts that read the same need not be.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Value(u64);

/// What a value is. Containers have a number, which is higher than that of all that a new tuple holds.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    None,
    Bool(bool),
    Int(i64),
    /// A number, text or bytes: the place of the instruction that makes it.
    Data(usize),
    List(usize),
    Tuple(usize),
    Dict(usize),
}

impl Value {
    pub(super) const NONE: Self = Self(0);

    pub(super) fn bool(value: bool) -> Self {
        Self::tagged(1, u64::from(value))
    }

    /// Returns the value of an integer, `None` if it has too many bits.
    pub(super) fn int(number: i128) -> Option<Self> {
        let bits = i64::try_from(number).ok()? << TAG_BITS;
        (i128::from(bits >> TAG_BITS) == number).then(|| Self(bits.cast_unsigned() | 2))
    }

    pub(super) fn data(at: usize) -> Self {
        Self::tagged(3, at as u64)
    }

    fn tagged(tag: u64, payload: u64) -> Self {
        Self(payload << TAG_BITS | tag)
    }

    pub(super) fn kind(self) -> Kind {
        let payload = (self.0 >> TAG_BITS) as usize;
        match self.0 & ((1 << TAG_BITS) - 1) {
            0 => Kind::None,
            1 => Kind::Bool(payload != 0),
            2 => Kind::Int(self.0.cast_signed() >> TAG_BITS),
            3 => Kind::Data(payload),
            4 => Kind::List(payload),
            5 => Kind::Tuple(payload),
            _ => Kind::Dict(payload),
        }
    }
}

/// Items of a container. Those of a dictionary with a shape are its values alone.
struct Container {
    start: u64,
    length: u32,
    shape: u32,
}

/// Which container to make.
#[derive(Clone, Copy)]
pub(super) enum Make {
    List = 4,
    Tuple = 5,
    Dict = 6,
}

/// All values of a pickle.
pub(super) struct Document {
    pub(super) root: Value,
    values: Vec<Value>,
    containers: Vec<Container>,
    /// Lists of keys that dictionaries share, and their numbers.
    shapes: Vec<Box<[Value]>>,
    numbers: HashMap<Box<[Value]>, u32>,
}

/// Returns a vector with room for so many items if there is, else an empty one. Memory that is not written to is none.
pub(super) fn with_room<T>(items: usize) -> Vec<T> {
    let mut vector = Vec::new();
    // Growing copies, and the C library keeps what was there before.
    let _ = vector.try_reserve_exact(items);
    vector
}

impl Document {
    /// Makes an empty document of a pickle of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            root: Value::NONE,
            // The shortest instructions that most files consist of refer to an object, in 2 to 5 bytes.
            values: with_room(bytes / 4),
            containers: with_room(bytes / 64),
            shapes: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// Makes a container; a dictionary receives keys and values in turns.
    pub(super) fn make(&mut self, make: Make, items: &[Value]) -> Result<Value, Fault> {
        let number = self.containers.len();
        let start = self.values.len() as u64;
        push(&mut self.containers, Container { start, length: 0, shape: UNSHAPED })?;
        match make {
            Make::Dict => self.insert(number, items)?,
            _ => self.extend(number, items)?,
        }
        Ok(Value::tagged(make as u64, number as u64))
    }

    /// Adds items to a list or tuple.
    pub(super) fn extend(&mut self, number: usize, items: &[Value]) -> Result<(), Fault> {
        if items.is_empty() {
            return Ok(());
        }
        let found = &self.containers[number];
        let Range { start, end } = self.range(number);
        let length = found.length as usize + items.len();
        let room = if found.start & HAS_ROOM == 0 { 0 } else { (end - start).next_power_of_two() };
        let (length, has_room) = match u32::try_from(length) {
            Ok(length) => (length, found.start & HAS_ROOM),
            Err(_) => return Err(Fault::At(0, format!("a container has {length} items"))),
        };
        if length as usize <= room {
            self.values[end..end + items.len()].copy_from_slice(items);
        } else if end == self.values.len() && has_room == 0 {
            self.values.try_reserve(items.len())?;
            self.values.extend_from_slice(items);
        } else {
            let room = (length as usize).next_power_of_two();
            let new = self.values.len();
            self.values.try_reserve(room)?;
            self.values.extend_from_within(start..end);
            self.values.extend_from_slice(items);
            self.values.resize(new + room, Value::NONE);
            self.containers[number].start = new as u64 | HAS_ROOM;
        }
        self.containers[number].length = length;
        Ok(())
    }

    /// Adds keys and values, which are in turns, to a dictionary.
    pub(super) fn insert(&mut self, number: usize, items: &[Value]) -> Result<(), Fault> {
        let Container { length, shape, .. } = self.containers[number];
        if shape == UNSHAPED && length > 0 || items.is_empty() {
            return self.extend(number, items);
        }
        if shape != UNSHAPED {
            let pairs: Vec<_> = self.pairs(number).flat_map(|(key, value)| [key, value]).collect();
            let start = self.values.len() as u64;
            self.containers[number] = Container { start, length: 0, shape: UNSHAPED };
            self.extend(number, &pairs)?;
            return self.extend(number, items);
        }
        let (pairs, _) = items.as_chunks::<2>();
        let keys: Vec<_> = pairs.iter().map(|[key, _]| *key).collect();
        let shape = match self.numbers.get(&keys[..]) {
            Some(&shape) => shape,
            None if self.shapes.len() == MAX_SHAPES => return self.extend(number, items),
            None => {
                let shape = u32::try_from(self.shapes.len()).unwrap_or(UNSHAPED);
                self.shapes.push(keys.clone().into());
                self.numbers.insert(keys.into(), shape);
                shape
            }
        };
        let values: Vec<_> = pairs.iter().map(|[_, value]| *value).collect();
        self.containers[number].start = self.values.len() as u64;
        self.containers[number].shape = shape;
        self.extend(number, &values)
    }

    fn range(&self, number: usize) -> Range<usize> {
        let Container { start, length, .. } = self.containers[number];
        let start = (start & !HAS_ROOM) as usize;
        start..start + length as usize
    }

    /// Returns the items of a list or tuple.
    pub(super) fn items(&self, number: usize) -> &[Value] {
        &self.values[self.range(number)]
    }

    /// Returns keys and values of a dictionary in the order in which they were set; the last of equal keys counts.
    pub(super) fn pairs(&self, number: usize) -> impl Iterator<Item = (Value, Value)> {
        let (items, keys) = (self.items(number), self.keys(number));
        let pairs = keys.map_or(items.len() / 2, <[_]>::len);
        (0..pairs).map(move |place| match keys {
            Some(keys) => (keys[place], items[place]),
            None => (items[2 * place], items[2 * place + 1]),
        })
    }

    fn keys(&self, number: usize) -> Option<&[Value]> {
        self.shapes.get(self.containers[number].shape as usize).map(|keys| &keys[..])
    }

    /// Returns the value under a key that is a text.
    pub(super) fn get(&self, content: &[u8], number: usize, key: &str) -> Option<Value> {
        let mut pairs: Vec<_> = self.pairs(number).collect();
        pairs.reverse();
        pairs.into_iter().find(|(name, _)| is_text(content, *name, key)).map(|(_, value)| value)
    }

    /// Forgets what only making containers needs.
    pub(super) fn finish(&mut self, root: Value) {
        self.root = root;
        self.numbers = HashMap::new();
    }
}

/// Finds the values under one key in dictionaries, many of which share their keys.
pub(super) struct Lookup<'document> {
    document: &'document Document,
    content: &'document [u8],
    key: &'document str,
    /// For each shape the key's place.
    places: Vec<Option<usize>>,
}

impl<'document> Lookup<'document> {
    pub(super) fn new(document: &'document Document, content: &'document [u8], key: &'document str) -> Self {
        let place = |keys: &[Value]| keys.iter().rposition(|name| is_text(content, *name, key));
        Self { document, content, key, places: document.shapes.iter().map(|keys| place(keys)).collect() }
    }

    pub(super) fn get(&self, number: usize) -> Option<Value> {
        match self.places.get(self.document.containers[number].shape as usize) {
            Some(place) => place.map(|place| self.document.items(number)[place]),
            None => self.document.get(self.content, number, self.key),
        }
    }
}

fn is_text(content: &[u8], value: Value, text: &str) -> bool {
    matches!(value.kind(), Kind::Data(at) if Data::at(content, at) == Data::Text(text.as_bytes()))
}

/// A number, text or bytes that is read from its instruction.
#[derive(PartialEq)]
pub(super) enum Data<'content> {
    Int(i128),
    Float(f64),
    /// UTF-8, in which halves of surrogate pairs are allowed.
    Text(&'content [u8]),
    Bytes(&'content [u8]),
}

impl<'content> Data<'content> {
    /// Reads it again from an instruction that was read before.
    pub(super) fn at(content: &'content [u8], at: usize) -> Self {
        let mut reader = Reader { data: content, start: at, at: at + 1 };
        let read = Opcode::of(content[at]).map(|opcode| Self::read(&mut reader, opcode));
        match read {
            Some(Ok(Some(data))) => data,
            _ => unreachable!("values refer to instructions that were read"),
        }
    }

    /// Reads the operand of an instruction, `None` if it makes something else.
    pub(super) fn read(reader: &mut Reader<'content>, opcode: Opcode) -> Result<Option<Self>, Fault> {
        Ok(Some(match opcode {
            Opcode::Unsigned { bytes: 1 } => Self::Int(i128::from(reader.unsigned::<1>()?)),
            Opcode::Unsigned { .. } => Self::Int(i128::from(reader.unsigned::<2>()?)),
            Opcode::Int => Self::Int(i128::from(i32::from_le_bytes(reader.array()?))),
            Opcode::Long { wide } => Self::Int(reader.long(wide)?),
            Opcode::Float => Self::Float(f64::from_be_bytes(reader.array()?)),
            Opcode::Text { bytes } => Self::Text(reader.sized(bytes)?),
            Opcode::Bytes { bytes } => Self::Bytes(reader.sized(bytes)?),
            _ => return Ok(None),
        }))
    }
}

/// The longest integer that is read, in bytes.
const MAX_INT_BYTES: usize = 16;

/// Reads operands of instructions.
pub(super) struct Reader<'content> {
    pub(super) data: &'content [u8],
    /// The first byte of the current instruction.
    pub(super) start: usize,
    /// The next byte to read.
    pub(super) at: usize,
}

impl<'content> Reader<'content> {
    fn long(&mut self, wide: bool) -> Result<i128, Fault> {
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
        Ok(i128::from_le_bytes(bytes))
    }

    /// Reads a length of `bytes` bytes, and as many bytes as it says.
    fn sized(&mut self, bytes: usize) -> Result<&'content [u8], Fault> {
        let length = match bytes {
            1 => self.unsigned::<1>()?,
            4 => self.unsigned::<4>()?,
            _ => self.unsigned::<8>()?,
        };
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    pub(super) fn unsigned<const N: usize>(&mut self) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(&self.array::<N>()?);
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let taken = self.take(N)?;
        Ok(taken.try_into().unwrap_or([0; N]))
    }

    fn take(&mut self, length: usize) -> Result<&'content [u8], Fault> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.data.len());
        let end = end.ok_or_else(|| {
            let missing = length - (self.data.len() - self.at);
            let text = format!("the pickle ends here; {missing} bytes are missing");
            Fault::At(self.data.len(), text)
        })?;
        let taken = &self.data[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// Returns a fault of the current instruction.
    pub(super) fn fault(&self, problem: &str) -> Fault {
        Fault::At(self.start, problem.to_owned())
    }
}
