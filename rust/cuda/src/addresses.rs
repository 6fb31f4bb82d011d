//! A range of reserved addresses, and which of them are free.

use std::collections::BTreeMap;

use allotment::source::Grant;

/// Reserved addresses. Spans are taken from the lowest free address that has room, so that one follows another.
#[derive(Debug)]
pub(crate) struct AddressRange {
    pub(crate) span: Grant,
    /// Start to end of each free span; no two are adjacent.
    free: BTreeMap<u64, u64>,
}

impl AddressRange {
    /// Creates a range of which `taken`, at its start, is not free.
    pub(crate) fn new(span: Grant, taken: Grant) -> Self {
        let mut range = Self { span, free: BTreeMap::new() };
        if taken.end() < span.end() {
            range.free.insert(taken.end(), span.end());
        }
        range
    }

    /// Takes `bytes` addresses.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<Grant> {
        let (&start, &end) = self.free.iter().find(|(start, end)| *end - *start >= bytes)?;
        self.free.remove(&start);
        let taken = Grant { address: start, bytes };
        if taken.end() < end {
            self.free.insert(taken.end(), end);
        }
        Some(taken)
    }

    /// Returns addresses that were taken, and merges them with free neighbours.
    pub(crate) fn give_back(&mut self, span: Grant) {
        let end = self.free.remove(&span.end()).unwrap_or(span.end());
        let before = self.free.range(..span.address).next_back();
        let start = before.filter(|(_, end)| **end == span.address).map_or(span.address, |(start, _)| *start);
        self.free.insert(start, end);
    }

    pub(crate) fn contains(&self, span: Grant) -> bool {
        self.span.address <= span.address && span.end() <= self.span.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_follow_each_other_and_come_back_whole() {
        let all = Grant { address: 1 << 20, bytes: 100 };
        let mut range = AddressRange::new(all, all);
        range.give_back(all);
        let spans = [30, 20, 50].map(|bytes| range.take(bytes).unwrap());
        assert_eq!(spans.map(|span| span.address - all.address), [0, 30, 50]);
        assert_eq!(range.take(1), None);
        for order in [[0, 1, 2], [2, 0, 1], [0, 2, 1], [1, 0, 2]] {
            for which in order {
                range.give_back(spans[which]);
            }
            assert_eq!(range.take(100), Some(all), "{order:?}");
            range.give_back(all);
            assert_eq!([30, 20, 50].map(|bytes| range.take(bytes).unwrap()), spans);
        }
    }

    #[test]
    fn a_hole_is_used_again_where_it_has_room() {
        let first = Grant { address: 0, bytes: 10 };
        let mut range = AddressRange::new(Grant { address: 0, bytes: 100 }, first);
        let [hole, _] = [20, 30].map(|bytes| range.take(bytes).unwrap());
        range.give_back(hole);
        assert_eq!(range.take(21).unwrap().address, 60);
        assert_eq!(range.take(20), Some(hole));
    }
}
