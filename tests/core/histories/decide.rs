//! Applies decisions to the shadow: each must be the one that the shadow makes.

use allotment::source::Call as SourceCall;
use allotment::{Allocation, Decision};

use crate::event::{AllocateWay, Answer, Call, FreeWay};
use crate::judge::{Growing, Judge, Known};
use crate::order::NO_CALL;
use crate::shadow::Shadow;

impl Judge<'_> {
    /// Applies a decision.
    pub(crate) fn decide(&mut self, at: usize) {
        let decision = self.order.decisions[at].decision;
        let event = self.order.event_of[at];
        let call = if event == NO_CALL { None } else { Some(&self.order.events[event].call) };
        if self.order.has_caches {
            self.end_lending(decision);
        }
        match (decision, call) {
            (Decision::Allocated(id), Some(call)) => self.allocated(id, event, call),
            (Decision::Freed(id), Some(call)) => {
                self.freed_in.insert(id, event);
                self.freed(id, call);
            }
            (Decision::Resized { address, bytes }, Some(call)) => self.resized(address, bytes, call),
            (Decision::Held { address, held }, Some(call)) => self.held(address, held, call),
            (Decision::Planned(needed), Some(Call::Allocate { bytes, alignment, .. })) => {
                assert_eq!(needed, Shadow::needed(*bytes, *alignment), "the size of a round of growth");
                self.end_round();
                self.growing = Some(Growing { round: self.shadow.plan(needed), event });
            }
            (Decision::Adopted(grant), Some(Call::Allocate { .. })) => {
                let mut growing = self.growing.take().expect("a round of growth before a grant");
                assert_eq!(growing.event, event, "a grant for another request");
                loop {
                    let bytes = growing.round.next_size().expect("a size that the source was asked for");
                    match self.calls.next() {
                        Some(SourceCall::Reserve { bytes: asked, answer: None }) if asked == bytes => {}
                        Some(SourceCall::Reserve { bytes: asked, answer: Some(granted) })
                            if asked == bytes && granted == grant =>
                        {
                            break;
                        }
                        other => panic!("the source is asked for {bytes} bytes here, but: {other:?}"),
                    }
                }
                self.shadow.adopt(grant, &growing.round);
            }
            (Decision::Emptied, None) => {
                assert!(self.shadow.is_closed() && !self.shadow.has_live(), "only of an unused closed pool");
            }
            (Decision::RegionsRemoved, call) => self.removed(event, call),
            (Decision::Changed { limit, growth }, Some(call)) => {
                let before = self.options.clone();
                match *call {
                    Call::SetLimit { limit: wanted, .. } => self.options.limit = wanted,
                    Call::SetGrowth { growth: wanted } => self.options.growth = wanted,
                    _ => panic!("not a change of limits"),
                }
                assert_eq!((limit, growth), (self.options.limit, self.options.growth));
                assert!(self.shadow.reserved() <= limit, "a limit below what is reserved");
                self.shadow.change(&before, &self.options);
                self.progress.entry(event).or_default().done = true;
            }
            (Decision::Refused, Some(Call::Allocate { answer: Answer::Refused(_), .. })) => {
                self.shadow.count_refusal();
                self.progress.entry(event).or_default().done = true;
            }
            (Decision::PeaksReset, Some(Call::ResetPeaks)) => self.shadow.reset_peaks(),
            (Decision::Closed, Some(Call::Close)) => self.shadow.close(),
            (Decision::Charged, Some(Call::Allocate { bytes, tag, .. })) => {
                let owner = self.owners.owner(self.order.thread_of(event), tag).expect("an owner");
                let rounded = bytes.next_multiple_of(256);
                assert_eq!(self.owners.exceeded(&owner, rounded), None, "a request above a scope's limit");
                self.owners.charge(&owner, rounded);
                self.progress.entry(event).or_default().owner = Some(owner);
            }
            (Decision::Settled, Some(Call::Allocate { bytes, .. })) => {
                let owner = self.progress.get_mut(&event).and_then(|progress| progress.owner.take());
                self.owners.settle(&owner.expect("a charge before"), bytes.next_multiple_of(256));
            }
            (Decision::ScopeOpened(serial), Some(Call::OpenScope { key, shared, limit })) => {
                self.owners.open(*key, self.order.thread_of(event), *shared, *limit, at);
                self.keys.insert(serial, *key);
            }
            (Decision::ScopeClosed(serial), Some(call)) => {
                self.closed_in.insert(self.keys[&serial], event);
                let figures = self.owners.close(self.keys[&serial], at);
                if let Call::CloseScope { figures: Some(returned), .. } = call {
                    assert_eq!(**returned, figures, "the figures of a closed scope");
                }
            }
            (Decision::Locked | Decision::RunsDeferred | Decision::Counted, Some(_)) => {}
            (Decision::CacheLocked { cache, .. }, Some(_)) => self.lending.lock(cache),
            (Decision::NumbersSetAside { first, count }, Some(_)) => {
                assert_eq!(self.shadow.set_numbers_aside(count), first, "numbers count up");
            }
            (Decision::Lent { address, size }, Some(_)) => self.lent(address, size),
            (Decision::TakenBack { address }, Some(_)) => self.taken_back(address),
            (Decision::Withdrawn { address, id }, Some(_)) => self.withdrawn(address, id),
            (Decision::CacheServed { cache, id }, Some(call)) => self.cache_served(cache, id, event, call),
            (Decision::CacheFreed { cache, id }, Some(call)) => self.cache_freed(cache, id, event, call),
            (Decision::ScopeLimited(serial), Some(Call::LimitScope { key, limit, done })) => {
                assert_eq!(self.keys[&serial], *key);
                assert_eq!(self.owners.limit(*key, *limit), *done, "whether a scope is open");
            }
            (decision, call) => panic!("{decision:?} of {call:?}"),
        }
    }

    fn allocated(&mut self, id: u64, event: usize, call: &Call) {
        let Call::Allocate { bytes, alignment, way, tag, answer: Answer::Served(served) } = call else {
            panic!("allocation {id} of {call:?}")
        };
        assert!(!self.shadow.is_closed(), "an allocation from a closed pool");
        assert_eq!(self.shadow.serve(*bytes, *alignment), Some(*served), "the best fit");
        let Allocation { address, requested, .. } = *served;
        let charged = self.progress.get_mut(&event).and_then(|progress| progress.owner.take());
        if let Some(owner) = &charged {
            self.owners.settle(owner, requested.next_multiple_of(256));
            self.owners.allocate(owner, requested.next_multiple_of(256));
        } else if let Some(owner) = self.owners.owner(self.order.thread_of(event), tag) {
            // The owner is that of the call's first attempt, and others decide before it is served.
            let first = self.order.window(&self.order.events[event]).first;
            let was_without = self.owners.was_without(self.order.thread_of(event), tag, first);
            assert!(was_without, "{owner:?} is not charged");
        }
        assert!(!self.has_known(id) && id == served.id, "numbers count up");
        let held = *way == AllocateWay::Held;
        *self.known_mut(id) = Known { address, requested, live: true, held, owner: charged };
    }

    fn freed(&mut self, id: u64, call: &Call) {
        let Call::Free { way, .. } = call else { panic!("free of {id} in {call:?}") };
        let known = &mut self.known[usize::try_from(id).expect("a few")];
        assert!(known.live, "allocation {id} is freed twice");
        assert_eq!(known.held, *way == FreeWay::Held, "a free of a held allocation");
        known.live = false;
        let Known { address, requested, .. } = *known;
        if let Some(owner) = known.owner.take() {
            self.owners.free(&owner, requested.next_multiple_of(256));
        }
        assert!(self.shadow.release(address, id), "allocation {id} is not at {address:#x}");
        self.frees += 1;
    }

    fn resized(&mut self, address: u64, bytes: u64, call: &Call) {
        let Call::Resize { address: wanted, bytes: wanted_bytes, size: returned } = call else {
            panic!("a resize in {call:?}")
        };
        assert_eq!((address, bytes), (*wanted, *wanted_bytes));
        let (id, _) = self.shadow.live_at(address).expect("a live allocation is resized");
        let known = &mut self.known[usize::try_from(id).expect("a few")];
        assert!(!known.held && bytes <= self.shadow.possible_at(address), "a resize without room");
        if let Some(owner) = &known.owner {
            let (before, after) = (known.requested.next_multiple_of(256), bytes.next_multiple_of(256));
            let more = after.saturating_sub(before);
            assert_eq!(self.owners.exceeded(owner, more), None, "a resize above a scope's limit");
            self.owners.resize(owner, before, after);
        }
        known.requested = bytes;
        self.shadow.resize(address, bytes);
        assert_eq!(*returned, Some(bytes.next_multiple_of(256)), "the size of its chunk");
    }

    fn held(&mut self, address: u64, held: bool, call: &Call) {
        let (id, _) = self.shadow.live_at(address).expect("a live allocation is held");
        match *call {
            Call::Allocate { answer: Answer::Served(allocation), .. } => {
                assert!(held && allocation.id == id);
            }
            Call::Pin { id: pinned, done, .. } => assert!(held && done && pinned == id),
            Call::Unpin { id: unpinned, .. } => assert!(!held && unpinned == id),
            _ => panic!("a hold in {call:?}"),
        }
        if held {
            self.were_held.insert(id);
        }
        self.known[usize::try_from(id).expect("a few")].held = held;
    }

    /// Removes the wholly free regions; each goes back to the source before its next call.
    fn removed(&mut self, event: usize, call: Option<&Call>) {
        self.end_round();
        match call {
            Some(Call::Allocate { bytes, alignment, .. }) => {
                let needed = Shadow::needed(*bytes, *alignment);
                assert!(self.options.trim_on_oom && !self.shadow.fits(needed), "a removal for no reason");
                assert!(self.shadow.release_helps(needed), "a removal that does not help");
            }
            Some(Call::SetLimit { limit, trim, .. }) => {
                assert!(*trim && self.shadow.reserved() > *limit, "a removal for no reason");
            }
            Some(Call::Trim { .. }) | None => {}
            Some(call) => panic!("a removal of regions in {call:?}"),
        }
        let mut bytes = 0;
        for region in self.shadow.remove_regions() {
            assert_eq!(self.calls.next(), Some(SourceCall::Release(region)), "the source gets this back");
            bytes += region.bytes;
        }
        if event != NO_CALL {
            let progress = self.progress.entry(event).or_default();
            progress.removal_tried = true;
            progress.removed = Some(bytes);
        }
    }
}
