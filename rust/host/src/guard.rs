//! Host memory under guard: filled, and looked at word by word.

use std::ptr;
use std::sync::Arc;

use allotment::MemoryGuard;
use allotment::source::Grant;

use crate::out::Out;

const WORD: usize = size_of::<u64>();
/// Words that are compared with one branch.
const STRIDE: usize = 4;

/// Touches memory that its source has out, and no other.
#[derive(Debug)]
pub(crate) struct HostGuard(Arc<Out>);

impl HostGuard {
    pub(crate) fn new(out: &Arc<Out>) -> Self {
        Self(Arc::clone(out))
    }

    /// Does something with a span that is out: its start and its length.
    fn with<T>(&self, address: u64, bytes: u64, work: impl FnOnce(*mut u8, usize) -> T) -> T {
        self.0.with(Grant { address, bytes }, || {
            let number =
                |value| usize::try_from(value).expect("what is out was a `usize` when it was granted");
            work(ptr::with_exposed_provenance_mut(number(address)), number(bytes))
        })
    }
}

impl MemoryGuard for HostGuard {
    fn fill(&self, address: u64, bytes: u64, byte: u8) {
        // SAFETY: the span is mapped and writable while it is out. Whoever was granted the memory has asked for
        // this, and lets nobody else use the span.
        self.with(address, bytes, |start, length| unsafe { start.write_bytes(byte, length) });
    }

    fn first_other(&self, address: u64, bytes: u64, byte: u8) -> Option<u64> {
        // SAFETY: the span is mapped and readable while it is out.
        let found = self.with(address, bytes, |start, length| unsafe { first_other(start, length, byte) });
        found.map(|offset| offset as u64)
    }
}

/// The first of `length` bytes from `start` that is not `byte`.
///
/// Each read is volatile: what is looked for are writes by threads that have no business there, perhaps now.
///
/// # Safety
/// All these bytes are mapped and readable.
unsafe fn first_other(start: *const u8, length: usize, byte: u8) -> Option<usize> {
    // SAFETY: `offset` below is less than `length`.
    let differs = |offset: usize| unsafe { start.add(offset).read_volatile() } != byte;
    let pattern = u64::from_ne_bytes([byte; WORD]);
    let words_start = (start.addr().next_multiple_of(WORD) - start.addr()).min(length);
    let strides = (length - words_start) / (WORD * STRIDE);
    if let Some(found) = (0..words_start).find(|&offset| differs(offset)) {
        return Some(found);
    }
    let stride_differs = |stride: usize| {
        #[expect(clippy::cast_ptr_alignment, reason = "`words_start` is where the words are aligned")]
        // SAFETY: `stride` is less than `strides`, so all its words lie within `length`; they start at a multiple
        // of their size.
        let word = |index: usize| unsafe {
            start.add(words_start + (stride * STRIDE + index) * WORD).cast::<u64>().read_volatile()
        };
        (0..STRIDE).fold(0, |others, index| others | (word(index) ^ pattern)) != 0
    };
    let whole = (0..strides).find(|&stride| stride_differs(stride)).unwrap_or(strides);
    (words_start + whole * STRIDE * WORD..length).find(|&offset| differs(offset))
}

#[cfg(test)]
mod tests;
