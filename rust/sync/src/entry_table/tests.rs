//! The table beside an ordinary map, and many threads that remove the same entries.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::{Entry, EntryTable, WAYS, bucket_of};

fn entry(number: u64) -> Entry {
    Entry { number, value: u32::try_from(number).expect("small numbers") }
}

#[test]
fn a_table_finds_what_was_put_until_it_is_removed() {
    let table = EntryTable::new();
    let mut expected = BTreeMap::new();
    for number in 1..4_000 {
        let key = 256 + number * 256 % 65_536;
        if let Some(old) = expected.remove(&key) {
            let found = table.find(key).unwrap();
            assert_eq!((found.entry, table.key(found.place)), (old, key));
            assert!(table.remove(&found) && !table.remove(&found));
            table.release(found.place);
        } else if let Some(place) = table.reserve(key) {
            assert!(table.find(key).is_none(), "the place is empty");
            table.put(place, entry(number));
            expected.insert(key, entry(number));
        }
        assert_eq!(table.find(key).map(|found| found.entry), expected.get(&key).copied());
    }
    let mut rest = BTreeMap::new();
    table.drain(|key, entry| assert_eq!(rest.insert(key, entry), None));
    assert_eq!(rest, expected);
    table.drain(|key, _| panic!("{key} was removed before"));
}

#[test]
fn a_full_bucket_has_no_place() {
    let table = EntryTable::new();
    let of_one_bucket = (1..).map(|n| n * 256).filter(|&key| bucket_of(key) == bucket_of(256));
    let keys: Vec<u64> = of_one_bucket.take(WAYS + 1).collect();
    let places: Vec<_> = keys[..WAYS].iter().map(|&key| table.reserve(key).unwrap()).collect();
    assert_eq!(table.reserve(keys[WAYS]), None);
    table.release(places[1]);
    assert_eq!(table.reserve(keys[WAYS]), Some(places[1]));
}

#[test]
fn an_entry_that_was_replaced_is_not_removed_in_place_of_the_one_found() {
    let table = EntryTable::new();
    let place = table.reserve(256).unwrap();
    table.put(place, entry(1));
    let first = table.find(256).unwrap();
    assert!(table.remove(&first));
    table.put(place, entry(2));
    assert!(!table.remove(&first));
    assert_eq!(table.find(256).unwrap().entry, entry(2));
}

#[test]
fn of_many_threads_one_removes_an_entry() {
    let table = EntryTable::new();
    let keys = [256, 512, 768, 1024];
    for (key, number) in keys.into_iter().zip(1..) {
        table.put(table.reserve(key).unwrap(), entry(number));
    }
    let (next, removed) = (AtomicU64::new(5), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..20_000 {
                    let key = keys[round % keys.len()];
                    if let Some(found) = table.find(key).filter(|found| table.remove(found)) {
                        assert_eq!(u64::from(found.entry.value), found.entry.number);
                        removed.fetch_add(1, Ordering::Relaxed);
                        // The place is of this thread alone now.
                        table.put(found.place, entry(next.fetch_add(1, Ordering::Relaxed)));
                    }
                }
            });
        }
    });
    let mut rest = 0;
    table.drain(|_, _| rest += 1);
    assert_eq!((rest, next.into_inner() - 1), (4, removed.into_inner() + 4));
}
