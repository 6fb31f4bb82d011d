use super::*;

fn damage(place: DamagedPlace, offset: i64) -> Damage {
    Damage { place, address: 0x1100, requested: 100, id: 7, offset }
}

#[test]
fn damage_says_which_allocation_where_and_what_to_look_for() {
    for (damage, said) in [
        (damage(DamagedPlace::Before, -1), "in front of its start, first at offset -1: look for"),
        (damage(DamagedPlace::Behind, 100), "past its end, first at offset 100: look for"),
        (damage(DamagedPlace::Freed, 5), "after it was freed, first at offset 5: look for"),
    ] {
        let text = damage.to_string();
        assert!(text.contains("allocation 7, 100 bytes at address 0x1100, was written to "), "{text}");
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn leaks_name_the_largest_and_count_all() {
    assert_eq!(Leaks::new("mine", Vec::new()), None);
    let live = |n: u64| Allocation { address: n << 12, size: n, requested: n, id: n };
    let one = Leaks::new("mine", vec![live(3)]).unwrap();
    assert_eq!(
        one.to_string(),
        "mine: 1 allocation was never freed, 3 bytes\n  allocation 3: 3 bytes at address 0x3000"
    );
    let many = Leaks::new("mine", (1..=7).map(live).collect()).unwrap();
    assert_eq!(many.bytes(), 28);
    let text = many.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "mine: 7 allocations were never freed, 28 bytes");
    assert_eq!((lines[1], lines[6]), ("  allocation 7: 7 bytes at address 0x7000", "  and 2 more"));
    assert_eq!(lines.len(), 7);
}

#[test]
fn the_quarantine_is_an_eighth_of_the_limit_and_never_large() {
    assert_eq!(default_quarantine(1 << 20), 128 << 10);
    assert_eq!(default_quarantine(512 << 20), 64 << 20);
    assert_eq!(default_quarantine(1 << 50), 64 << 20);
}
