//! The memory guard of host memory: fills spans, and checks them word by word.

use std::ptr;
use std::sync::Arc;

use allotment::MemoryGuard;
use allotment::source::Grant;

use crate::grants::Grants;

const WORD: usize = size_of::<u64>();
/// Number of words compared per branch.
const STRIDE: usize = 4;

/// Accesses only memory within live grants of its source.
#[derive(Debug)]
pub(crate) struct HostGuard(Arc<Grants>);

impl HostGuard {
    pub(crate) fn new(grants: &Arc<Grants>) -> Self {
        Self(Arc::clone(grants))
    }

    /// Runs `work` on a granted span: its start and its length.
    fn with<T>(&self, address: u64, bytes: u64, work: impl FnOnce(*mut u8, usize) -> T) -> T {
        self.0.with(Grant { address, bytes }, || {
            let number =
                |value| usize::try_from(value).expect("a live grant was a `usize` when it was granted");
            work(ptr::with_exposed_provenance_mut(number(address)), number(bytes))
        })
    }
}

impl MemoryGuard for HostGuard {
    fn fill(&self, address: u64, bytes: u64, byte: u8) {
        // SAFETY: the span is mapped and writable while it is granted. The pool that owns the grant calls this and
        // lets no other code use the span.
        self.with(address, bytes, |start, length| unsafe { start.write_bytes(byte, length) });
    }

    fn first_other(&self, address: u64, bytes: u64, byte: u8) -> Option<u64> {
        // SAFETY: the span is mapped and readable while it is granted.
        let found = self.with(address, bytes, |start, length| unsafe { first_other(start, length, byte) });
        found.map(|offset| offset as u64)
    }
}

/// Returns the offset of the first of `length` bytes from `start` that is not `byte`.
///
/// Reads are volatile: the check looks for invalid writes of other threads, which may happen now.
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
        // SAFETY: `stride` is less than `strides`, so all its words lie within `length`; they start at a multiple of
        // their size.
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
