//! Memory that is a list of bytes, and a source that grants it.

use std::sync::{Arc, Mutex, PoisonError};

use allotment::source::{Grant, RegionSource, ReserveError};
use allotment::{Damage, Leaks, MemoryGuard};

/// The first address.
const START: u64 = 1 << 20;

/// All bytes of a source and the final reports of its pools; clones share the memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    bytes: Arc<Mutex<Vec<u8>>>,
    words: Arc<Mutex<Vec<String>>>,
}

impl Memory {
    /// Writes a byte, as a program would.
    pub(crate) fn write(&self, address: u64, byte: u8) {
        self.with(address, 1, |bytes| bytes[0] = byte);
    }

    /// Writes a byte at an offset from an address.
    pub(crate) fn poke(&self, address: u64, offset: i64) {
        self.write(address.checked_add_signed(offset).expect("an address"), 0x55);
    }

    pub(crate) fn read(&self, address: u64, bytes: u64) -> Vec<u8> {
        self.with(address, bytes, |bytes| bytes.to_vec())
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn with<T>(&self, address: u64, bytes: u64, work: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut memory = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(address - START).expect("an index");
        work(&mut memory[start..start + usize::try_from(bytes).expect("a length")])
    }
}

impl MemoryGuard for Memory {
    fn fill(&self, address: u64, bytes: u64, byte: u8) {
        self.with(address, bytes, |span| span.fill(byte));
    }

    fn first_other(&self, address: u64, bytes: u64, byte: u8) -> Option<u64> {
        self.with(address, bytes, |span| span.iter().position(|&other| other != byte)).map(|at| at as u64)
    }

    fn report(&self, pool: &str, damages: &[Damage], leaks: Option<&Leaks>) {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend(damages.iter().map(|damage| format!("{pool}: {damage}")));
        words.extend(leaks.map(ToString::to_string));
    }
}

/// Grants further memory each time, with a gap of a granule before each grant.
pub(crate) struct Paper {
    memory: Memory,
    /// Number of live grants.
    out: usize,
}

impl Paper {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { memory, out: 0 }
    }
}

impl RegionSource for Paper {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        let mut memory = self.memory.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let length = usize::try_from(bytes).map_err(|_| ReserveError::Declined)?;
        let start = memory.len() + 256;
        memory.resize(start + length, 0);
        self.out += 1;
        Ok(Grant { address: START + start as u64, bytes })
    }

    fn release(&mut self, _region: Grant) {
        self.out -= 1;
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        Some(Arc::new(self.memory.clone()))
    }
}
