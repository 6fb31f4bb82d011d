use super::*;

fn records(count: u64) -> (Records, Vec<Handle>) {
    let mut records = Records::default();
    let push = |size| records.push(Chunk { size, ..Chunk::default() });
    let handles = (1..=count).map(push).collect();
    (records, handles)
}

#[test]
fn a_handle_is_good_however_much_the_table_grows() {
    let (mut records, handles) = records(5_000);
    for (&handle, size) in handles.iter().zip(1..) {
        assert_eq!(records.get(handle).size, size);
        records.get_mut(handle).address = size;
        assert_eq!(records.handle(handle.number()), handle);
    }
    // Each record was written once: no two handles refer to overlapping records.
    assert_eq!(records.all().len(), handles.len());
    assert!(records.all().iter().all(|chunk| chunk.address == chunk.size && chunk.requested == 0));
}

#[test]
#[should_panic(expected = "the number of a handle")]
fn a_number_between_two_records_is_no_handle() {
    let (records, handles) = records(3);
    let _ = records.handle(NonZeroU32::new(handles[0].number().get() + 1).unwrap());
}

#[test]
#[should_panic(expected = "the number of a handle")]
fn a_number_after_the_last_is_no_handle() {
    let (records, handles) = records(3);
    let after = handles[2].number().get() + u32::try_from(WORDS).unwrap();
    let _ = records.handle(NonZeroU32::new(after).unwrap());
}

#[test]
fn every_address_has_a_list_of_its_own_or_shares_one() {
    let (_, handles) = records(1);
    let mut heads = Heads::new(1);
    for power in 1..16 {
        assert_eq!(heads.all().len(), 1 << power);
        for bit in 0..64 {
            for address in [1_u64 << bit, (1 << bit) - 1, !(1 << bit)] {
                *heads.get_mut(address) = Some(handles[0]);
                assert_eq!(heads.get(address), Some(handles[0]));
            }
        }
        // Multiples of the granule are spread: no list has twice its share.
        let fresh = Heads::new(power);
        let mut counts = vec![0_u32; 1 << power];
        (0..8 << power).for_each(|granule: u64| counts[fresh.slot(granule * 256)] += 1);
        assert!(counts.iter().all(|&count| (4..=12).contains(&count)), "{power}: {counts:?}");
        heads = heads.twice();
    }
}
