use crate::source::AddressSpace;
use crate::{Options, Pool, set_tag};

const KIB: u64 = 1 << 10;

#[test]
fn the_longest_text_is_25_lines_and_names_what_is_in_the_way() {
    let limit = 64 * KIB * KIB;
    let pool = Pool::new(AddressSpace::new(0), Options::new(limit).growth(false).owner_tags(true));
    let pool = pool.unwrap();
    let mut live = Vec::new();
    for number in 0..4_000_u64 {
        set_tag(Some(format!("layer {}", number % 8).into()));
        live.push(pool.allocate((8 + number % 8) * KIB).unwrap());
    }
    set_tag(None);
    live.iter().step_by(2).for_each(|allocation| pool.free(allocation.address).unwrap());
    let refused = pool.explain(40 * KIB * KIB).unwrap().expect("in pieces");
    let text = refused.to_string();
    assert!(text.lines().count() <= 25, "{text}");
    for words in [
        "asked for 40 MiB (41943040 bytes)",
        "set by limit",
        "fragmented, not full",
        "between holes of",
        "in 2000 allocations",
        "most by size",
        "of layer 7",
        "raise the limit to",
    ] {
        assert!(text.contains(words), "{words:?} is missing in\n{text}");
    }
}
