//! How the allocator rounds requests and sizes segments: pure arithmetic.

pub(super) const MIN_BLOCK: u64 = 512;
pub(super) const SMALL: u64 = 1 << 20;
pub(super) const SMALL_SEGMENT: u64 = 2 << 20;
pub(super) const LARGE_SEGMENT: u64 = 20 << 20;
pub(super) const SEGMENT_STEP: u64 = 2 << 20;
const MIN_OWN_SEGMENT: u64 = 10 << 20;

/// Rounds a request as the allocator does.
pub(super) fn round_size(bytes: u64, divisions: u64) -> u64 {
    if bytes < MIN_BLOCK {
        return MIN_BLOCK;
    }
    if divisions > 0 && bytes > MIN_BLOCK * divisions {
        return round_to_division(bytes, divisions);
    }
    bytes.next_multiple_of(MIN_BLOCK)
}

/// Rounds up to the next of `divisions` equal steps between two powers of two.
fn round_to_division(bytes: u64, divisions: u64) -> u64 {
    if bytes.is_power_of_two() || divisions <= 1 {
        return bytes.next_power_of_two();
    }
    let floor = 1 << bytes.ilog2();
    let step = floor / divisions;
    if step == 0 { bytes.next_power_of_two() } else { floor + (bytes - floor).next_multiple_of(step) }
}

/// Returns the bytes of the segment that is taken for a rounded request.
pub(super) fn segment_size(size: u64) -> u64 {
    if size <= SMALL {
        SMALL_SEGMENT
    } else if size < MIN_OWN_SEGMENT {
        LARGE_SEGMENT
    } else {
        size.next_multiple_of(SEGMENT_STEP)
    }
}
