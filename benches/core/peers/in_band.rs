//! Allocators that keep their bookkeeping in the managed memory, which must therefore exist.
//!
//! With `contention/peers.rs` the only file of the benchmarks with unsafe code of its own.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;

use allotment::GRANULE;
use allotment::source::{Grant, RegionSource};
use allotment_host::HostMemory;
use talc::DefaultBinning;
use talc::source::Manual;

use super::Peer;

/// Their natural alignment.
const ALIGNMENT: usize = 16;

fn layout(bytes: u64) -> Option<Layout> {
    Layout::from_size_align(usize::try_from(bytes).ok()?, ALIGNMENT).ok()
}

/// Memory for one allocator: address space, with a page behind it from its first write.
struct Memory {
    source: HostMemory,
    span: Grant,
}

impl Memory {
    fn new(bytes: u64) -> Self {
        let mut source = HostMemory::new();
        let span = source.reserve(bytes, GRANULE).expect("address space");
        Self { source, span }
    }

    fn start(&self) -> NonNull<u8> {
        let address = usize::try_from(self.span.address).expect("an address of this machine");
        NonNull::new(std::ptr::with_exposed_provenance_mut(address)).expect("not at 0")
    }

    fn length(&self) -> usize {
        usize::try_from(self.span.bytes).expect("a length of this machine")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.source.release(self.span);
    }
}

/// Two-level segregated fit, of the crate `rlsf`. Its largest block is 128 GiB.
pub(super) struct Tlsf {
    tables: Box<rlsf::Tlsf<'static, u32, u32, 32, 32>>,
    /// Declared after `tables`, so that it is dropped after them.
    _memory: Memory,
}

impl Tlsf {
    pub(super) fn new(limit: u64) -> Self {
        let memory = Memory::new(limit);
        let mut tables = Box::new(rlsf::Tlsf::new());
        let block = NonNull::slice_from_raw_parts(memory.start(), memory.length());
        // SAFETY: the mapping has no other user, is readable and writable, and outlives the tables: it is dropped
        // after them.
        let usable = unsafe { tables.insert_free_block_ptr(block) };
        assert!(usable.is_some(), "room for a block");
        Self { tables, _memory: memory }
    }
}

impl Peer for Tlsf {
    type Block = NonNull<u8>;

    fn allocate(&mut self, bytes: u64) -> Option<Self::Block> {
        self.tables.allocate(layout(bytes)?)
    }

    fn free(&mut self, block: Self::Block) {
        // SAFETY: a script frees the result of `allocate` once, and the alignment is the same for all.
        unsafe { self.tables.deallocate(block, ALIGNMENT) };
    }
}

/// Lists by size, of the crate `talc`.
pub(super) struct Talc {
    tables: talc::base::Talc<Manual, DefaultBinning>,
    _memory: Memory,
}

impl Talc {
    pub(super) fn new(limit: u64) -> Self {
        let memory = Memory::new(limit);
        let mut tables = talc::base::Talc::new(Manual);
        // SAFETY: the mapping has no other user, is readable and writable, and is dropped after the tables.
        let end = unsafe { tables.claim(memory.start().as_ptr(), memory.length()) };
        assert!(end.is_some(), "room for the tables");
        Self { tables, _memory: memory }
    }
}

impl Peer for Talc {
    type Block = (NonNull<u8>, Layout);

    fn allocate(&mut self, bytes: u64) -> Option<Self::Block> {
        let layout = layout(bytes).filter(|layout| layout.size() > 0)?;
        // SAFETY: the size is not zero.
        Some((unsafe { self.tables.allocate(layout) }?, layout))
    }

    fn free(&mut self, (block, layout): Self::Block) {
        // SAFETY: a script frees the result of `allocate` once, with its layout.
        unsafe { self.tables.deallocate(block.as_ptr(), layout) };
    }
}

/// An allocator for whole processes.
pub(super) struct System<A>(pub(super) A);

impl<A: GlobalAlloc> Peer for System<A> {
    type Block = (NonNull<u8>, Layout);

    fn allocate(&mut self, bytes: u64) -> Option<Self::Block> {
        let layout = layout(bytes).filter(|layout| layout.size() > 0)?;
        // SAFETY: the size is not zero.
        Some((NonNull::new(unsafe { self.0.alloc(layout) })?, layout))
    }

    fn free(&mut self, (block, layout): Self::Block) {
        // SAFETY: a script frees the result of `allocate` once, with its layout.
        unsafe { self.0.dealloc(block.as_ptr(), layout) };
    }
}
