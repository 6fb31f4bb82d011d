//! A random program: steps that are meaningful in any state of the pool.

/// One step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Allocate {
        size: Size,
        alignment: u64,
        call: AllocateCall,
    },
    Free {
        which: usize,
        call: FreeCall,
    },
    /// Frees all allocations but this many.
    FreeAllBut(usize),
    FreeWrongly {
        which: usize,
        wrong: Wrong,
    },
    /// Resizes an allocation in place; sometimes an unknown one.
    Resize {
        which: usize,
        size: Size,
    },
    AskWhether(Size),
    Trim,
    ResetPeaks,
    /// Pins an allocation; sometimes one that was freed before.
    Pin {
        which: usize,
        stale: bool,
    },
    Unpin {
        which: usize,
    },
    Close,
}

/// The function that allocates.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AllocateCall {
    Plain,
    Try,
    /// Retries this many times after a refusal, and frees something before each retry but the first.
    Again(u32),
}

/// The function that frees.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FreeCall {
    ByAddress,
    ByAllocation,
    Try,
    TryByAllocation,
    Deferred,
}

impl FreeCall {
    /// Returns whether it frees a particular allocation, not any allocation at its address.
    pub(crate) fn names_the_allocation(self) -> bool {
        matches!(self, Self::ByAllocation | Self::TryByAllocation | Self::Deferred)
    }
}

/// A free that must change nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wrong {
    /// An allocation that was freed before; its address may be in use again.
    Stale(FreeCall),
    /// Inside an allocation, at this distance from its start.
    Interior(u64),
    /// The start of a free chunk.
    FreeChunk,
    /// Any number.
    Anywhere(u64),
    Null,
}

/// A number of bytes, usually relative to the pool's state.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Size {
    Bytes(u64),
    /// The mark halved `halvings` times, times `share` / 65536.
    Share {
        of: Mark,
        halvings: u32,
        share: u64,
    },
    /// The halved mark, plus or minus a small difference.
    Near {
        of: Mark,
        halvings: u32,
        more: i64,
    },
}

/// The reference amount of a size.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mark {
    Limit,
    /// The room under the limit.
    Room,
    LargestFree,
    /// The chunk of the newest allocation.
    Newest,
    /// One of the free chunks.
    AFreeChunk(usize),
    /// The largest free chunk, or the room for a region, less a remainder that is just kept.
    AllButARest {
        of_room: bool,
    },
    /// The largest valid request.
    Everything,
    /// The largest number.
    AnyNumber,
    PowerOfTwo(u32),
}

/// Small differences: around the exact fit and one granule away from it.
const MORE: [i64; 9] = [0, -1, 1, -255, 255, -256, 256, -257, 257];

/// Invalid alignments among some valid ones.
const ODD_ALIGNMENTS: [u64; 8] = [0, 3, 8192, 1 << 63, u64::MAX, 256, 512, 4096];

/// Kinds of steps below this number allocate; the others mostly free.
pub(crate) const ALLOCATES: u8 = 55;

/// The number of kinds of steps.
pub(crate) const KINDS: u8 = 106;

/// Creates a step from three numbers; smaller numbers give simpler steps, which makes shrinking work.
pub(crate) fn step(kind: u8, a: u32, b: u16) -> Step {
    let which = a as usize;
    match kind {
        0..ALLOCATES => {
            let (alignment, call) = match kind {
                0..47 => (1, AllocateCall::Plain),
                47 => (ODD_ALIGNMENTS[usize::from(b / 64) % 8], AllocateCall::Plain),
                48..52 => (1 << (b / 64 % 13), AllocateCall::Plain),
                52 => (1 << (b / 64 % 13), AllocateCall::Again(a % 4)),
                53 => (ODD_ALIGNMENTS[usize::from(b / 64) % 8], AllocateCall::Try),
                _ => (1 << (b / 64 % 13), AllocateCall::Try),
            };
            Step::Allocate { size: size(a, b), alignment, call }
        }
        ALLOCATES..90 => Step::Free { which, call: free_call(b) },
        90..95 => Step::FreeWrongly { which, wrong: wrong(a, b) },
        95 => Step::AskWhether(size(a, b)),
        96 => Step::Resize { which, size: size(a, b) },
        97 => Step::FreeAllBut(which % if b.is_multiple_of(2) { 8 } else { 512 }),
        98 => Step::Trim,
        99 => Step::ResetPeaks,
        100 | 101 => Step::Pin { which, stale: b.is_multiple_of(8) },
        // Only frees are useful after it, so it is rare.
        105 if b.is_multiple_of(64) => Step::Close,
        _ => Step::Unpin { which },
    }
}

fn free_call(b: u16) -> FreeCall {
    match b % 5 {
        0 => FreeCall::ByAddress,
        1 => FreeCall::ByAllocation,
        2 => FreeCall::Try,
        3 => FreeCall::TryByAllocation,
        _ => FreeCall::Deferred,
    }
}

fn wrong(a: u32, b: u16) -> Wrong {
    match b % 8 {
        0 => Wrong::Stale(free_call(b / 8)),
        1 => Wrong::Stale(FreeCall::ByAllocation),
        2 => Wrong::Interior(1 + u64::from(b / 8) % 255),
        3 => Wrong::Interior(256 * (1 + u64::from(b / 8))),
        4 => Wrong::FreeChunk,
        5 => Wrong::Anywhere(256 * u64::from(a)),
        6 => Wrong::Anywhere(u64::MAX - u64::from(a)),
        _ => Wrong::Null,
    }
}

fn size(a: u32, b: u16) -> Size {
    let of = match b / 8 % 64 {
        0..12 => Mark::LargestFree,
        12..16 => Mark::Newest,
        16..32 => Mark::AFreeChunk(a as usize),
        32..36 => Mark::AllButARest { of_room: a.is_multiple_of(2) },
        36..50 => Mark::Room,
        50..60 => Mark::Limit,
        60..62 => Mark::PowerOfTwo(a % 37),
        62 => Mark::AnyNumber,
        _ => Mark::Everything,
    };
    match b % 8 {
        // 0 to 64 KiB; all magnitudes are equally likely.
        0..2 => Size::Bytes(u64::from((a & 0xFFFF) >> ((a >> 16) % 17))),
        2..6 => Size::Share { of, halvings: (a >> 16) % 24, share: 1 + u64::from(a & 0xFFFF) },
        _ => Size::Near { of, halvings: (a >> 8) % 3, more: MORE[a as usize % MORE.len()] },
    }
}
