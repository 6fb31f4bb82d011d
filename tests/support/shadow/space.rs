//! Regions as plain lists of chunks with linear searches.

use allotment::{ChunkSnapshot, Grant, MAX_BYTES, RegionSnapshot};

/// The allocation in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) id: u64,
    pub(crate) requested: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) holder: Option<Holder>,
}

#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) span: Grant,
    chunks: Vec<Chunk>,
}

impl Region {
    fn is_free(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.holder.is_none())
    }

    /// Merges all adjacent free chunks.
    fn merge(&mut self) {
        self.chunks.dedup_by(|chunk, last| {
            let both_free = last.holder.is_none() && chunk.holder.is_none();
            last.size += if both_free { chunk.size } else { 0 };
            both_free
        });
    }
}

/// Sums over the chunks.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) requested: u64,
    pub(crate) in_use: u64,
    /// Bytes in use if each request had exactly its granules.
    pub(crate) tight: u64,
    /// Number of chunks in use.
    pub(crate) held: u64,
    pub(crate) free: u64,
    pub(crate) largest_free: u64,
}

/// All regions, in address order.
#[derive(Debug, Default)]
pub(crate) struct Space {
    regions: Vec<Region>,
}

impl Space {
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.regions.iter().flat_map(|region| &region.chunks)
    }

    pub(crate) fn free(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks().filter(|chunk| chunk.holder.is_none())
    }

    pub(crate) fn held(&self) -> impl Iterator<Item = (&Chunk, Holder)> {
        self.chunks().filter_map(|chunk| Some((chunk, chunk.holder?)))
    }

    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Sums up all chunks.
    pub(crate) fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        for chunk in self.chunks() {
            if let Some(holder) = chunk.holder {
                sums.requested += holder.requested;
                sums.in_use += chunk.size;
                sums.tight += chunk.size.min(holder.requested.div_ceil(256) * 256);
                sums.held += 1;
            } else {
                sums.free += chunk.size;
                sums.largest_free = sums.largest_free.max(chunk.size);
            }
        }
        sums
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.regions.iter().map(|region| region.span.bytes).sum()
    }

    pub(crate) fn releasable(&self) -> u64 {
        self.regions.iter().filter(|region| region.is_free()).map(|region| region.span.bytes).sum()
    }

    /// Returns the smallest free chunk of at least `needed` bytes, the lowest address among equals.
    pub(crate) fn best_fit(&self, needed: u64) -> Option<Chunk> {
        self.free()
            .filter(|chunk| chunk.size >= needed)
            .min_by_key(|chunk| (chunk.size, chunk.address))
            .copied()
    }

    pub(crate) fn chunk_at(&self, address: u64) -> Option<Chunk> {
        self.chunks().find(|chunk| chunk.address == address).copied()
    }

    /// Allocates `size` bytes from `address` on in the chunk at `of`; what lies before and behind them stays free.
    pub(crate) fn hand_out(&mut self, of: u64, address: u64, size: u64, holder: Holder) {
        for region in &mut self.regions {
            if let Some(at) = region.chunks.iter().position(|chunk| chunk.address == of) {
                let whole = region.chunks[at];
                let end = address + size;
                let parts = [
                    Chunk { size: address - of, holder: None, ..whole },
                    Chunk { address, size, holder: Some(holder) },
                    Chunk { address: end, size: of + whole.size - end, holder: None },
                ];
                region.chunks.splice(at..=at, parts.into_iter().filter(|part| part.size > 0));
                return;
            }
        }
        panic!("no chunk at {of}");
    }

    /// Returns the bytes to which the allocation at `address` can grow: its chunk and the free one after it.
    pub(crate) fn possible_at(&self, address: u64) -> u64 {
        let region =
            self.regions.iter().find(|region| address >= region.span.address && address < region.span.end());
        let mut chunks = region.expect("a region").chunks.iter().skip_while(|chunk| chunk.address != address);
        let own = chunks.next().expect("a chunk").size;
        own + chunks.next().filter(|next| next.holder.is_none()).map_or(0, |next| next.size)
    }

    /// Resizes the allocation at `address`, with the free chunk after it, to exactly its granules.
    pub(crate) fn resize(&mut self, address: u64, bytes: u64) {
        for region in &mut self.regions {
            if let Some(at) = region.chunks.iter().position(|chunk| chunk.address == address) {
                let Chunk { size, holder, .. } = region.chunks[at];
                let holder = Holder { requested: bytes, ..holder.expect("an allocation") };
                region.chunks[at].holder = None;
                let whole = region
                    .chunks
                    .get(at + 1)
                    .filter(|next| next.holder.is_none())
                    .map_or(size, |next| size + next.size);
                if whole > size {
                    region.chunks.remove(at + 1);
                }
                region.chunks[at].size = whole;
                self.hand_out(address, address, bytes.div_ceil(256) * 256, holder);
                return;
            }
        }
    }

    /// Gives the chunk in use at `address` to another allocation.
    pub(crate) fn set_holder(&mut self, address: u64, holder: Holder) {
        let mut chunks = self.regions.iter_mut().flat_map(|region| &mut region.chunks);
        let chunk = chunks.find(|chunk| chunk.address == address).expect("a chunk in use");
        assert!(chunk.holder.is_some(), "a chunk in use");
        chunk.holder = Some(holder);
    }

    /// Frees the chunk at `address`.
    pub(crate) fn free_at(&mut self, address: u64) {
        for region in &mut self.regions {
            if let Some(chunk) = region.chunks.iter_mut().find(|chunk| chunk.address == address) {
                chunk.holder = None;
                region.merge();
                return;
            }
        }
    }

    /// Returns whether a span shares a byte with a region; an empty span may lie inside one.
    pub(crate) fn overlaps(&self, span: Grant) -> bool {
        self.regions.iter().any(|region| span.address < region.span.end() && region.span.address < span.end())
    }

    /// Adds a span: joined to the region that ends at its start if wanted, else as a region.
    pub(crate) fn add(&mut self, span: Grant, join: bool) {
        assert!(!self.overlaps(span) && span.end() <= MAX_BYTES, "{span:?} cannot be a region");
        let chunk = Chunk { address: span.address, size: span.bytes, holder: None };
        if let Some(region) = self.regions.iter_mut().find(|region| join && region.span.end() == span.address)
        {
            region.span.bytes += span.bytes;
            region.chunks.push(chunk);
            region.merge();
        } else {
            self.regions.push(Region { span, chunks: vec![chunk] });
            self.regions.sort_by_key(|region| region.span.address);
        }
    }

    /// Removes every wholly free region.
    pub(crate) fn give_up(&mut self) -> Vec<Grant> {
        let (gone, stay) = std::mem::take(&mut self.regions).into_iter().partition(Region::is_free);
        self.regions = stay;
        Vec::into_iter(gone).map(|region: Region| region.span).collect()
    }

    /// Returns the same as snapshots; fails if the chunks do not cover their region exactly.
    pub(crate) fn snapshot(&self) -> Vec<RegionSnapshot> {
        let regions = self.regions.iter().map(|region| {
            let mut end = region.span.address;
            for chunk in &region.chunks {
                assert_eq!(chunk.address, end, "a gap or an overlap in {region:?}");
                end += chunk.size;
            }
            assert_eq!(end, region.span.end(), "the end is not covered in {region:?}");
            let chunks = region.chunks.iter().map(|chunk| ChunkSnapshot {
                address: chunk.address,
                size: chunk.size,
                requested: chunk.holder.map_or(0, |holder| holder.requested),
                id: chunk.holder.map_or(0, |holder| holder.id),
                in_use: chunk.holder.is_some(),
                owner: None,
            });
            RegionSnapshot { address: region.span.address, size: region.span.bytes, chunks: chunks.collect() }
        });
        regions.collect()
    }
}
