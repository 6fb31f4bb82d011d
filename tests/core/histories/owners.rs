//! Scopes and tags, slow and simple: every figure is summed up along the path of each owner.

use std::collections::HashMap;

use allotment::{ScopeLimitReached, ScopeStats};

use crate::event::{Key, Tag};

/// The owner of an allocation: the innermost scope, and the tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) scope: Option<Key>,
    pub(crate) tag: Tag,
}

#[derive(Debug)]
struct Scope {
    parent: Option<Key>,
    open: bool,
    shared: bool,
    thread: u64,
    limit: Option<u64>,
    live: u64,
    pending: u128,
    num_live: u64,
    peak: u64,
    allocated: u64,
    freed: u64,
}

/// All scopes of a history.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// By key.
    scopes: Vec<Option<Scope>>,
    /// In the order in which they were opened.
    opened: Vec<Key>,
    /// The decision that opened the first of the open shared scopes.
    shared_since: usize,
    /// The last decision that closed a scope of each thread.
    closed: HashMap<u64, usize>,
    tags: bool,
}

impl Owners {
    pub(crate) fn new(tags: bool) -> Self {
        Self { tags, ..Self::default() }
    }

    pub(crate) fn open(&mut self, key: Key, thread: u64, shared: bool, limit: Option<u64>, at: usize) {
        if shared && self.innermost(|scope| scope.shared).is_none() {
            self.shared_since = at;
        }
        let parent = if shared { self.innermost(|scope| scope.shared) } else { self.scope_of(thread) };
        let scope = Scope {
            parent,
            open: true,
            shared,
            thread,
            limit,
            live: 0,
            pending: 0,
            num_live: 0,
            peak: 0,
            allocated: 0,
            freed: 0,
        };
        let place = usize::try_from(key).expect("a few");
        if self.scopes.len() <= place {
            self.scopes.resize_with(place + 1, || None);
        }
        self.scopes[place] = Some(scope);
        self.opened.push(key);
    }

    /// Closes a scope; returns its figures.
    pub(crate) fn close(&mut self, key: Key, at: usize) -> ScopeStats {
        let figures = self.stats(key).expect("an open scope");
        let scope = self.get_mut(key);
        scope.open = false;
        scope.limit = None;
        if !scope.shared {
            let thread = scope.thread;
            self.closed.insert(thread, at);
        }
        self.opened.retain(|&open| open != key);
        figures
    }

    /// Sets a limit; returns whether the scope is open.
    pub(crate) fn limit(&mut self, key: Key, limit: Option<u64>) -> bool {
        let scope = self.get_mut(key);
        if scope.open {
            scope.limit = limit;
        }
        scope.open
    }

    /// Returns the owner of a request of a thread.
    pub(crate) fn owner(&self, thread: u64, tag: &Tag) -> Option<Owner> {
        let scope = self.scope_of(thread);
        let tag = tag.clone().filter(|_| self.tags);
        (scope.is_some() || tag.is_some()).then_some(Owner { scope, tag })
    }

    /// Returns whether a thread has an open scope of its own.
    pub(crate) fn has_own(&self, thread: u64) -> bool {
        self.innermost(|scope| !scope.shared && scope.thread == thread).is_some()
    }

    /// Returns whether requests of a thread that has an owner now had none at a moment since `first`.
    pub(crate) fn was_without(&self, thread: u64, tag: &Tag, first: usize) -> bool {
        let has_tag = self.tags && tag.is_some();
        let has_own = self.innermost(|scope| !scope.shared && scope.thread == thread).is_some();
        let without_own = self.closed.get(&thread).map_or(0, |&closed| closed + 1);
        !has_tag && !has_own && self.shared_since >= first.max(without_own)
    }

    fn scope_of(&self, thread: u64) -> Option<Key> {
        let own = self.innermost(|scope| !scope.shared && scope.thread == thread);
        own.or_else(|| self.innermost(|scope| scope.shared))
    }

    fn innermost(&self, which: impl Fn(&Scope) -> bool) -> Option<Key> {
        self.opened.iter().rev().copied().find(|&key| which(self.get(key)))
    }

    /// Returns the innermost limit that a request of `bytes` rounded bytes would exceed.
    pub(crate) fn exceeded(&self, owner: &Owner, bytes: u64) -> Option<ScopeLimitReached> {
        self.path(owner.scope).find_map(|key| {
            let Scope { limit, live, pending, .. } = *self.get(key);
            let limit = limit?;
            let wanted = u128::from(live) + pending + u128::from(bytes);
            (wanted > u128::from(limit)).then(|| ScopeLimitReached {
                name: self.name(&Owner { scope: Some(key), tag: None }),
                limit,
                live,
            })
        })
    }

    pub(crate) fn charge(&mut self, owner: &Owner, bytes: u64) {
        self.each(owner, |scope| scope.pending += u128::from(bytes));
    }

    pub(crate) fn settle(&mut self, owner: &Owner, bytes: u64) {
        self.each(owner, |scope| scope.pending -= u128::from(bytes));
    }

    pub(crate) fn allocate(&mut self, owner: &Owner, bytes: u64) {
        self.each(owner, |scope| {
            scope.live += bytes;
            scope.peak = scope.peak.max(scope.live);
            scope.allocated += bytes;
            scope.num_live += 1;
        });
    }

    pub(crate) fn free(&mut self, owner: &Owner, bytes: u64) {
        self.each(owner, |scope| {
            scope.live -= bytes;
            scope.freed += bytes;
            scope.num_live -= 1;
        });
    }

    pub(crate) fn resize(&mut self, owner: &Owner, before: u64, after: u64) {
        self.each(owner, |scope| {
            scope.live = scope.live - before + after;
            scope.peak = scope.peak.max(scope.live);
            scope.allocated += after.saturating_sub(before);
            scope.freed += before.saturating_sub(after);
        });
    }

    /// Returns the figures of a scope, if it is open.
    pub(crate) fn stats(&self, key: Key) -> Option<ScopeStats> {
        let Scope { open, limit, live, num_live, peak, allocated, freed, .. } = *self.scope(key)?;
        let name = self.name(&Owner { scope: Some(key), tag: None });
        open.then_some(ScopeStats { name, limit, live, num_live, peak, allocated, freed })
    }

    pub(crate) fn is_open(&self, key: Key) -> bool {
        self.scope(key).is_some_and(|scope| scope.open)
    }

    /// Returns the name of an owner, with those above it.
    pub(crate) fn name(&self, owner: &Owner) -> String {
        let mut names: Vec<String> = self.path(owner.scope).map(|key| format!("scope {key}")).collect();
        names.reverse();
        names.extend(owner.tag.as_deref().map(str::to_owned));
        names.join("/")
    }

    /// Returns a scope and those above it.
    fn path(&self, scope: Option<Key>) -> impl Iterator<Item = Key> {
        std::iter::successors(scope, |&key| self.get(key).parent)
    }

    fn each(&mut self, owner: &Owner, change: impl Fn(&mut Scope)) {
        let mut next = owner.scope;
        while let Some(key) = next {
            let scope = self.get_mut(key);
            change(scope);
            next = scope.parent;
        }
    }

    fn scope(&self, key: Key) -> Option<&Scope> {
        self.scopes.get(usize::try_from(key).expect("a few"))?.as_ref()
    }

    fn get(&self, key: Key) -> &Scope {
        self.scope(key).expect("a scope of this history")
    }

    fn get_mut(&mut self, key: Key) -> &mut Scope {
        let scope = self.scopes.get_mut(usize::try_from(key).expect("a few")).and_then(Option::as_mut);
        scope.expect("a scope of this history")
    }
}
