use proptest::prelude::*;

use super::*;
use crate::test_strategies::{config, number, share, size};

#[test]
fn rounding_stops_at_the_granule() {
    assert_eq!([0, 1, 256, 257].map(round_up), [0, 256, 256, 512]);
    assert_eq!([0, 255, 256, 511].map(round_down), [0, 0, 256, 256]);
    assert_eq!(round_up(MAX_BYTES), MAX_BYTES);
}

#[test]
fn nine_tenths_are_taken_in_single_precision() {
    assert_eq!(round_up(nine_tenths(83_112_563_200)), 74_801_307_648);
    assert_eq!(round_up(nine_tenths(2_097_152)), 1_887_488);
}

#[test]
fn sizes_are_read_as_people_write_them() {
    let read = |text| parse_size(text).unwrap();
    assert_eq!(read("4096"), 4096);
    assert_eq!(read("1B"), 1);
    assert_eq!(read("3MiB"), 3 << 20);
    assert_eq!(read(" 3 MiB "), 3 << 20);
    assert_eq!(read("1.5GiB"), 3 << 29);
    assert_eq!(read("2TiB"), 2 << 40);
    assert_eq!(read("2GB"), 2_000_000_000);
    assert_eq!(read("0.3KiB"), 307);
    assert_eq!(read("9223372036854775552"), MAX_BYTES);
    assert_eq!(read("1gb"), 1_000_000_000);
    assert_eq!(read("1Gib"), 1 << 30);
    assert_eq!(read("7.5 EiB"), 15 << 59);
    assert_eq!(read("3pb"), 3_000_000_000_000_000);
}

#[test]
fn what_is_no_size_is_refused() {
    for text in
        ["", "MiB", "-1", "+1", "1e30", "12 parsecs", "1.GiB", ".5GiB", "1 2", "0x10", "٣MiB", "1XiB", "é"]
    {
        assert_eq!(parse_size(text), Err(SizeError::Unreadable), "{text:?}");
    }
    for text in ["9223372036854775553", "8388608TiB", &"9".repeat(60)] {
        assert_eq!(parse_size(text), Err(SizeError::TooLarge), "{text:?}");
    }
}

#[test]
fn bytes_print_with_a_unit() {
    let text = |bytes| Bytes(bytes).to_string();
    assert_eq!(text(0), "0 B");
    assert_eq!(text(1023), "1023 B");
    assert_eq!(text(24 << 20), "24 MiB");
    assert_eq!(text(3 << 29), "1.50 GiB");
    assert_eq!(text(MAX_BYTES), "7.99 EiB");
    assert_eq!(text(u64::MAX), "16.00 EiB");
    assert_eq!(text((1 << 20) - 1), "1.00 MiB");
    assert_eq!(text((1 << 20) - 1024), "1023 KiB");
}

#[test]
fn a_number_too_large_for_any_arithmetic_is_too_large() {
    // One thousandth more than 128 bits hold.
    for text in ["340282366920938463463374607431768211.999KB", "340282366920938463463374607431768211455.9GB"]
    {
        assert_eq!(parse_size(text), Err(SizeError::TooLarge), "{text}");
    }
}

/// Rounds to `bits` significant bits, ties to even.
fn nearest(number: u128, bits: u32) -> u128 {
    let mut unit = 1_u128;
    while number / unit >= 1 << bits {
        unit *= 2;
    }
    let (below, above) = (number / unit, number.div_ceil(unit));
    let (to_below, to_above) = (number - below * unit, above * unit - number);
    let up = to_above < to_below || (to_above == to_below && below % 2 == 1);
    (if up { above } else { below }) * unit
}

