//! The numbers of elastic pools: pages, addresses, and how many pages to commit. Pure arithmetic.

/// Page sizes are powers of two from the granule up to this, in bytes.
pub(crate) const MAX_PAGE_SIZE: u64 = 1 << 30;

/// How many free chunks a request compares if the best fit lacks memory.
pub(crate) const CANDIDATES: usize = 16;

/// A range has this many times the addresses of the limit: chunks that live long leave holes, and a hole that is too
/// small costs only addresses.
const RANGE_PER_LIMIT: u64 = 4;

/// The fewest pages of a range.
const MIN_RANGE_PAGES: u64 = 64;

/// The most bytes of a range, unless one request needs more: a process has 2^47 addresses.
const MAX_RANGE: u64 = 1 << 42;

/// The share of the peak of requested bytes that may be committed above it, as a divisor.
const SLACK_DIVISOR: u64 = 50;

/// Returns the number of pages up to which a request commits further ones; above it free pages are moved.
///
/// A program that repeats itself places its chunks at the same addresses again and again, so that it needs no moves
/// once all those pages are committed. The pages above those in use at the peak are bounded: a fiftieth of the
/// requested bytes, and a page for each allocation, which has two ends.
pub(crate) fn most_committed(
    page_size: u64,
    touched: u64,
    peak_requested: u64,
    peak_live: u64,
    limit: u64,
) -> u64 {
    let slack = (peak_requested + peak_requested / SLACK_DIVISOR) / page_size + peak_live;
    slack.max(touched).min(limit / page_size)
}

/// Returns the number of touched pages from which on a request is worth a search for the place that touches the fewest:
/// half of the limit. Below it takes the best fit, which is found at once.
pub(crate) fn tight_from(page_size: u64, limit: u64) -> u64 {
    (limit / 2).div_ceil(page_size)
}

/// Returns the number of pages to ask for after the source declined `pages`: a tenth fewer, as for regions.
pub(crate) fn fewer_pages(pages: u64) -> u64 {
    pages - pages.div_ceil(10)
}

/// Returns the bytes of the next range of addresses to reserve: the wanted ones, and the fewest that serve the request.
pub(crate) fn range_bytes(page_size: u64, limit: u64, needed: u64) -> (u64, u64) {
    let least = needed.saturating_add(page_size).checked_next_multiple_of(page_size).unwrap_or(u64::MAX);
    let wanted = limit.saturating_mul(RANGE_PER_LIMIT).min(MAX_RANGE).max(page_size * MIN_RANGE_PAGES);
    let wanted = wanted.checked_next_multiple_of(page_size).unwrap_or(MAX_RANGE);
    (wanted.max(least), least)
}

#[cfg(test)]
mod tests;
