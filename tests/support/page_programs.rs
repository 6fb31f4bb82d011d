//! Random programs of pages, against a model: a stamp for each page that has memory.

use std::collections::BTreeMap;

use allotment::source::{CheckedPages, CommittedPages, Grant, PageSource, RegionSource, ReserveError};

use crate::numbers::Numbers;

/// What a source of pages is expected to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// Its memory has content: stamps are written and read.
    pub(crate) has_content: bool,
    /// It moves pages, rather than to decline.
    pub(crate) moves: bool,
    /// The most bytes that have memory at once.
    pub(crate) capacity: u64,
}

/// A program over a source.
pub(crate) struct PageProgram<S> {
    source: CheckedPages<S>,
    pub(crate) account: CommittedPages,
    page_size: u64,
    expected: Expected,
    random: Numbers,
    ranges: Vec<Grant>,
    /// Address of each page that has memory, and its stamp.
    stamps: BTreeMap<u64, u64>,
    /// How often a recycling freed memory.
    pub(crate) recycled: u64,
    /// Pages that were moved.
    pub(crate) moved: u64,
}

impl<S: RegionSource> PageProgram<S> {
    pub(crate) fn new(source: S, page_size: u64, expected: Expected, seed: u64) -> Self {
        let (source, account) = CheckedPages::new(source, page_size);
        let random = Numbers::new(seed);
        Self {
            source,
            account,
            page_size,
            expected,
            random,
            ranges: Vec::new(),
            stamps: BTreeMap::new(),
            recycled: 0,
            moved: 0,
        }
    }

    /// Plays random steps over ranges of up to `pages` pages, and gives everything back.
    pub(crate) fn play(&mut self, steps: u64, pages: u64) {
        for step in 0..steps {
            self.step(pages);
            if step % 256 == 0 {
                self.check_stamps();
            }
        }
        self.end();
    }

    /// Plays a random step.
    pub(crate) fn step(&mut self, pages: u64) {
        match self.random.below(100) {
            0..2 => self.reserve(pages),
            2..3 => self.release(),
            3..20 => self.commit(),
            20..30 => self.decommit(),
            _ => self.move_pages(),
        }
        self.check_figures();
    }

    /// Gives everything back.
    pub(crate) fn end(&mut self) {
        self.check_stamps();
        while !self.ranges.is_empty() {
            self.release();
        }
        assert_eq!((self.account.bytes(), self.account.ranges().len()), (0, 0));
    }

    fn pages(&mut self) -> &mut dyn PageSource {
        self.source.pages().expect("a source of pages")
    }

    fn check_figures(&self) {
        assert_eq!(self.account.bytes(), self.stamps.len() as u64 * self.page_size);
        assert!(self.account.bytes() <= self.expected.capacity);
    }

    /// Returns a random span of one range, mostly of few pages.
    fn span(&mut self) -> Option<Grant> {
        if self.ranges.is_empty() {
            return None;
        }
        let range = self.ranges[self.random.place(self.ranges.len())];
        let pages = range.bytes / self.page_size;
        let most = if self.random.chance(90) { pages.min(4) } else { pages };
        let count = 1 + self.random.below(most);
        let first = self.random.below(pages - count + 1);
        Some(Grant { address: range.address + first * self.page_size, bytes: count * self.page_size })
    }

    fn addresses(&self, span: Grant) -> Vec<u64> {
        let pages = span.bytes / self.page_size;
        (0..pages).map(|page| span.address + page * self.page_size).collect()
    }

    /// Returns a random span in which all pages have memory, or none has: the first such pages of a random span, or
    /// after it.
    fn uniform(&mut self, committed: bool) -> Option<Grant> {
        let span = self.span()?;
        let range =
            *self.ranges.iter().find(|range| range.address <= span.address && span.end() <= range.end())?;
        let is_same = |address: &u64| self.stamps.contains_key(address) == committed;
        let rest = self.addresses(Grant { bytes: range.end() - span.address, ..span });
        let start = rest.iter().position(is_same)?;
        let most = usize::try_from(span.bytes / self.page_size).expect("a small number");
        let count = rest[start..].iter().take(most).take_while(|address| is_same(address)).count() as u64;
        Some(Grant { address: rest[start], bytes: count * self.page_size })
    }

