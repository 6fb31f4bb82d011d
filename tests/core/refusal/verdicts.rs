//! Verdicts and figures of refusals.

use allotment::source::{AddressSpace, FailingSource};
use allotment::{Action, AllocError, MAX_BYTES, Options, OutOfMemory, Pool, Request, Verdict};

use super::{MIB, recorded, refused};

/// Separates the figures of a refusal from its advice, as actions and numbers.
fn split(refused: OutOfMemory) -> (OutOfMemory, Vec<(Action, u64)>) {
    let advice = refused.advice.iter().map(|advice| (advice.action, advice.bytes)).collect();
    (OutOfMemory { advice: Vec::new(), ..refused }, advice)
}

fn at_once(limit: u64) -> Options {
    Options::new(limit).growth(false)
}

#[test]
fn full_when_what_is_in_use_and_the_request_are_above_the_limit() {
    let (pool, _) = recorded(AddressSpace::new(0), at_once(64 * MIB));
    pool.allocate(24 * MIB).unwrap();
    pool.allocate(40 * MIB).unwrap();
    let expected = OutOfMemory {
        requested: 1,
        needed: 256,
        page_size: 0,
        limit: 64 * MIB,
        limit_set_by: "limit".into(),
        live_requested: 64 * MIB,
        in_use: 64 * MIB,
        internal_fragmentation: 0,
        reserved: 64 * MIB,
        free: 0,
        largest_free: 0,
        num_live: 2,
        verdict: Verdict::Full,
        scope_limit: None,
        advice: Vec::new(),
        details: None,
    };
    let (figures, advice) = split(refused(pool.allocate(1)));
    assert_eq!(figures, expected);
    assert_eq!(advice, [(Action::RaiseLimit, 64 * MIB + 256)]);
}

#[test]
fn slack_when_the_bytes_lost_inside_chunks_would_have_done() {
    let (pool, _) = recorded(AddressSpace::new(0), at_once(64 * MIB));
    pool.allocate(24 * MIB).unwrap();
    // 40 MiB are left. That is less than twice the request, so the chunk is not split.
    assert_eq!(pool.allocate(30 * MIB).unwrap().size, 40 * MIB);
    let out_of_memory = refused(pool.allocate(1));
    assert_eq!(out_of_memory.verdict, Verdict::Slack);
    let OutOfMemory { live_requested, in_use, internal_fragmentation, .. } = out_of_memory;
    assert_eq!((live_requested, in_use, internal_fragmentation), (54 * MIB, 64 * MIB, 10 * MIB));
    assert_eq!(refused(pool.allocate(10 * MIB)).verdict, Verdict::Slack);
    assert_eq!(refused(pool.allocate(10 * MIB + 1)).verdict, Verdict::Full);
    let explained = pool.explain(1).unwrap().unwrap();
    assert_eq!(explained.verdict, Verdict::Slack);
    let text = explained.to_string();
    assert!(
        text.contains("requested            54 MiB") && text.contains("lost in chunks       10 MiB"),
        "{text}"
    );
}

#[test]
fn fragmented_when_the_pieces_together_would_do() {
    let (pool, _) = recorded(AddressSpace::new(0), at_once(4 * MIB));
    let quarters = [(); 4].map(|()| pool.allocate(MIB).unwrap());
    pool.free(quarters[0].address).unwrap();
    pool.free(quarters[2].address).unwrap();
    let expected = OutOfMemory {
        requested: MIB + 1,
        needed: MIB + 256,
        page_size: 0,
        limit: 4 * MIB,
        limit_set_by: "limit".into(),
        live_requested: 2 * MIB,
        in_use: 2 * MIB,
        internal_fragmentation: 0,
        reserved: 4 * MIB,
        free: 2 * MIB,
        largest_free: MIB,
        num_live: 2,
        verdict: Verdict::Fragmented,
        scope_limit: None,
        advice: Vec::new(),
        details: None,
    };
    let (figures, advice) = split(refused(pool.allocate(MIB + 1)));
    assert_eq!(figures, expected);
    assert_eq!(advice, [(Action::RaiseLimit, 5 * MIB + 256), (Action::AskFor, MIB)]);
}

#[test]
fn fragmented_between_a_free_chunk_and_the_room_under_the_limit() {
    let (pool, _) = recorded(AddressSpace::new(256), Options::new(5 * MIB));
    pool.allocate(MIB).unwrap();
    // 1 MiB free in the region, 3 MiB under the limit, and a live chunk between the two.
    let out_of_memory = refused(pool.allocate(4 * MIB));
    assert_eq!(out_of_memory.verdict, Verdict::Fragmented);
    assert_eq!((out_of_memory.reserved, out_of_memory.in_use), (2 * MIB, MIB));
}

#[test]
fn limit_when_the_request_alone_is_above_it() {
    let (pool, log) = recorded(AddressSpace::new(0), Options::new(1_000_001));
    let expected = OutOfMemory {
        requested: 999_937,
        needed: 1_000_192,
        page_size: 0,
        limit: 1_000_001,
        limit_set_by: "limit".into(),
        live_requested: 0,
        in_use: 0,
        internal_fragmentation: 0,
        reserved: 0,
        free: 0,
        largest_free: 0,
        num_live: 0,
        verdict: Verdict::Limit,
        scope_limit: None,
        advice: Vec::new(),
        details: None,
    };
    let (figures, advice) = split(refused(pool.allocate(999_937)));
    assert_eq!(figures, expected);
    assert_eq!(advice, [(Action::RaiseLimit, 1_000_192), (Action::AskFor, 999_936)]);
    assert_eq!(log.take(), [], "the source is not asked");
    assert_eq!(pool.allocate(999_936).unwrap().size, 999_936);
}

