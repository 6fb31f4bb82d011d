//! Proptest strategies for sizes: all powers of two are equally likely, and edge cases are frequent.

use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::units::{GRANULE, MAX_BYTES};

/// The configuration of every property: no failure files, as a failing case becomes a test of its own.
pub(crate) fn config() -> Config {
    Config { cases: 2000, failure_persistence: None, ..Config::default() }
}

/// Generates sizes up to [`MAX_BYTES`].
pub(crate) fn size() -> impl Strategy<Value = u64> {
    let edges = prop::sample::select(vec![
        0,
        1,
        255,
        256,
        257,
        511,
        512,
        MAX_BYTES - GRANULE,
        MAX_BYTES - 1,
        MAX_BYTES,
    ]);
    let near_a_power = (0..63_u32, -600..600_i64)
        .prop_map(|(power, off)| (1_u64 << power).saturating_add_signed(off).min(MAX_BYTES));
    let any_power = (any::<u64>(), 1..64_u32).prop_map(|(bits, shift)| (bits >> shift).min(MAX_BYTES));
    prop_oneof![1 => edges, 2 => near_a_power, 4 => any_power]
}

/// Generates 64-bit numbers, with frequent values near the maximum.
pub(crate) fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => size(), 1 => (0..2000_u64).prop_map(|below| u64::MAX - below), 1 => any::<u64>()]
}

/// Generates valid limits of a pool.
pub(crate) fn limit() -> impl Strategy<Value = u64> {
    size().prop_map(|bytes| bytes.max(1))
}

/// Generates fractions between 0 and 1, with frequent small values and ends.
pub(crate) fn share() -> impl Strategy<Value = f64> {
    let ends = prop::sample::select(vec![0.0, f64::MIN_POSITIVE, 5e-324, f64::EPSILON, 0.5, 1.0]);
    let small = (0.0..1.0, 0..64_i32).prop_map(|(share, power): (f64, i32)| share * 0.5_f64.powi(power));
    prop_oneof![1 => ends, 4 => small]
}
