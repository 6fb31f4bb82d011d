//! What a call to a pool came to, and what its source said meanwhile.

use std::collections::VecDeque;

use allotment::source::Call;
use allotment::{AllocError, Allocation, Grant, GrantFault, OutOfMemory};

/// The result of an allocation, in a form that compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Served(Allocation),
    Refused(OutOfMemory),
    BadGrant(Grant, GrantFault),
    SourceFailed(OutOfMemory),
    TooLarge(u64),
}

impl Outcome {
    pub(crate) fn of(result: &Result<Allocation, AllocError>) -> Self {
        match result {
            Ok(allocation) => Self::Served(*allocation),
            Err(AllocError::OutOfMemory(refused)) => Self::Refused(*refused),
            Err(AllocError::BadGrant { grant, fault }) => Self::BadGrant(*grant, *fault),
            Err(AllocError::SourceFailed { refused, .. }) => Self::SourceFailed(*refused),
            Err(AllocError::TooLarge { bytes }) => Self::TooLarge(*bytes),
            Err(other) => panic!("not what an open pool says: {other}"),
        }
    }
}

/// The recorded calls of one operation, to be gone through in order.
pub(crate) struct Answers {
    left: VecDeque<Call>,
    /// The last call failed instead of refusing; the record does not tell the two apart.
    failed: bool,
    /// Bytes asked for, for all requests that came to nothing.
    pub(crate) in_vain: Vec<u64>,
}

/// What the source said to a request.
pub(crate) enum Answer {
    Granted(Grant),
    Declined,
    Failed,
}

impl Answers {
    pub(crate) fn new(calls: Vec<Call>, failed: bool) -> Self {
        Self { left: calls.into(), failed, in_vain: Vec::new() }
    }

    /// The source must have been asked for exactly this now.
    pub(crate) fn to(&mut self, asked: u64) -> Answer {
        match self.left.pop_front() {
            Some(Call::Reserve { bytes, answer }) if bytes == asked => match answer {
                Some(grant) => Answer::Granted(grant),
                None if self.failed && self.left.is_empty() => Answer::Failed,
                None => Answer::Declined,
            },
            other => panic!("the source must be asked for {asked} bytes here, but: {other:?}"),
        }
    }

    /// The source must have been handed this back now.
    pub(crate) fn handed_back(&mut self, region: Grant) {
        let call = self.left.pop_front();
        assert_eq!(call, Some(Call::Release(region)), "the source must be handed this back here");
    }

    /// Nothing else must have been said.
    pub(crate) fn end(self) {
        assert!(self.left.is_empty(), "the source must not be called again, but: {:?}", self.left);
    }
}