    fn reserve(&mut self, pages: u64) {
        if self.ranges.len() < 6 {
            let bytes = (1 + self.random.below(pages)) * self.page_size;
            let page_size = self.page_size;
            let range = self.pages().reserve_addresses(bytes, page_size).expect("addresses");
            self.ranges.push(range);
        }
    }

    fn release(&mut self) {
        if self.ranges.is_empty() {
            return;
        }
        let place = self.random.place(self.ranges.len());
        let range = self.ranges.swap_remove(place);
        for address in self.addresses(range) {
            if self.stamps.remove(&address).is_some() {
                let span = Grant { address, bytes: self.page_size };
                self.pages().decommit(span).expect("memory that can be taken");
            }
        }
        self.pages().release_addresses(range);
    }

    fn commit(&mut self) {
        let Some(span) = self.uniform(false) else { return };
        let fits = self.account.bytes() + span.bytes <= self.expected.capacity;
        let mut result = self.pages().commit(span);
        for range in self.ranges.clone() {
            if result.is_ok() {
                break;
            }
            // What is decommitted may only be free now.
            if self.pages().recycle(range).expect("a range that can be recycled") {
                self.recycled += 1;
                result = self.pages().commit(span);
            }
        }
        match result {
            Ok(()) => {
                assert!(fits, "more than there is");
                self.stamp(span);
            }
            Err(ReserveError::Declined) => assert!(!fits, "it fits"),
            Err(ReserveError::Failed(failure)) => panic!("{failure}"),
        }
    }

    fn decommit(&mut self) {
        let Some(span) = self.uniform(true) else { return };
        self.pages().decommit(span).expect("memory that can be taken");
        for address in self.addresses(span) {
            self.stamps.remove(&address);
        }
    }

    fn move_pages(&mut self) {
        let (Some(from), Some(to)) = (self.uniform(true), self.uniform(false)) else { return };
        let bytes = from.bytes.min(to.bytes);
        let (from, to) = (Grant { bytes, ..from }, Grant { bytes, ..to });
        let moved = self.pages().move_pages(from, to.address);
        match moved {
            Ok(()) => {
                assert!(self.expected.moves, "it cannot move");
                for address in self.addresses(from) {
                    self.stamps.remove(&address);
                }
                self.stamp(to);
                self.moved += bytes / self.page_size;
            }
            Err(ReserveError::Declined) => assert!(!self.expected.moves, "it can move"),
            Err(ReserveError::Failed(failure)) => panic!("{failure}"),
        }
    }

    /// Writes new stamps at the start and the end of each page.
    fn stamp(&mut self, span: Grant) {
        let end = self.page_size - 8;
        for address in self.addresses(span) {
            let stamp = self.random.next();
            self.stamps.insert(address, stamp);
            // Not all pages that have memory are written to.
            if self.expected.has_content && !stamp.is_multiple_of(8) {
                for at in [address, address + end] {
                    self.pages().write(at, &stamp.to_ne_bytes()).expect("memory that can be written");
                }
            }
        }
    }

    /// Reads the stamps of all pages.
    pub(crate) fn check_stamps(&mut self) {
        if !self.expected.has_content {
            return;
        }
        let end = self.page_size - 8;
        for (address, stamp) in self.stamps.clone() {
            for at in [address, address + end] {
                let mut found = [0; 8];
                self.pages().read(at, &mut found).expect("memory that can be read");
                let found = u64::from_ne_bytes(found);
                assert!(
                    stamp.is_multiple_of(8) || found == stamp,
                    "{found:#x} at {at:#x}, which is not {stamp:#x}"
                );
            }
        }
    }
}
