//! What a pool ought to do, worked out the slow and obvious way.
//!
//! A shadow stands beside a pool. It is told of every call, of its result and of what the source was asked
//! and answered meanwhile; it works out for itself what had to happen, and fails loudly if that is not what
//! did: on a wrong choice, a wrong size, an overlap, a gap, a call of the source too many or too few, a
//! counter that is not the sum it should be, or a refusal of what could have been served.
//!
//! It knows one thread only: between two calls nothing moves.

use allotment::source::Call;
use allotment::{
    AllocError, Allocation, FreeError, Grant, GrantFault, MAX_BYTES, Options, OutOfMemory, Snapshot, Stats,
    Verdict,
};

#[path = "shadow/answers.rs"]
mod answers;
#[path = "shadow/questions.rs"]
mod questions;
#[path = "shadow/rules.rs"]
mod rules;
#[path = "shadow/space.rs"]
mod space;

use answers::{Answer, Answers, Outcome};
use rules::{Rules, in_granules, less_than};
use space::{Holder, Space};

/// What a pool ought to hold and to do next.
#[derive(Debug)]
pub(crate) struct Shadow {
    rules: Rules,
    name: String,
    space: Space,
    step: u128,
    allocs: u64,
    grants: u64,
    refused: u64,
    largest_requested: u64,
    /// The most since the last reset: requested, in use, reserved.
    peaks: [u64; 3],
}

/// A request: bytes asked for, and what a chunk must have.
#[derive(Clone, Copy)]
struct Request {
    bytes: u64,
    needed: u64,
}

/// How a round of asking the source ended.
enum Round {
    Adopted,
    NoRoom,
    Declined,
    Ended(Outcome),
}

impl Shadow {
    /// The shadow of a fresh pool on a source that says whether it joins regions.
    pub(crate) fn new(options: &Options, source_joins: bool) -> Self {
        let rules = Rules::new(options, source_joins);
        Self {
            step: rules.first_step,
            rules,
            name: options.name.clone(),
            space: Space::default(),
            allocs: 0,
            grants: 0,
            refused: 0,
            largest_requested: 0,
            peaks: [0; 3],
        }
    }

    /// The pool was asked for memory and gave `result`.
    pub(crate) fn allocated(
        &mut self,
        bytes: u64,
        alignment: u64,
        result: &Result<Allocation, AllocError>,
        calls: Vec<Call>,
    ) {
        let mut answers = Answers::new(calls, matches!(result, Err(AllocError::SourceFailed { .. })));
        let expected = self.allocate(bytes, alignment, &mut answers);
        assert_eq!(Outcome::of(result), expected, "{bytes} bytes at {alignment}");
        answers.end();
    }

    /// The pool was asked for memory that needs no growing, and gave `result`.
    pub(crate) fn tried(
        &mut self,
        bytes: u64,
        alignment: u64,
        result: Result<Option<Allocation>, AllocError>,
    ) {
        let expected = match Request::new(bytes, alignment) {
            None => Err(Outcome::TooLarge(bytes)),
            Some(_) if bytes == 0 => Ok(Some(NOTHING)),
            Some(request) => Ok(self.take(request)),
        };
        let result = result.map_err(|error| Outcome::of(&Err(error)));
        assert_eq!(result, expected, "{bytes} bytes at {alignment} without growing");
    }

    /// The pool was told to free what is at `address` (only number `id`, if given), and gave `result`.
    pub(crate) fn freed(&mut self, address: u64, id: Option<u64>, result: Result<(), FreeError>) {
        let holder = self.space.chunk_at(address).and_then(|chunk| chunk.holder);
        let is_meant = holder.is_some_and(|holder| id.is_none_or(|id| id == holder.id));
        let expected =
            if address == 0 || is_meant { Ok(()) } else { Err(FreeError::NotAllocated { address }) };
        assert_eq!(result, expected, "free of {address:#x}");
        if is_meant {
            self.space.take_back(address);
        }
    }

    /// The pool was told that the allocation at `address` is one of `bytes` bytes now, and gave `result`.
    pub(crate) fn resized(&mut self, address: u64, bytes: u64, result: Result<u64, FreeError>) {
        let held = self.space.chunk_at(address).filter(|chunk| chunk.holder.is_some());
        assert_eq!(result, held.map(|chunk| chunk.size).ok_or(FreeError::NotAllocated { address }));
        if held.is_some_and(|chunk| bytes <= chunk.size) {
            self.space.request(address, bytes);
            self.largest_requested = self.largest_requested.max(bytes);
            self.raise_peaks();
        }
    }

