//! The result of a call, and the source calls during it.

use std::collections::VecDeque;

use allotment::source::Call;
use allotment::{AllocError, Allocation, Grant, GrantFault, OutOfMemory, Unusable};

/// The result of an allocation, in a comparable form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Served(Allocation),
    Refused(Box<OutOfMemory>),
    BadGrant(Grant, GrantFault),
    SourceFailed(Box<OutOfMemory>),
    TooLarge(u64),
    BadAlignment(u64),
    Closed,
    /// The source panicked, and the panic reached the caller.
    Panicked,
}

impl Outcome {
    pub(crate) fn of(result: &Result<Allocation, AllocError>) -> Self {
        match result {
            Ok(allocation) => Self::Served(*allocation),
            Err(AllocError::OutOfMemory(refused)) => Self::Refused(figures(refused)),
            Err(AllocError::BadGrant { grant, fault }) => Self::BadGrant(*grant, *fault),
            Err(AllocError::SourceFailed { refused, .. }) => Self::SourceFailed(figures(refused)),
            Err(AllocError::TooLarge { bytes }) => Self::TooLarge(*bytes),
            Err(AllocError::BadAlignment { alignment }) => Self::BadAlignment(*alignment),
            Err(AllocError::Unusable(Unusable::Closed)) => Self::Closed,
            Err(other) => panic!("not what a pool says to one thread: {other}"),
        }
    }
}

/// Returns the figures without the advice, which has a test of its own.
fn figures(refused: &OutOfMemory) -> Box<OutOfMemory> {
    Box::new(OutOfMemory { advice: Vec::new(), ..refused.clone() })
}

/// The end of an operation's last source call, which the record does not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Answer,
    /// It failed instead of declining.
    Failure,
    Panic,
}

impl Ending {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::SourceFailed(_) => Self::Failure,
            outcome => Self::panic_if(*outcome == Outcome::Panicked),
        }
    }

    pub(crate) fn panic_if(panicked: bool) -> Self {
        if panicked { Self::Panic } else { Self::Answer }
    }
}

/// The recorded source calls of one operation, consumed in order.
pub(crate) struct Answers {
    left: VecDeque<Call>,
    ending: Ending,
    /// The sizes of all unsuccessful requests.
    pub(crate) in_vain: Vec<u64>,
}

/// The source's answer to a request.
pub(crate) enum Answer {
    Granted(Grant),
    Declined,
    Failed,
    Panicked,
}

impl Answers {
    pub(crate) fn new(calls: Vec<Call>, ending: Ending) -> Self {
        Self { left: calls.into(), ending, in_vain: Vec::new() }
    }

    /// Checks that the source received exactly this request now.
    pub(crate) fn to(&mut self, asked: u64) -> Answer {
        match self.left.pop_front() {
            Some(Call::Reserve { bytes, answer }) if bytes == asked => match answer {
                Some(grant) => Answer::Granted(grant),
                None => match self.ending {
                    Ending::Failure if self.left.is_empty() => Answer::Failed,
                    Ending::Panic if self.left.is_empty() => Answer::Panicked,
                    _ => Answer::Declined,
                },
            },
            other => panic!("the source must be asked for {asked} bytes here, but: {other:?}"),
        }
    }

    /// Checks that the source received this release now; returns whether it panicked.
    pub(crate) fn handed_back(&mut self, region: Grant) -> bool {
        let call = self.left.pop_front();
        assert_eq!(call, Some(Call::Release(region)), "the source must be handed this back here");
        self.ending == Ending::Panic && self.left.is_empty()
    }

    /// Checks that there are no further calls.
    pub(crate) fn end(self) {
        assert!(self.left.is_empty(), "the source must not be called again, but: {:?}", self.left);
    }
}
