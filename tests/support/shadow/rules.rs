//! The rules as arithmetic, in another form than the allocator's.
//!
//! Everything is 128 bits wide, so nothing overflows or saturates.

use allotment::{Options, Policy};

const GRANULE: u128 = 256;
const MIB: u128 = 1 << 20;

/// The parameters that follow from a pool's options.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) limit: u64,
    pub(crate) joins_regions: bool,
    pub(crate) trim_on_oom: bool,
    /// A remainder of this many bytes is always kept.
    pub(crate) kept_from: u128,
    /// The first growth step.
    pub(crate) first_step: u128,
}

impl Rules {
    /// Returns the rules of a pool with `options` on a source that says whether it `joins_regions`.
    pub(crate) fn new(options: &Options, source_joins: bool) -> Self {
        let limit = u128::from(options.limit);
        let kept_from = if options.policy == Policy::Tight {
            1
        } else if options.fragmentation_fraction > 0.0 {
            share(options.limit, options.fragmentation_fraction).max(1)
        } else {
            128 * MIB
        };
        Self {
            limit: options.limit,
            joins_regions: options.joins_regions.unwrap_or(source_joins),
            trim_on_oom: options.trim_on_oom,
            kept_from,
            first_step: in_granules(if options.growth { limit.min(2 * MIB) } else { limit }),
        }
    }

    /// Returns whether a chunk of `size` bytes is split for a request of `needed` bytes.
    pub(crate) fn splits(&self, size: u64, needed: u64) -> bool {
        let (size, needed) = (u128::from(size), u128::from(needed));
        size >= 2 * needed || size - needed >= self.kept_from
    }

    /// Returns the room under the limit with `reserved` bytes reserved.
    pub(crate) fn room(&self, reserved: u64) -> u64 {
        (self.limit - reserved) / 256 * 256
    }
}

/// Rounds up to whole granules.
pub(crate) fn in_granules(bytes: u128) -> u128 {
    bytes.div_ceil(GRANULE) * GRANULE
}

/// Returns the next size after a refusal: nine tenths, but at least a granule less.
pub(crate) fn less_than(asked: u64) -> u64 {
    let asked = u128::from(asked);
    let tenth_off = in_granules(nine_tenths(asked)).min(asked - GRANULE);
    tenth_off.try_into().expect("less than a number of 64 bits")
}

/// Returns nine tenths in single precision, in integers: 0.9 is 15,099,494 / 2^24 there.
fn nine_tenths(bytes: u128) -> u128 {
    in_24_bits(in_24_bits(bytes) * 15_099_494) >> 24
}

/// Rounds to 24 significant bits, ties to even.
fn in_24_bits(number: u128) -> u128 {
    let bits = u128::BITS - number.leading_zeros();
    let Some(surplus) = bits.checked_sub(24).filter(|&surplus| surplus > 0) else { return number };
    let kept = number >> surplus;
    let (cut, half) = (number - (kept << surplus), 1 << (surplus - 1));
    let up = cut > half || (cut == half && kept % 2 == 1);
    (kept + u128::from(up)) << surplus
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the product of two doubles, cut, is the rule"
)]
fn share(limit: u64, fraction: f64) -> u128 {
    (limit as f64 * fraction).trunc() as u128
}
