use super::*;

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
}

#[test]
fn what_is_no_size_is_refused() {
    for text in ["", "MiB", "-1", "+1", "1e30", "12 parsecs", "1.GiB", ".5GiB", "1 2", "0x10", "٣MiB", "1Gib"]
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
    assert_eq!(text(MAX_BYTES), "8.00 EiB");
    assert_eq!(text((1 << 20) - 1), "1.00 MiB");
    assert_eq!(text((1 << 20) - 1024), "1023 KiB");
}
