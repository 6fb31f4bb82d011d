//! The calls of a thread that neither allocate nor free: queries, limits, trims, scopes.

use std::sync::atomic::Ordering;

use allotment::bindings::PoolForBindings as _;
use allotment::{LimitError, set_tag};

use crate::event::Call;
use crate::worker::Worker;

impl Worker<'_> {
    pub(crate) fn query(&mut self) {
        let query = self.random.below(9);
        if query == 8 {
            return self.snapshot();
        }
        let (bytes, tag) = (self.bytes(), self.tag.clone());
        let here = "this process";
        self.call(|pool| match query {
            0..3 => Call::Stats(Box::new(pool.stats().expect(here))),
            3..6 => Call::CanAllocate { bytes, tag, can: pool.can_allocate(bytes).expect(here) },
            6 => Call::Limit(pool.limit().expect(here)),
            _ => Call::Activity(pool.activity().expect(here)),
        });
    }

    pub(crate) fn snapshot(&mut self) {
        self.call(|pool| Call::Snapshot(Box::new(pool.snapshot().expect("this process"))));
    }

    pub(crate) fn change(&mut self) {
        let outside = "not inside a source";
        match self.random.below(if self.shared.setup.closes { 48 } else { 47 }) {
            0..20 => self.call(|pool| Call::Trim { released: pool.trim().expect(outside) }),
            20..36 => {
                let limit = self.shared.setup.options.limit * (50 + self.random.below(80)) / 100;
                let trim = self.random.chance(50);
                self.call(|pool| {
                    let released = pool.set_limit(limit, trim, "limit");
                    assert!(!matches!(released, Err(LimitError::Unusable(_))), "{released:?}");
                    Call::SetLimit { limit, trim, released }
                })
            }
            36..40 => {
                let growth = self.random.chance(70);
                self.call(|pool| {
                    pool.set_growth(growth).expect(outside);
                    Call::SetGrowth { growth }
                })
            }
            40..47 => self.call(|pool| {
                pool.reset_peaks().expect("this process");
                Call::ResetPeaks
            }),
            _ => self.call(|pool| {
                pool.close().expect(outside);
                Call::Close
            }),
        };
    }

    pub(crate) fn scope(&mut self) {
        let here = "this process";
        match self.random.below(8) {
            0..2 => self.open_scope(),
            2..4 => drop(self.close_scope(false)),
            4 => {
                let name = ["loader", "step"][self.random.place(2)];
                self.tag = self.random.chance(60).then(|| name.into());
                set_tag(self.tag.clone());
            }
            kind => {
                let scopes = self.shared.scopes.lock().expect("no thread fails").clone();
                if scopes.is_empty() {
                    return;
                }
                let (key, scope) = scopes[self.random.place(scopes.len())];
                if kind == 5 {
                    let limit = self.scope_limit();
                    self.call(|pool| {
                        let done = pool.set_scope_limit(scope, limit).expect(here);
                        Call::LimitScope { key, limit, done }
                    });
                } else {
                    self.call(|pool| {
                        let figures = pool.scope_stats(scope).expect(here).map(Box::new);
                        Call::ScopeStats { key, figures }
                    });
                }
            }
        }
    }

    fn scope_limit(&mut self) -> Option<u64> {
        let limit = self.shared.setup.options.limit;
        self.random.chance(60).then(|| limit / 64 * (1 + self.random.below(32)))
    }

    fn open_scope(&mut self) {
        let key = self.shared.next_scope.fetch_add(1, Ordering::Relaxed);
        let (shared, limit) = (self.random.chance(30), self.scope_limit());
        let mut opened = None;
        self.call(|pool| {
            opened = Some(pool.open_scope(&format!("scope {key}"), limit, shared).expect("this process"));
            Call::OpenScope { key, shared, limit }
        });
        let scopes = &mut *self.shared.scopes.lock().expect("no thread fails");
        scopes.extend(opened.map(|scope| (key, scope)));
    }

    /// Closes one of the open scopes, of any thread; returns whether there was one.
    pub(crate) fn close_scope(&mut self, at_once: bool) -> bool {
        let mut scopes = self.shared.scopes.lock().expect("no thread fails");
        if scopes.is_empty() {
            return false;
        }
        let which = self.random.place(scopes.len());
        let (key, scope) = scopes[which];
        // Sometimes two threads close it.
        if at_once || self.random.chance(80) {
            scopes.swap_remove(which);
        }
        drop(scopes);
        if at_once || self.random.chance(70) {
            self.call(|pool| {
                let figures = pool.close_scope(scope).expect("this process").map(Box::new);
                Call::CloseScope { key, figures }
            });
        } else {
            self.call(|pool| {
                pool.close_scope_deferred(scope);
                Call::CloseScopeDeferred { key }
            });
        }
        true
    }
}