#[test]
fn source_when_the_limit_would_allow_it() {
    let (pool, _) = recorded(
        FailingSource::new(AddressSpace::new(0), |_, bytes| bytes > 3 * MIB),
        Options::new(64 * MIB),
    );
    pool.allocate(MIB).unwrap();
    let expected = OutOfMemory {
        requested: 4 * MIB - 3,
        needed: 4 * MIB,
        page_size: 0,
        limit: 64 * MIB,
        limit_set_by: "limit".into(),
        live_requested: MIB,
        in_use: MIB,
        internal_fragmentation: 0,
        reserved: 2 * MIB,
        free: MIB,
        largest_free: MIB,
        num_live: 1,
        verdict: Verdict::Source,
        scope_limit: None,
        advice: Vec::new(),
        details: None,
    };
    let (figures, advice) = split(refused(pool.allocate(4 * MIB - 3)));
    assert_eq!(figures, expected);
    assert_eq!(advice, [(Action::AskFor, MIB)]);
}

#[test]
fn padding_for_alignment_is_part_of_what_is_needed() {
    let (pool, _) = recorded(AddressSpace::new(0), at_once(MIB));
    let out_of_memory = refused(pool.allocate_with_retry(Request::new(MIB).align(4096), |_| false));
    assert_eq!((out_of_memory.requested, out_of_memory.needed), (MIB, MIB + 4096 - 256));
    assert_eq!(out_of_memory.verdict, Verdict::Limit);
    let text = out_of_memory.to_string();
    assert!(text.contains("the request alone, with 3840 bytes of padding, is above the limit"), "{text}");
    let allocation = pool.allocate_with_retry(Request::new(MIB - 4096 + 256).align(4096), |_| false).unwrap();
    // The region starts at a multiple of 4096, so that nothing is before the piece; the rest is too small to split off.
    assert!(allocation.address.is_multiple_of(4096));
    assert_eq!(allocation.size, MIB);
}

#[test]
fn a_full_pool_says_so_if_only_the_padding_is_too_much() {
    let (pool, _) = recorded(AddressSpace::new(0), at_once(MIB));
    pool.allocate(4096 + 256).unwrap();
    // The next multiple of 4096 is 8192, and the request ends 256 bytes behind the limit from there.
    let padded = refused(pool.allocate(Request::new(MIB - 8192 + 256).align(4096)));
    assert_eq!(padded.verdict, Verdict::Full);
    let text = padded.to_string();
    assert!(text.contains("together, with 3840 bytes of padding, are above the limit"), "{text}");
    let text = refused(pool.allocate(MIB - 4096)).to_string();
    assert!(text.contains("together are above the limit"), "{text}");
}

#[test]
fn the_text_is_short_and_has_every_figure() {
    let (pool, _) = recorded(AddressSpace::new(0), at_once(4 * MIB));
    let first = pool.allocate(MIB).unwrap();
    pool.allocate(MIB + 1).unwrap();
    pool.free(first.address).unwrap();
    let out_of_memory = refused(pool.allocate(3 * MIB));
    let text = out_of_memory.to_string();
    let OutOfMemory { requested, limit, in_use, reserved, free, largest_free, verdict, .. } = out_of_memory;
    for figure in [requested, limit, in_use, reserved, free, largest_free] {
        assert!(text.contains(&format!("{figure} bytes")), "{figure} is missing in:\n{text}");
    }
    assert!(text.contains(verdict.as_str()), "{text}");
    assert!(text.lines().count() < 25);
}

#[test]
fn more_than_any_pool_can_hold_is_another_error() {
    let (pool, _) = recorded(AddressSpace::new(0), Options::new(MAX_BYTES));
    let too_large = |result| matches!(result, Err(AllocError::TooLarge { .. }));
    assert!(too_large(pool.allocate(MAX_BYTES + 1)));
    assert!(too_large(pool.allocate(u64::MAX)));
    assert!(too_large(pool.allocate_with_retry(Request::new(MAX_BYTES).align(512), |_| true)));
    assert!(!too_large(pool.allocate(MAX_BYTES)));
    assert_eq!(pool.stats().unwrap().num_allocs, 0);
}

#[test]
fn an_alignment_that_is_no_power_of_two_is_another_error() {
    let (pool, log) = recorded(AddressSpace::new(0), Options::new(MIB));
    for alignment in [0, 3, 257, 384, 1 << 63, u64::MAX] {
        let result = pool.allocate_with_retry(Request::new(1).align(alignment), |_| true);
        assert!(matches!(result, Err(AllocError::BadAlignment { alignment: named }) if named == alignment));
        assert!(pool.try_allocate(Request::new(0).align(alignment)).is_err());
    }
    assert_eq!(log.take(), []);
}

#[test]
fn free_regions_that_are_kept_are_named_as_what_is_in_the_way() {
    let options = Options::new(64 << 20).trim_on_oom(false);
    let pool = Pool::new(AddressSpace::new(0), options).unwrap();
    let freed = pool.allocate(32 << 20).unwrap();
    pool.free(freed.address).unwrap();
    let Err(AllocError::OutOfMemory(refused)) = pool.allocate(48 << 20) else { panic!("served") };
    assert!(refused.trim_helps());
    assert!(refused.to_string().contains("trim()"), "{refused}");
    assert_eq!(pool.trim().unwrap(), 32 << 20);
    pool.allocate(48 << 20).unwrap();
}
