//! Byte quantities: the granule, rounding, and human-readable sizes.

use alloc::format;
use core::fmt;

use thiserror::Error;

/// The unit of chunk and region sizes in bytes: all are multiples of it.
pub const GRANULE: u64 = 256;

/// The largest request and the largest limit, in bytes.
///
/// Up to this size, rounding up and adding a region to an address cannot overflow 64 bits, and every figure fits the
/// signed 64-bit fields of consumers of the statistics.
pub const MAX_BYTES: u64 = (1 << 63) - GRANULE;

/// Rounds up to a multiple of the granule; `bytes` is at most [`MAX_BYTES`].
pub(crate) const fn round_up(bytes: u64) -> u64 {
    (bytes + (GRANULE - 1)) & !(GRANULE - 1)
}

/// Rounds down to a multiple of the granule.
pub(crate) const fn round_down(bytes: u64) -> u64 {
    bytes & !(GRANULE - 1)
}

/// Rounds up to a multiple of `alignment`, a power of two; `address` is at most [`MAX_BYTES`].
pub(crate) const fn align_up(address: u64, alignment: u64) -> u64 {
    (address + (alignment - 1)) & !(alignment - 1)
}

/// Returns nine tenths of `bytes`, computed in single precision and truncated.
///
/// The precision is part of the result: 83,112,563,200 gives 74,801,307,648 after rounding here, and 74,801,306,880
/// in double precision. The reference allocator computes it this way.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "rounding to single precision and cutting the fraction is the definition"
)]
pub(crate) fn nine_tenths(bytes: u64) -> u64 {
    (bytes as f32 * 0.9_f32) as u64
}

/// Returns `fraction` of `bytes`, truncated; `fraction` is between 0 and 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the product of two non-negative doubles, cut, is the definition"
)]
pub(crate) fn share_of(bytes: u64, fraction: f64) -> u64 {
    (bytes as f64 * fraction) as u64
}

/// Returns `part / whole`, or 0 if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The largest size whose text with two decimals parses to at most [`MAX_BYTES`]: `7.99 EiB`.
const LARGEST_PRINTED: u64 = (1 << 60) / 100 * 799;

/// A number of bytes that prints with a unit: `24 MiB`, `1.51 GiB`, `300 B`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let mut unit = 0;
        while unit + 1 < UNITS.len() && self.0 >> (10 * (unit + 1)) != 0 {
            unit += 1;
        }
        let one = 1_u64 << (10 * unit);
        let name = UNITS[unit];
        if self.0.is_multiple_of(one) {
            return f.pad(&format!("{} {name}", self.0 / one));
        }
        // The printed text of every valid size parses again.
        let shown = if self.0 <= MAX_BYTES { self.0.min(LARGEST_PRINTED) } else { self.0 };
        let text = format!("{:.2}", ratio(shown, one));
        // Just below the next unit, two decimals round up to it.
        match UNITS.get(unit + 1) {
            Some(next) if text == "1024.00" => f.pad(&format!("1.00 {next}")),
            _ => f.pad(&format!("{text} {name}")),
        }
    }
}

/// Why a text is not a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SizeError {
    /// No number, or an unknown unit after it.
    #[error(
        "not a size: write a number and a unit such as 4096, 512KiB, 1.5GiB or 2GB (B; KiB, MiB, GiB, TiB, PiB, EiB; \
         KB, MB, GB, TB, PB, EB; upper or lower case)"
    )]
    Unreadable,
    /// More than [`MAX_BYTES`].
    #[error("too large: the largest size is {MAX_BYTES} bytes")]
    TooLarge,
}

/// Units by suffix, in lower case; `b` is the end of the other suffixes and comes last.
const SUFFIXES: [(&str, u64); 13] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
    ("eib", 1 << 60),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("pb", 1_000_000_000_000_000),
    ("eb", 1_000_000_000_000_000_000),
    ("b", 1),
];

/// Parses a size such as `4096`, `512KiB`, `1.5GiB` or `2GB`; a fraction of a byte is dropped.
///
/// `KiB` to `EiB` are powers of 1024, `KB` to `EB` powers of 1000; without a suffix the number is in bytes. Suffixes
/// are case-insensitive. Parses everything that [`Bytes`] prints for sizes up to [`MAX_BYTES`].
///
/// # Errors
/// If the text is not a size, or the size exceeds [`MAX_BYTES`].
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    let (number, unit) = SUFFIXES
        .iter()
        .find_map(|&(suffix, unit)| {
            let (number, end) = text.split_at_checked(text.len().checked_sub(suffix.len())?)?;
            end.eq_ignore_ascii_case(suffix).then_some((number.trim_end(), unit))
        })
        .unwrap_or((text, 1));
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 18 {
        return Err(SizeError::Unreadable);
    }
    // 128 bits: a number that overflows them is far above the limit.
    let whole: u128 = whole.parse().map_err(|_| SizeError::TooLarge)?;
    let scale = 10_u128.pow(u32::try_from(decimals.len()).map_err(|_| SizeError::Unreadable)?);
    let decimals: u128 = decimals.parse().map_err(|_| SizeError::Unreadable)?;
    let unit = u128::from(unit);
    whole
        .checked_mul(unit)
        .and_then(|bytes| bytes.checked_add(decimals * unit / scale))
        .and_then(|bytes| u64::try_from(bytes).ok())
        .filter(|&bytes| bytes <= MAX_BYTES)
        .ok_or(SizeError::TooLarge)
}

#[cfg(test)]
mod tests;