/// Computes `share_of` in integers: two roundings to 53 bits, then truncation.
fn exact_share(bytes: u64, share: f64) -> u128 {
    let bits = share.to_bits();
    let (exponent, fraction) = (bits >> 52, u128::from(bits & ((1 << 52) - 1)));
    // 2^-1074 is the unit of the smallest doubles; every other exponent doubles it.
    let (significand, doublings) =
        if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) };
    let product = nearest(nearest(u128::from(bytes), 53) * significand, 53);
    u32::try_from(1074 - doublings).ok().and_then(|halvings| product.checked_shr(halvings)).unwrap_or(0)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn rounding_is_division_by_the_granule(bytes in size()) {
        let wide = u128::from(bytes);
        prop_assert_eq!(u128::from(round_up(bytes)), wide.div_ceil(256) * 256);
        prop_assert!(round_up(bytes) <= MAX_BYTES);
    }

    #[test]
    fn rounding_down_takes_any_number(bytes in number()) {
        prop_assert_eq!(round_down(bytes), bytes / 256 * 256);
    }

    #[test]
    fn aligning_is_division_by_the_alignment(address in size(), power in 0..13_u32) {
        let alignment = 1_u64 << power;
        let aligned = u128::from(address).div_ceil(u128::from(alignment)) * u128::from(alignment);
        prop_assert_eq!(u128::from(align_up(address, alignment)), aligned);
    }

    #[test]
    fn nine_tenths_are_those_of_whole_numbers(bytes in number()) {
        // In single precision 0.9 is 15,099,494 / 2^24.
        let product = nearest(nearest(u128::from(bytes), 24) * 15_099_494, 24);
        prop_assert_eq!(u128::from(nine_tenths(bytes)), product >> 24);
    }

    #[test]
    fn a_share_is_that_of_whole_numbers(bytes in size(), share in share()) {
        prop_assert_eq!(u128::from(share_of(bytes, share)), exact_share(bytes, share));
    }

    #[test]
    fn more_never_becomes_less(one in size(), other in size(), share in share()) {
        let (less, more) = (one.min(other), one.max(other));
        prop_assert!(round_up(less) <= round_up(more) && round_down(less) <= round_down(more));
        prop_assert!(align_up(less, 4096) <= align_up(more, 4096));
        prop_assert!(nine_tenths(less) <= nine_tenths(more));
        prop_assert!(share_of(less, share) <= share_of(more, share));
    }

    #[test]
    fn a_ratio_lies_between_none_and_all(one in number(), other in number()) {
        let share = ratio(one.min(other), one.max(other));
        prop_assert!((0.0..=1.0).contains(&share), "{share}");
    }

    #[test]
    fn a_size_with_a_unit_is_read_exactly(
        whole in prop_oneof![any::<u128>(), size().prop_map(u128::from), (0..5000_u128)],
        decimals in "[0-9]{0,18}",
        unit in 0..SUFFIXES.len(),
        upper in any::<bool>(),
        space in " ?",
    ) {
        let (suffix, unit) = SUFFIXES[unit];
        let suffix = if upper { suffix.to_uppercase() } else { suffix.to_owned() };
        let point = if decimals.is_empty() { "" } else { "." };
        let read = parse_size(&format!("{whole}{point}{decimals}{space}{suffix}"));
        // All digits as one integer with that many decimals; far above the limit if it overflows.
        let digits: Option<u128> = format!("{whole}{decimals}").parse().ok();
        let scaled = digits.and_then(|digits| digits.checked_mul(u128::from(unit)));
        let scale = (0..decimals.len()).fold(1_u128, |scale, _| scale * 10);
        match scaled.map(|scaled| scaled / scale).filter(|&bytes| bytes <= u128::from(MAX_BYTES)) {
            Some(bytes) => prop_assert_eq!(read.map(u128::from), Ok(bytes)),
            None if whole > u128::from(MAX_BYTES) || scaled.is_some() => {
                prop_assert_eq!(read, Err(SizeError::TooLarge));
            }
            // More digits than 128 bits hold, for a number that may be within the limit.
            None => prop_assert!(read.is_ok_and(|bytes| bytes <= MAX_BYTES) || read == Err(SizeError::TooLarge)),
        }
    }

    #[test]
    fn any_text_is_a_size_or_refused(text in any::<String>(), digits in "[0-9.KMGTiB +-]{0,60}") {
        for text in [text, digits] {
            prop_assert!(parse_size(&text).unwrap_or(0) <= MAX_BYTES);
        }
    }

    #[test]
    fn what_prints_is_the_size_to_a_hundredth_of_its_unit(bytes in number()) {
        const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let text = Bytes(bytes).to_string();
        let (number, name) = text.split_once(' ').unwrap();
        let unit = 1_u128 << (10 * UNITS.iter().position(|&unit| unit == name).unwrap());
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "00"));
        let hundredths: u128 = format!("{whole}{decimals}").parse().unwrap();
        prop_assert!(whole.len() <= 4 && decimals.len() == 2 && hundredths < 102_400, "{text}");
        // Twice the distance in hundredths of the unit: at most one half up or down, or one where rounding up is not
        // allowed.
        let (printed, exact) = (hundredths * unit, u128::from(bytes) * 100);
        let allowed = if (LARGEST_PRINTED..=MAX_BYTES).contains(&bytes) { 2 * unit } else { unit };
        prop_assert!(2 * printed.abs_diff(exact) <= allowed + exact / (1 << 50), "{text} for {bytes}");
        prop_assert!(number.contains('.') || printed == exact, "{text} for {bytes}");
        if bytes <= MAX_BYTES {
            let (read, printed) = (parse_size(&text), printed / 100);
            prop_assert!(read.is_ok_and(|read| u128::from(read) == printed), "{text} is read as {read:?}");
        }
    }
}
