//! The expected result of a request: served, refused for a reason, or ended by the source.

use allotment::source::Call;
use allotment::{AllocError, Allocation, Grant, GrantFault, MAX_BYTES, OutOfMemory, Stats, Verdict};

use super::Shadow;
use super::answers::{Answer, Answers, Ending, Outcome};
use super::rules::{in_granules, less_than};
use super::space::{Chunk, Holder};

/// The largest valid alignment.
const MAX_ALIGNMENT: u64 = 1 << 62;

/// The allocation of zero bytes.
const NOTHING: Allocation = Allocation { address: 0, size: 0, requested: 0, id: 0 };

/// A request: requested bytes, the size of a chunk that serves it wherever it starts, and the alignment.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) bytes: u64,
    pub(super) needed: u64,
    pub(super) alignment: u64,
}

/// The end of a round of source requests.
enum Round {
    Adopted,
    NoRoom,
    Declined,
    Ended(Outcome),
}

impl Shadow {
    /// Checks an allocation with its outcome.
    pub(crate) fn allocated(&mut self, bytes: u64, alignment: u64, outcome: &Outcome, calls: Vec<Call>) {
        let expected = self.attempted(bytes, alignment, outcome, calls);
        self.refused += u64::from(matches!(expected, Outcome::Refused(_) | Outcome::SourceFailed(_)));
    }

    /// Checks one attempt of an allocation with its outcome; the pool may ask its caller for a retry.
    pub(crate) fn attempted(
        &mut self,
        bytes: u64,
        alignment: u64,
        outcome: &Outcome,
        calls: Vec<Call>,
    ) -> Outcome {
        let mut answers = Answers::new(calls, Ending::of(outcome));
        let expected = self.allocate(bytes, alignment, &mut answers);
        assert_eq!(*outcome, expected, "{bytes} bytes at {alignment}");
        answers.end();
        expected
    }

    /// Checks an allocation without growth, with its `result`.
    pub(crate) fn tried(
        &mut self,
        bytes: u64,
        alignment: u64,
        result: Result<Option<Allocation>, AllocError>,
    ) {
        let expected = match self.request(bytes, alignment) {
            Err(outcome) => Err(outcome),
            Ok(_) if bytes == 0 => Ok(Some(NOTHING)),
            Ok(request) => Ok(self.take(request)),
        };
        let result = result.map_err(|error| Outcome::of(&Err(error)));
        assert_eq!(result, expected, "{bytes} bytes at {alignment} without growing");
    }

    /// Builds the request, or the error of an invalid one.
    fn request(&self, bytes: u64, alignment: u64) -> Result<Request, Outcome> {
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            return Err(Outcome::BadAlignment(alignment));
        }
        let request = Request::new(bytes, alignment).ok_or(Outcome::TooLarge(bytes))?;
        if self.closed { Err(Outcome::Closed) } else { Ok(request) }
    }

    /// Fits, grows, releases and grows again, or refuses.
    fn allocate(&mut self, bytes: u64, alignment: u64, answers: &mut Answers) -> Outcome {
        let request = match self.request(bytes, alignment) {
            Ok(request) => request,
            Err(outcome) => return outcome,
        };
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
            if self.release_regions(answers) {
                return Outcome::Panicked;
            }
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
                Outcome::Refused(self.out_of_memory(request, declined))
            }
        }
    }

    /// Allocates from the best fit for the size alone if it holds an aligned piece, else from the best fit for the
    /// size and its padding. What lies before the piece stays free, and what lies behind it if that is kept.
    pub(super) fn take(&mut self, Request { bytes, needed, alignment }: Request) -> Option<Allocation> {
        let rounded = bytes.div_ceil(256) * 256;
        let start_in = |chunk: &Chunk| chunk.address.div_ceil(alignment) * alignment;
        let tight = self.space.best_fit(rounded);
        let tight = tight.filter(|chunk| start_in(chunk) + rounded <= chunk.address + chunk.size);
        let best = tight.or_else(|| self.space.best_fit(needed))?;
        let address = start_in(&best);
        let left = best.address + best.size - address;
        let size = if self.rules.splits(left, rounded) { rounded } else { left };
        self.allocs += 1;
        self.largest_requested = self.largest_requested.max(bytes);
        let id = self.allocs;
        self.space.hand_out(best.address, address, size, Holder { id, requested: bytes });
        self.raise_peaks();
        Some(Allocation { address, size, requested: bytes, id })
    }

    fn grow(&mut self, request: Request, answers: &mut Answers) -> Round {
        let needed = request.needed;
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
                    if let Some(fault) = self.grant_fault(grant) {
                        if fault != GrantFault::Overlap && answers.handed_back(grant) {
                            return Round::Ended(Outcome::Panicked);
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
                    if answers.handed_back(grant) {
                        return Round::Ended(Outcome::Panicked);
                    }
                }
                Answer::Declined => {}
                Answer::Panicked => return Round::Ended(Outcome::Panicked),
                Answer::Failed => {
                    let refused = self.out_of_memory(request, true);
                    return Round::Ended(Outcome::SourceFailed(refused));
                }
            }
            answers.in_vain.push(asked);
            asked = less_than(asked);
        }
        Round::Declined
    }

    fn grant_fault(&self, grant: Grant) -> Option<GrantFault> {
        if !grant.address.is_multiple_of(256) || !grant.bytes.is_multiple_of(256) {
            Some(GrantFault::Misaligned)
        } else if grant.address == 0
            || u128::from(grant.address) + u128::from(grant.bytes) > u128::from(MAX_BYTES)
        {
            Some(GrantFault::OutOfRange)
        } else {
            let overlaps = self.space.overlaps(grant).then_some(GrantFault::Overlap);
            overlaps.or_else(|| (grant.bytes == 0).then_some(GrantFault::Empty))
        }
    }

    /// Confirms a refusal: no free chunk fits, the source declined all sizes down to the request or was not allowed
    /// to be called, and releasing regions would not have helped or was not wanted.
    fn confirm_refusal(&mut self, Request { needed, .. }: Request, declined: bool, answers: &Answers) {
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
        self.confirmed += 1;
    }

    pub(super) fn out_of_memory(
        &self,
        Request { bytes, needed, .. }: Request,
        declined: bool,
    ) -> Box<OutOfMemory> {
        let stats = self.stats();
        let Stats {
            requested: live_requested, in_use, reserved, limit, free, largest_free, num_live, ..
        } = stats;
        let verdict = if needed > limit {
            Verdict::Limit
        } else if declined {
            Verdict::Source
        } else if u128::from(in_use) + u128::from(needed) > u128::from(limit) {
            let tight = u128::from(self.space.sums().tight) + u128::from(needed);
            if tight > u128::from(limit) { Verdict::Full } else { Verdict::Slack }
        } else {
            Verdict::Fragmented
        };
        Box::new(OutOfMemory {
            requested: bytes,
            needed,
            page_size: 0,
            limit,
            limit_set_by: "limit".into(),
            live_requested,
            in_use,
            internal_fragmentation: in_use - live_requested,
            reserved,
            free,
            largest_free,
            num_live,
            verdict,
            scope_limit: None,
            advice: Vec::new(),
            details: None,
        })
    }
}

impl Request {
    pub(super) fn new(bytes: u64, alignment: u64) -> Option<Self> {
        let padded = u128::from(bytes) + u128::from(alignment.max(256) - 256);
        if padded > u128::from(MAX_BYTES) {
            return None;
        }
        let needed = in_granules(padded).try_into().expect("at most the largest request");
        Some(Self { bytes, needed, alignment })
    }
}
