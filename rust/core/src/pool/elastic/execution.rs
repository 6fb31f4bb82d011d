//! Carries out a plan: calls the source for its pages.

use std::collections::VecDeque;

use crate::source::{PageSource, ReserveError};
use crate::tables::PagePlan;
use crate::tables::pages::{PageSpan, count};

/// The changes of pages that were made for a plan.
#[derive(Debug, Default)]
pub(super) struct Executed {
    /// The pages that received memory.
    pub(super) received: Vec<PageSpan>,
    /// The free pages that still have theirs.
    pub(super) kept: Vec<PageSpan>,
    /// How many pages received memory from the source.
    pub(super) committed: u64,
    /// Why not all pages received memory.
    pub(super) error: Option<ReserveError>,
}

/// Gives the missing pages of a plan memory: new memory first, as the source may decline it, and then nothing has moved
/// in vain; then that of free pages.
pub(super) fn execute(source: &mut dyn PageSource, plan: &PagePlan, shift: u32) -> Executed {
    let mut done = Executed::default();
    let mut missing = plan.missing.iter().copied().collect::<VecDeque<_>>();
    let mut free = plan.free.iter().copied().collect::<VecDeque<_>>();
    let mut new = plan.new_pages();
    while new > 0
        && done.error.is_none()
        && let Some(last) = missing.pop_back()
    {
        let (rest, span) = cut(last, last.len().saturating_sub(new));
        new -= span.len();
        match source.commit(span.addresses(shift)) {
            Ok(()) => done.received.push(span),
            Err(error) => done.error = Some(error),
        }
        if !rest.is_empty() {
            missing.push_back(rest);
        }
    }
    let committed = done.received.len();
    done.committed = count(&done.received);
    while done.error.is_none()
        && let (Some(&to), Some(&from)) = (missing.front(), free.front())
    {
        missing.pop_front();
        free.pop_front();
        let length = to.len().min(from.len());
        let (to, to_rest) = cut(to, length);
        let (from, from_rest) = cut(from, length);
        match give(source, plan, from, to, shift) {
            Ok(()) => done.received.push(to),
            Err((keeps, error)) => {
                done.kept.extend(keeps.then_some(from));
                done.error = Some(error);
            }
        }
        if !to_rest.is_empty() {
            missing.push_front(to_rest);
        }
        if !from_rest.is_empty() {
            free.push_front(from_rest);
        }
    }
    done.kept.extend(free);
    if done.error.is_some() {
        // Nothing new stays committed for a request that is not served.
        let moved = done.received.split_off(committed);
        done.received.retain(|span| source.decommit(span.addresses(shift)).is_err());
        done.received.extend(moved);
    }
    done
}

/// Gives the memory of some pages to others. An error says whether they still have it.
fn give(
    source: &mut dyn PageSource,
    plan: &PagePlan,
    from: PageSpan,
    to: PageSpan,
    shift: u32,
) -> Result<(), (bool, ReserveError)> {
    let (from, to) = (from.addresses(shift), to.addresses(shift));
    match source.move_pages(from, to.address) {
        Ok(()) => return Ok(()),
        Err(ReserveError::Declined) => {}
        Err(error) => return Err((true, error)),
    }
    source.decommit(from).map_err(|failure| (true, ReserveError::Failed(failure)))?;
    source.commit(to).map_err(|error| (plan.may_return(from) && source.commit(from).is_ok(), error))
}

/// Cuts a span after `length` pages.
fn cut(span: PageSpan, length: u64) -> (PageSpan, PageSpan) {
    let middle = span.first + length;
    (PageSpan { end: middle, ..span }, PageSpan { first: middle, ..span })
}
