//! The content of a paused pool: copied out of its pages, and back.

use std::collections::TryReserveError;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::paused_memory::Memory;
use super::pausing::PauseError;
use crate::source::Grant;
use crate::tables::pages::{PageSpan, count};

/// The most bytes that are copied at once. A block of zeros is not kept, so that memory that was never written to is not.
const BLOCK: u64 = 64 << 10;

/// How many bytes are compared with zero at once.
const COMPARED: usize = 4 << 10;

/// The content of a block of a paused pool.
#[derive(Debug)]
enum Block {
    Zeros,
    InMemory(Vec<u8>),
    InFile,
}

/// The place in which a paused pool keeps the content of its allocations.
#[derive(Debug)]
#[non_exhaustive]
pub enum PausedContent {
    /// Nowhere: it is undefined after the resume.
    Discard,
    /// In memory of the process, outside of the pool.
    Memory,
    /// In a file or on a block device that is open for reading and writing, from its start on. A pause that fails may have
    /// written to it.
    File(File),
    /// In a file at a path, which no other user may open. It is made, or replaces the file there, as the last step: a
    /// pause that fails leaves the path as it was. A block device at the path is written to itself.
    Path(PathBuf),
}

/// The content that a paused pool keeps.
#[derive(Debug)]
pub(in crate::pool) struct Paused {
    content: PausedContent,
    /// The saved pages, in order.
    pub(super) saved: Vec<PageSpan>,
    /// Their content, in blocks, unless it is discarded.
    blocks: Vec<Block>,
    /// Pages that still have memory, because the source did not take it.
    pub(super) kept: Vec<PageSpan>,
}

/// Splits a span of addresses into blocks that fit a buffer.
fn blocks_of(span: Grant) -> impl Iterator<Item = Grant> {
    let starts = (span.address..span.end()).step_by(BLOCK.try_into().unwrap_or(usize::MAX));
    starts.map(move |address| Grant { address, bytes: BLOCK.min(span.end() - address) })
}

pub(super) fn content_error(verb: &'static str) -> impl Fn(io::Error) -> PauseError {
    move |error| PauseError::Content { verb, error: error.into() }
}

/// Returns a buffer for one block, without an end of the process if there is no memory for it.
fn new_buffer(verb: &'static str) -> Result<Vec<u8>, PauseError> {
    let mut buffer = Vec::new();
    let reserved = buffer.try_reserve_exact(usize::try_from(BLOCK).unwrap_or(usize::MAX));
    reserved.map(|()| buffer).map_err(|_| content_error(verb)(ErrorKind::OutOfMemory.into()))
}

fn copy_of(content: &[u8]) -> Result<Vec<u8>, TryReserveError> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(content.len())?;
    copy.extend_from_slice(content);
    Ok(copy)
}

impl Paused {
    pub(super) fn new(content: PausedContent, saved: Vec<PageSpan>) -> Self {
        Self { content, saved, blocks: Vec::new(), kept: Vec::new() }
    }

    /// Copies the content of the pages.
    pub(super) fn save(&mut self, memory: &mut Memory<'_>) -> Result<(), PauseError> {
        if let PausedContent::File(file) = &mut self.content {
            file.seek(SeekFrom::Start(0)).map_err(content_error("saved"))?;
            // Not before: the file may hold the content of a pool that is paused already. A device has no length.
            let _ = file.set_len(0);
        }
        if matches!(self.content, PausedContent::Discard) {
            return Ok(());
        }
        // The content may be more than the process has memory for.
        let bytes = count(&self.saved) << memory.shift;
        let no_memory = |_| PauseError::NoMemoryForContent { bytes };
        let mut buffer = new_buffer("saved")?;
        for block in self.saved.iter().flat_map(|span| blocks_of(span.addresses(memory.shift))) {
            self.blocks.try_reserve(1).map_err(no_memory)?;
            buffer.resize(length_of(block), 0);
            memory.pages.read(block.address, &mut buffer).map_err(PauseError::SourceFailed)?;
            self.blocks.push(match &mut self.content {
                _ if is_zero(&buffer) => Block::Zeros,
                PausedContent::File(file) => {
                    file.write_all(&buffer).map_err(content_error("saved"))?;
                    Block::InFile
                }
                _ => Block::InMemory(copy_of(&buffer).map_err(no_memory)?),
            });
        }
        Ok(())
    }

    /// Copies the content back to those of its pages that are in `touched`.
    pub(super) fn load(&mut self, memory: &mut Memory<'_>, touched: &[PageSpan]) -> Result<(), PauseError> {
        if touched.is_empty() {
            return Ok(());
        }
        if let PausedContent::File(file) = &mut self.content {
            file.seek(SeekFrom::Start(0)).map_err(content_error("read back"))?;
        }
        if matches!(self.content, PausedContent::Discard) {
            return Ok(());
        }
        let commits_zeros = memory.pages.commits_zeros();
        let mut buffer = new_buffer("read back")?;
        let spans = self.saved.iter().flat_map(|span| blocks_of(span.addresses(memory.shift)));
        for (span, block) in spans.zip(&self.blocks) {
            let content = match (block, &mut self.content) {
                // Pages that kept their memory have kept these zeros, too.
                (Block::Zeros, _) if commits_zeros => continue,
                (Block::InMemory(content), _) => content,
                (Block::InFile, PausedContent::File(file)) => {
                    buffer.resize(length_of(span), 0);
                    file.read_exact(&mut buffer).map_err(content_error("read back"))?;
                    &buffer
                }
                _ => {
                    buffer.clear();
                    buffer.resize(length_of(span), 0);
                    &buffer
                }
            };
            let from = touched.partition_point(|pages| pages.addresses(memory.shift).end() <= span.address);
            let pages = touched[from..].iter().map(|pages| pages.addresses(memory.shift));
            for pages in pages.take_while(|pages| pages.address < span.end()) {
                let (start, end) = (pages.address.max(span.address), pages.end().min(span.end()));
                let offset = |address: u64| usize::try_from(address - span.address).unwrap_or(usize::MAX);
                let part = &content[offset(start)..offset(end)];
                memory.pages.write(start, part).map_err(PauseError::SourceFailed)?;
            }
        }
        Ok(())
    }
}

fn length_of(block: Grant) -> usize {
    usize::try_from(block.bytes).unwrap_or(usize::MAX)
}

/// Returns whether all bytes are 0.
fn is_zero(bytes: &[u8]) -> bool {
    // No look at single bytes, so that many are compared at once.
    bytes.chunks(COMPARED).all(|part| part.iter().fold(0, |any, byte| any | byte) == 0)
}
