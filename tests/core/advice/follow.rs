//! Follows each piece of advice in a new world that is in the state of the refusal.

use allotment::{Action, Advice, OutOfMemory, Policy, Verdict, When};

use crate::Tally;
use crate::world::{Setup, Step, World};

/// A refusal and its circumstances.
struct Case<'a> {
    setup: &'a Setup,
    steps: &'a [Step],
    last: &'a Step,
    bytes: u64,
    alignment: u64,
}

/// Follows all advice of a refusal.
///
/// # Panics
/// If a piece of advice does not help, or its number is not optimal although it claims to be.
pub(crate) fn check(setup: &Setup, steps: &[Step], last: &Step, refused: &OutOfMemory, tally: &mut Tally) {
    let (bytes, alignment) = match *last {
        Step::Allocate { bytes, alignment } => (bytes, alignment),
        Step::Explain { bytes } => (bytes, 256),
        _ => unreachable!("other steps are not refused"),
    };
    let case = Case { setup, steps, last, bytes, alignment };
    assert!(case.refuses(), "served without any advice\n{setup:?}\n{refused}\n{last:?}\n{steps:?}");
    for advice in &refused.advice {
        *tally.entry(format!("{} {}", advice.action.as_str(), advice.when.as_str())).or_default() += 1;
        let helped = match advice.when {
            When::Now => case.helps_now(advice, 0),
            When::NextRun => case.helps_from_the_start(advice),
            _ => unreachable!("no other time"),
        };
        assert!(
            helped || (advice.needs_grant && case.source_refuses_after(advice)),
            "{advice:?} does not help\n{setup:?}\n{refused}\n{last:?}\n{steps:?}"
        );
        if advice.exact && has_a_number(advice.action) {
            assert!(
                !case.helps_now(advice, 1),
                "{advice:?}: one byte better serves, too\n{setup:?}\n{refused}\n{last:?}\n{steps:?}"
            );
        }
    }
}

fn has_a_number(action: Action) -> bool {
    matches!(action, Action::RaiseLimit | Action::RaiseScope | Action::AskFor)
}

impl Case<'_> {
    /// Creates a world in the state of the refusal.
    fn world(&self) -> World {
        let mut world = World::new(self.setup);
        for step in self.steps {
            world.take(step);
        }
        world.take(self.last);
        world
    }

    fn refuses(&self) -> bool {
        self.world().request(self.bytes, self.alignment).is_err()
    }

    /// Returns whether the advice, with a number `better` bytes better than advised, makes the request succeed.
    fn helps_now(&self, advice: &Advice, better: u64) -> bool {
        let mut world = self.world();
        self.followed(&mut world, advice, better).is_ok()
    }

    fn source_refuses_after(&self, advice: &Advice) -> bool {
        let refused = self.followed(&mut self.world(), advice, 0);
        refused.is_err_and(|refused| refused.verdict == Verdict::Source)
    }

    fn followed(&self, world: &mut World, advice: &Advice, better: u64) -> Result<(), Box<OutOfMemory>> {
        match advice.action {
            Action::Free => {
                for id in &advice.allocations {
                    let place = world.held.iter().position(|held| held.id == *id);
                    let held = world.held.remove(place.expect("the advice names what is held"));
                    world.pool.free_allocation(&held).expect("live");
                }
            }
            Action::RaiseLimit => {
                let limit = advice.bytes - better;
                world.pool.set_limit(limit, false, "advice").expect("a limit that can be set");
            }
            Action::AskFor => return world.request(advice.bytes + better, self.alignment),
            Action::Trim if advice.targets.is_empty() => {
                assert_eq!(world.pool.trim(), Ok(advice.bytes));
            }
            Action::Trim => {
                assert_eq!(advice.targets, [("sibling".to_owned(), advice.bytes)]);
                assert_eq!(world.sibling.as_ref().expect("there is one").trim(), Ok(advice.bytes));
            }
            Action::RaiseScope => {
                for (place, (name, limit)) in advice.targets.iter().enumerate() {
                    let own = name.rsplit('/').next().expect("a name");
                    let (_, scope) =
                        world.scopes.iter().find(|(open, _)| open == own).expect("an open scope");
                    // One of them slightly less than advised, the others as advised.
                    let less = if place == 0 { better } else { 0 };
                    let set = world.pool.set_scope_limit(*scope, Some(limit - less));
                    assert_eq!(set, Ok(true));
                }
            }
            other => panic!("not something to do now: {other:?}"),
        }
        world.request(self.bytes, self.alignment)
    }

    /// Returns whether the same program is served under other settings.
    fn helps_from_the_start(&self, advice: &Advice) -> bool {
        let options = match advice.action {
            Action::Policy => self.setup.options.clone().policy(Policy::Tight),
            Action::Elastic => self.setup.options.clone().elastic(true).page_size(advice.bytes),
            Action::RaiseLimit => self.setup.options.clone().limit(advice.bytes),
            other => panic!("not a setting of a run: {other:?}"),
        };
        let mut world = World::new(&Setup { options, ..self.setup.clone() });
        // Advice for the next run ends with a limit that is set. What the first run could not go down to, because so much was
        // reserved, an elastic pool could.
        let is_elastic = advice.action == Action::Elastic;
        let repeated = |step: &&Step| !(is_elastic && matches!(step, Step::SetLimit(_)));
        // A program with an earlier refusal would differ.
        self.steps
            .iter()
            .filter(repeated)
            .all(|step| world.take(step).is_none() || matches!(step, Step::Explain { .. }))
            && world.request(self.bytes, self.alignment).is_ok()
    }
}
