//! Growth policy: how many bytes to reserve next. Pure arithmetic; calls no source.

use crate::units::{GRANULE, nine_tenths, round_down, round_up};

/// The first growth step in bytes, if the limit allows it.
const FIRST_STEP: u64 = 2 << 20;

/// The largest growth step. Doubling stops here, where the limit always decides the size.
const LAST_STEP: u64 = 1 << 63;

/// The growth state of one allocator.
#[derive(Debug, Clone)]
pub(crate) struct Growth {
    /// Whether regions start small and double; otherwise the whole limit is reserved at once.
    on: bool,
    /// The next size to reserve, before the limit caps it.
    step: u64,
}

/// One round of calls to a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The first size to ask for.
    pub(crate) largest: u64,
    /// The smallest size to ask for: the rounded request.
    pub(crate) needed: u64,
    /// The largest grant to adopt: the room under the limit.
    pub(crate) room: u64,
    /// Whether the step was doubled to reach the request; a grant does not double it again then.
    doubled: bool,
    /// Whether the grant is the arena of a plan.
    is_arena: bool,
}

impl Plan {
    /// Plans a call for exactly the bytes of an arena; `None` if the limit leaves no room. Growth goes on as before.
    pub(crate) fn arena(bytes: u64, reserved: u64, limit: u64) -> Option<Self> {
        let room = room(limit, reserved);
        (bytes <= room).then_some(Self {
            largest: bytes,
            needed: bytes,
            room: bytes,
            doubled: true,
            is_arena: true,
        })
    }

    /// Returns whether the grant is the arena of a plan.
    pub(crate) fn is_arena(&self) -> bool {
        self.is_arena
    }

    /// Returns the sizes to ask for, in descending order.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = u64> + use<> {
        backpedal(self.largest, self.needed)
    }
}

impl Growth {
    /// Creates the state for growth from a small step, or from the whole limit.
    pub(crate) fn new(limit: u64, on: bool) -> Self {
        let step = if on { limit.min(FIRST_STEP) } else { limit };
        Self { on, step: round_up(step) }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Changes limit and growth: the next step is that of a fresh allocator, or the current step if that is larger.
    pub(crate) fn change(&mut self, limit: u64, on: bool) {
        let fresh = Self::new(limit, on);
        let step = if on && self.on { self.step.max(fresh.step) } else { fresh.step };
        *self = Self { step, ..fresh };
    }

    /// Plans a round for a request of `needed` bytes (rounded) when `reserved` bytes of `limit` are reserved.
    ///
    /// Returns `None` if the limit leaves no room. The step is doubled until it holds the request, and it stays
    /// doubled whatever the source answers.
    pub(crate) fn plan(&mut self, needed: u64, reserved: u64, limit: u64) -> Option<Plan> {
        let room = room(limit, reserved);
        if needed > room {
            return None;
        }
        let doubled = needed > self.step;
        while needed > self.step {
            self.double();
        }
        Some(Plan { largest: self.step.min(room), needed, room, doubled, is_arena: false })
    }

    /// Returns whether the sizes of [`Growth::plan`] for a chunk of `needed` bytes include a grant, if the source
    /// grants up to `available` bytes.
    pub(crate) fn serves(&self, needed: u64, reserved: u64, limit: u64, available: u64) -> bool {
        let plan = self.clone().plan(needed, reserved, limit);
        plan.is_some_and(|plan| plan.sizes().any(|bytes| bytes <= available))
    }

    /// Returns the largest `needed` in bytes for which [`Growth::serves`] holds; 0 if none.
    ///
    /// The sizes of a plan are not contiguous: a request a little below `available` may be refused while a smaller
    /// one is served.
    pub(crate) fn largest_served(&self, reserved: u64, limit: u64, available: u64) -> u64 {
        let room = room(limit, reserved);
        let mut best = 0;
        // Requests up to the step ask for the step first; larger ones for the next step that holds them.
        let (mut below, mut step) = (0, self.clone());
        while below < room.min(available) {
            let granted = backpedal(step.step.min(room), GRANULE).find(|&bytes| bytes <= available);
            best = best.max(granted.filter(|&bytes| bytes > below).unwrap_or(0));
            below = step.step;
            step.double();
        }
        best
    }

    /// Records that the source granted what `plan` asked for.
    pub(crate) fn granted(&mut self, plan: &Plan) {
        if !plan.doubled {
            self.double();
        }
    }

    fn double(&mut self) {
        self.step = if self.step >= LAST_STEP / 2 { LAST_STEP } else { self.step * 2 };
    }
}

/// Returns the room under the limit in whole granules.
fn room(limit: u64, reserved: u64) -> u64 {
    round_down(limit - reserved)
}

/// Returns the sizes to ask for, in descending order, never below `needed`.
///
/// Each step reduces the size by about a tenth. For small sizes rounding can undo that reduction, so each step also
/// reduces it by at least one granule; the loop ends even if the source refuses every size.
fn backpedal(wanted: u64, needed: u64) -> impl Iterator<Item = u64> {
    let smaller = |&last: &u64| {
        let floor = last.checked_sub(GRANULE)?;
        Some(round_up(nine_tenths(last)).min(floor))
    };
    core::iter::successors(Some(wanted), smaller).take_while(move |&bytes| bytes >= needed)
}

#[cfg(test)]
mod tests;