    /// The pool was trimmed and said how much it gave back.
    pub(crate) fn trimmed(&mut self, released: u64, calls: Vec<Call>) {
        let mut answers = Answers::new(calls, false);
        assert_eq!(released, self.space.releasable(), "trim");
        self.hand_back(&mut answers);
        answers.end();
    }

    /// The pool was dropped.
    pub(crate) fn dropped(mut self, calls: Vec<Call>) {
        let mut answers = Answers::new(calls, false);
        self.hand_back(&mut answers);
        answers.end();
    }

    /// Every peak was reset.
    pub(crate) fn reset_peaks(&mut self) {
        self.peaks = self.amounts();
    }

    /// Whether a request would be served by a source that grants whatever the limit allows.
    pub(crate) fn can_allocate(&self, bytes: u64) -> bool {
        let Some(Request { needed, .. }) = Request::new(bytes, 1) else { return false };
        bytes == 0
            || self.space.best_fit(needed).is_some()
            || needed <= self.room()
            || (self.rules.trim_on_oom && self.releasing_helps(needed))
    }

    /// Every counter, summed up from the chunks.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub(crate) fn stats(&self) -> Stats {
        let [requested, in_use, reserved] = self.amounts();
        let free = self.space.free().map(|chunk| chunk.size).sum();
        assert_eq!(free, reserved - in_use, "chunks in use and free chunks are all there is");
        assert!(reserved <= self.rules.limit, "reserved is above the limit");
        let largest_free = self.space.free().map(|chunk| chunk.size).max().unwrap_or(0);
        Stats {
            requested,
            in_use,
            reserved,
            limit: self.rules.limit,
            free,
            largest_free,
            fragmentation: if free == 0 { 0.0 } else { (free - largest_free) as f64 / free as f64 },
            peak_requested: self.peaks[0],
            peak_in_use: self.peaks[1],
            peak_reserved: self.peaks[2],
            largest_requested: self.largest_requested,
            num_allocs: self.allocs,
            num_live: self.space.held().count() as u64,
            num_regions: self.space.regions().len() as u64,
            num_grants: self.grants,
            num_refused: self.refused,
        }
    }

    /// Every region and chunk.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot { name: self.name.clone(), stats: self.stats(), regions: self.space.snapshot() }
    }

    fn amounts(&self) -> [u64; 3] {
        let requested = self.space.held().map(|(_, holder)| holder.requested).sum();
        let in_use = self.space.held().map(|(chunk, _)| chunk.size).sum();
        [requested, in_use, self.space.reserved()]
    }

    fn raise_peaks(&mut self) {
        let now = self.amounts();
        for (peak, now) in self.peaks.iter_mut().zip(now) {
            *peak = now.max(*peak);
        }
    }

    /// Fit, grow, hand back and grow again, refuse.
    fn allocate(&mut self, bytes: u64, alignment: u64, answers: &mut Answers) -> Outcome {
        let Some(request) = Request::new(bytes, alignment) else { return Outcome::TooLarge(bytes) };
        if bytes == 0 {
            return Outcome::Served(NOTHING);
        }
        if let Some(allocation) = self.take(request) {
            return Outcome::Served(allocation);
        }
        let mut round = self.grow(request, answers);
        let mut declined = matches!(round, Round::Declined);
        if matches!(round, Round::NoRoom | Round::Declined)
            && self.rules.trim_on_oom
            && self.releasing_helps(request.needed)
        {
            self.hand_back(answers);
            round = self.grow(request, answers);
            declined |= matches!(round, Round::Declined);
        }
        match round {
            Round::Adopted => {
                Outcome::Served(self.take(request).expect("what was adopted serves the request"))
            }
            Round::Ended(outcome) => outcome,
            Round::NoRoom | Round::Declined => {
                self.confirm_refusal(request, declined, answers);
                self.refused += 1;
                Outcome::Refused(self.out_of_memory(request, declined))
            }
        }
    }

    /// Hands out the best fit, cut if the rest is worth keeping.
    fn take(&mut self, Request { bytes, needed }: Request) -> Option<Allocation> {
        let best = self.space.best_fit(needed)?;
        let size = if self.rules.splits(best.size, needed) { needed } else { best.size };
        self.allocs += 1;
        self.largest_requested = self.largest_requested.max(bytes);
        let id = self.allocs;
        self.space.hand_out(best.address, size, Holder { id, requested: bytes });
        self.raise_peaks();
        Some(Allocation { address: best.address, size, requested: bytes, id })
    }

    fn grow(&mut self, Request { bytes, needed }: Request, answers: &mut Answers) -> Round {
        let room = self.room();
        if needed > room {
            return Round::NoRoom;
        }
        let too_small = u128::from(needed) > self.step;
        while u128::from(needed) > self.step {
            self.step *= 2;
        }
        let mut asked = u64::try_from(self.step).map_or(room, |step| step.min(room));
        while asked >= needed {
            match answers.to(asked) {
                Answer::Granted(grant) => {
                    if let Some(fault) = self.fault_of(grant) {
                        if fault != GrantFault::Overlap {
                            answers.handed_back(grant);
                        }
                        return Round::Ended(Outcome::BadGrant(grant, fault));
                    }
                    if grant.bytes >= needed && grant.bytes <= room {
                        if !too_small {
                            self.step = self.step.saturating_mul(2);
                        }
                        self.grants += 1;
                        self.space.add(grant, self.rules.joins_regions);
                        self.raise_peaks();
                        return Round::Adopted;
                    }
                    answers.handed_back(grant);
                }
                Answer::Declined => {}
                Answer::Failed => {
                    self.refused += 1;
                    let refused = self.out_of_memory(Request { bytes, needed }, true);
                    return Round::Ended(Outcome::SourceFailed(refused));
                }
            }
            answers.in_vain.push(asked);
            asked = less_than(asked);
        }
        Round::Declined
    }

    fn fault_of(&self, grant: Grant) -> Option<GrantFault> {
        if !grant.address.is_multiple_of(256) || !grant.bytes.is_multiple_of(256) {
            Some(GrantFault::Misaligned)
        } else if grant.address == 0
            || u128::from(grant.address) + u128::from(grant.bytes) > u128::from(MAX_BYTES)
        {
            Some(GrantFault::OutOfRange)
        } else {
            self.space.overlaps(grant).then_some(GrantFault::Overlap)
        }
    }

    fn releasing_helps(&self, needed: u64) -> bool {
        let releasable = self.space.releasable();
        releasable > 0 && needed <= self.rules.limit - self.space.reserved() + releasable
    }

    fn hand_back(&mut self, answers: &mut Answers) {
        for region in self.space.give_up() {
            answers.handed_back(region);
        }
    }

    /// A refusal is right only if nothing free fits, the source refused all down to the request itself or
    /// was not allowed to be asked, and giving regions back would not have helped, or was not wanted.
    fn confirm_refusal(&self, Request { needed, .. }: Request, declined: bool, answers: &Answers) {
        assert!(self.space.free().all(|chunk| chunk.size < needed), "a free chunk would have served it");
        if needed <= self.room() {
            assert!(declined, "there was room, and the source was not asked");
            let smallest = answers.in_vain.iter().min();
            let down_to_it = smallest.is_some_and(|&asked| asked >= needed && less_than(asked) < needed);
            assert!(down_to_it, "the source might have granted {needed} bytes: {:?}", answers.in_vain);
        }
        let released_all = self.space.releasable() == 0;
        assert!(
            released_all || !self.rules.trim_on_oom || !self.releasing_helps(needed),
            "giving regions back would have helped"
        );
    }

    fn out_of_memory(&self, Request { bytes, needed }: Request, declined: bool) -> OutOfMemory {
        let Stats { in_use, reserved, limit, free, largest_free, num_live, .. } = self.stats();
        let verdict = if needed > limit {
            Verdict::Limit
        } else if declined {
            Verdict::Source
        } else if u128::from(in_use) + u128::from(needed) > u128::from(limit) {
            Verdict::Full
        } else {
            Verdict::Fragmented
        };
        OutOfMemory {
            requested: bytes,
            needed,
            limit,
            in_use,
            reserved,
            free,
            largest_free,
            num_live,
            verdict,
            trim_helps: !self.rules.trim_on_oom
                && self.space.releasable() > 0
                && self.releasing_helps(needed),
        }
    }
}

/// What zero bytes get.
const NOTHING: Allocation = Allocation { address: 0, size: 0, requested: 0, id: 0 };

impl Request {
    fn new(bytes: u64, alignment: u64) -> Option<Self> {
        let padded = u128::from(bytes) + u128::from(alignment.max(256) - 256);
        if padded > u128::from(MAX_BYTES) {
            return None;
        }
        let needed = in_granules(padded).try_into().expect("at most the largest request");
        Some(Self { bytes, needed })
    }
}
