//! How much to reserve next. Numbers in, numbers out; no source is called here.

use crate::units::{GRANULE, nine_tenths, round_down, round_up};

/// The first region of a growing pool, in bytes, where the limit allows it.
const FIRST_STEP: u64 = 2 << 20;

/// The largest growth step. Doubling stops here, where the sizes asked for no longer depend on it.
const LAST_STEP: u64 = 1 << 63;

/// The growth step of one allocator.
#[derive(Debug, Clone)]
pub(crate) struct Growth {
    /// Starts small and doubles; otherwise the whole limit is wanted at once.
    on: bool,
    /// The size wanted next, before the limit cuts it.
    step: u64,
}

/// One round of asking a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The size to ask for first.
    pub(crate) largest: u64,
    /// Never ask for less: the rounded request.
    pub(crate) needed: u64,
    /// Never adopt more: what the limit leaves.
    pub(crate) room: u64,
    /// The step was doubled to reach the request, so a grant does not double it again.
    doubled: bool,
}

impl Plan {
    /// Sizes to ask for, largest first.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = u64> + use<> {
        backpedal(self.largest, self.needed)
    }
}

impl Growth {
    /// Starts small and doubles, or starts with the whole limit.
    pub(crate) fn new(limit: u64, on: bool) -> Self {
        let step = if on { limit.min(FIRST_STEP) } else { limit };
        Self { on, step: round_up(step) }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// From the next round on, what a fresh allocator of this limit and growth would want, or more if the steps
    /// have come further.
    pub(crate) fn change(&mut self, limit: u64, on: bool) {
        let fresh = Self::new(limit, on);
        let step = if on && self.on { self.step.max(fresh.step) } else { fresh.step };
        *self = Self { step, ..fresh };
    }

    /// Plans a round for a request of `needed` bytes (rounded) when `reserved` of `limit` are reserved.
    ///
    /// None if the limit leaves no room for the request. The step is doubled until it holds the request and
    /// stays so, whatever the source answers.
    pub(crate) fn plan(&mut self, needed: u64, reserved: u64, limit: u64) -> Option<Plan> {
        let room = room(limit, reserved);
        if needed > room {
            return None;
        }
        let doubled = needed > self.step;
        while needed > self.step {
            self.double();
        }
        Some(Plan { largest: self.step.min(room), needed, room, doubled })
    }

    /// Whether [`Growth::plan`] for a chunk of `needed` bytes ends in a grant, where the source grants up to `available`
    /// bytes and refuses more.
    pub(crate) fn serves(&self, needed: u64, reserved: u64, limit: u64, available: u64) -> bool {
        let plan = self.clone().plan(needed, reserved, limit);
        plan.is_some_and(|plan| plan.sizes().any(|bytes| bytes <= available))
    }

    /// The largest `needed` for which [`Growth::serves`] holds, in bytes; 0 if none.
    ///
    /// The sizes asked for skip some, so a request a little below `available` may be refused where a smaller one is
    /// served.
    pub(crate) fn largest_served(&self, reserved: u64, limit: u64, available: u64) -> u64 {
        let room = room(limit, reserved);
        let mut best = 0;
        // Requests up to the step ask for the step first, larger ones for the next one that holds them.
        let (mut below, mut step) = (0, self.clone());
        while below < room.min(available) {
            let granted = backpedal(step.step.min(room), GRANULE).find(|&bytes| bytes <= available);
            best = best.max(granted.filter(|&bytes| bytes > below).unwrap_or(0));
            below = step.step;
            step.double();
        }
        best
    }

    /// Notes that the source granted what `plan` asked for.
    pub(crate) fn granted(&mut self, plan: &Plan) {
        if !plan.doubled {
            self.double();
        }
    }

    fn double(&mut self) {
        self.step = if self.step >= LAST_STEP / 2 { LAST_STEP } else { self.step * 2 };
    }
}

/// Whole granules that the limit leaves.
fn room(limit: u64, reserved: u64) -> u64 {
    round_down(limit - reserved)
}

/// Sizes to ask for, largest first, never below `needed`.
///
/// Each step gives up about a tenth. Rounding can eat that whole tenth when the size is small, so every
/// step also gives up at least one granule: a source that refuses for ever still ends the loop.
fn backpedal(wanted: u64, needed: u64) -> impl Iterator<Item = u64> {
    let smaller = |&last: &u64| {
        let floor = last.checked_sub(GRANULE)?;
        Some(round_up(nine_tenths(last)).min(floor))
    };
    std::iter::successors(Some(wanted), smaller).take_while(move |&bytes| bytes >= needed)
}

#[cfg(test)]
mod tests;
