//! Pools that follow a plan, beside lists that are searched from end to end.
//!
//! Longer than 300 lines: one rule after the other of one concept, with the same few helpers.

use std::sync::Arc;
use std::time::Duration;

use allotment::plan::{Buffer, Effort, Plan, plan};
use allotment::replay::replay;
use allotment::source::AddressSpace;
use allotment::{AllocError, Allocator, GRANULE, Grant, Options, OptionsError, Pool, RegionSource, Request};

#[allow(dead_code, reason = "other tests need the rest")]
#[path = "../support/numbers.rs"]
mod numbers;
#[allow(dead_code, reason = "other tests need the rest")]
#[path = "../support/traces.rs"]
mod traces;

use numbers::Numbers;

/// A program: requests and frees, in order. A free names the request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Allocate { name: usize, bytes: u64 },
    Free { name: usize },
}

/// A random program, with all blocks freed at its end.
fn program(random: &mut Numbers, requests: usize, sizes: u64) -> Vec<Step> {
    let (mut steps, mut live) = (Vec::new(), Vec::new());
    for name in 0..requests {
        steps.push(Step::Allocate { name, bytes: 1 + random.below(sizes) });
        live.push(name);
        while !live.is_empty() && random.chance(45) {
            steps.push(Step::Free { name: live.swap_remove(random.place(live.len())) });
        }
    }
    steps.extend(live.into_iter().map(|name| Step::Free { name }));
    steps
}

/// The requests of a program as buffers to plan.
fn buffers(steps: &[Step]) -> Vec<Buffer> {
    let mut buffers: Vec<Buffer> = Vec::new();
    for (time, step) in (0..).zip(steps) {
        match *step {
            Step::Allocate { bytes, .. } => buffers.push(Buffer { bytes, start: time, end: u64::MAX }),
            Step::Free { name } => buffers[name].end = time,
        }
    }
    buffers
}

fn planned(steps: &[Step], steps_of_search: u64) -> Arc<Plan> {
    let effort = Effort::default().time(Duration::from_secs(60)).steps(steps_of_search);
    Arc::new(plan(buffers(steps), GRANULE, &effort, |_| true).expect("valid"))
}

fn pool(plan: &Arc<Plan>, limit: u64) -> Pool {
    Pool::new(AddressSpace::new(0), Options::new(limit).plan(Arc::clone(plan))).expect("valid options")
}

/// The start of the only region.
fn start(pool: &Pool) -> u64 {
    let regions = pool.snapshot().expect("usable").regions;
    assert_eq!(regions.len(), 1);
    regions[0].address
}

/// Live ranges, by request.
#[derive(Default)]
struct Ranges(Vec<(usize, u64, u64)>);

impl Ranges {
    fn add(&mut self, name: usize, address: u64, bytes: u64) {
        let end = address + bytes;
        let apart = self.0.iter().all(|&(_, start, other_end)| end <= start || other_end <= address);
        assert!(apart, "request {name} overlaps another one");
        self.0.push((name, address, end));
    }

    fn remove(&mut self, name: usize) -> Option<u64> {
        let index = self.0.iter().position(|&(other, ..)| other == name)?;
        Some(self.0.swap_remove(index).1)
    }
}

/// Plays a program; checks ranges, counters and all invariants on the way.
fn play(pool: &Pool, steps: &[Step], ranges: &mut Ranges, first_name: usize) {
    for step in steps {
        match *step {
            Step::Allocate { name, bytes } => {
                let refused_before = pool.stats().expect("usable").num_refused;
                let is_predicted = pool.can_allocate(bytes).expect("usable");
                match pool.allocate(bytes) {
                    Ok(allocation) => ranges.add(first_name + name, allocation.address, bytes),
                    Err(AllocError::OutOfMemory(refused)) => {
                        let stats = pool.stats().expect("usable");
                        assert_eq!((refused.free, refused.largest_free), (stats.free, stats.largest_free));
                        assert!(stats.largest_free < bytes, "a free chunk would have served");
                    }
                    Err(other) => panic!("{other}"),
                }
                assert_eq!(is_predicted, pool.stats().expect("usable").num_refused == refused_before);
            }
            Step::Free { name } => {
                if let Some(address) = ranges.remove(first_name + name) {
                    pool.free(address).expect("live");
                }
            }
        }
        pool.check().expect("sound");
        let stats = pool.stats().expect("usable");
        assert_eq!(stats.num_live, ranges.0.len() as u64);
    }
}

#[test]
fn a_program_that_keeps_to_its_plan_needs_exactly_the_arena_again_and_again() {
    for seed in 0..20 {
        let steps = program(&mut Numbers::new(seed), 120, 9000);
        let plan = planned(&steps, 20_000);
        // With room for the arena and no byte more.
        let pool = pool(&plan, plan.arena());
        for round in 0..3 {
            if round == 2 {
                // The next request reserves the arena again, at another address.
                assert_eq!(pool.trim(), Ok(plan.arena()));
            }
            let mut names = Vec::new();
            let mut live = Vec::new();
            for step in &steps {
                match *step {
                    Step::Allocate { name, bytes } => {
                        let allocation = pool.allocate(bytes).expect("planned");
                        assert_eq!(allocation.address - start(&pool), plan.offsets()[name], "seed {seed}");
                        names.push(allocation.address);
                        live.push(name);
                    }
                    Step::Free { name } => pool.free(names[name]).expect("live"),
                }
            }
            let stats = pool.stats().expect("usable");
            assert_eq!((stats.num_planned, stats.num_refused), ((round + 1) * 120, 0));
            assert_eq!((stats.peak_reserved, stats.num_grants), (plan.arena(), 1 + round / 2));
        }
    }
}

#[test]
fn programs_that_depart_from_the_plan_lose_nothing() {
    for seed in 0..150 {
        let random = &mut Numbers::new(seed);
        let sizes = [600, 3000, 9000][random.place(3)];
        let steps = program(random, 60, sizes);
        let plan = planned(&steps, 5_000);
        let limit = plan.arena() + [0, 4096, 8 << 20][random.place(3)];
        let pool = pool(&plan, limit);
        let mut ranges = Ranges::default();
        for round in 0..6 {
            // Other sizes, requests left out or added, another order, another program.
            let changed: Vec<Step> = if random.below(4) == 0 {
                program(random, 60, 3000)
            } else {
                let (often, start) = (random.below(20), random.place(steps.len()));
                let change = |step: Step| match step {
                    Step::Allocate { name, .. } if random.chance(often) => {
                        Step::Allocate { name, bytes: 1 + random.below(9000) }
                    }
                    other => other,
                };
                let mut changed: Vec<_> = steps.iter().copied().map(change).collect();
                changed.rotate_left(start);
                changed
            };
            play(&pool, &changed, &mut ranges, 1000 * round);
            if random.chance(30) {
                pool.trim().expect("usable");
                pool.check().expect("sound");
            }
            while ranges.0.len() > 20 {
                let name = ranges.0[random.place(ranges.0.len())].0;
                pool.free(ranges.remove(name).expect("live")).expect("live");
            }
        }
        for (_, address, _) in ranges.0.drain(..) {
            pool.free(address).expect("live");
        }
        pool.trim().expect("usable");
        assert_eq!(pool.stats().expect("usable").reserved, 0);
        // The whole arena can be had again in one piece.
        assert!(pool.allocate(plan.arena()).is_ok(), "seed {seed}");
    }
}

#[test]
fn a_departure_costs_few_planned_places() {
    let sizes = |range: std::ops::Range<u64>| range.map(|size| size * GRANULE).collect::<Vec<_>>();
    let plan_of = |sizes: &[u64]| {
        let buffers =
            (0..).zip(sizes).map(|(time, &bytes)| Buffer { bytes, start: time, end: time + 6 }).collect();
        Arc::new(plan(buffers, GRANULE, &Effort::default().steps(1000), |_| true).expect("valid"))
    };
    let all = sizes(1..101);
    // Blocks live shorter than planned, so that none is in the way of another one.
    // Which requests of a program get a place, each block being freed two requests later.
    let served = |program: &[u64]| {
        let pool = pool(&plan_of(&all), 64 << 20);
        let mut live = std::collections::VecDeque::new();
        for &bytes in program {
            live.push_back(pool.allocate(bytes).expect("room").address);
            if live.len() > 2 {
                pool.free(live.pop_front().expect("live")).expect("live");
            }
        }
        pool.stats().expect("usable").num_planned
    };
    assert_eq!(served(&all), 100);
    let changed = |change: &dyn Fn(&mut Vec<u64>)| {
        let mut program = all.clone();
        change(&mut program);
        served(&program)
    };
    // One that is not in the plan, one of another size, one left out.
    assert_eq!(changed(&|program| program.insert(50, 1 << 20)), 100);
    assert_eq!(changed(&|program| program[50] = 1 << 20), 99);
    assert_eq!(changed(&|program| _ = program.remove(50)), 99);
    // Two blocks that are still live may be in the way of two or three, and those of others.
    let few = |served: u64, most: u64| assert!((most - 6..=most).contains(&served), "{served} of {most}");
    // Ten left out; forty, which are more than it looks ahead: three requests later it knows the place.
    few(changed(&|program| drop(program.drain(50..60))), 90);
    few(changed(&|program| drop(program.drain(50..90))), 57);
    // From the middle of the plan back to its start, and from its end.
    few(served(&[&all[..50], &all[..]].concat()), 147);
    few(served(&[&all[..], &all[..]].concat()), 200);
}

#[test]
fn an_arena_that_the_source_declines_is_no_loss() {
    /// A source that grants regions of up to a size.
    struct Small(AddressSpace, u64);
    impl RegionSource for Small {
        fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, allotment::source::ReserveError> {
            if bytes > self.1 {
                Err(allotment::source::ReserveError::Declined)
            } else {
                self.0.reserve(bytes, alignment)
            }
        }
        fn release(&mut self, grant: Grant) {
            self.0.release(grant);
        }
    }
    let buffers =
        vec![Buffer { bytes: 3 << 20, start: 0, end: 2 }, Buffer { bytes: 3 << 20, start: 1, end: 2 }];
    let plan = Arc::new(plan(buffers, GRANULE, &Effort::default(), |_| true).expect("valid"));
    let options = Options::new(16 << 20).plan(Arc::clone(&plan));
    let pool = Pool::new(Small(AddressSpace::new(GRANULE), 4 << 20), options.clone()).expect("valid");
    let first = pool.allocate(3 << 20).expect("room");
    assert!(pool.allocate(3 << 20).is_ok());
    let stats = pool.stats().expect("usable");
    assert_eq!((stats.num_planned, stats.num_regions), (0, 2));
    pool.free(first.address).expect("live");

    // A request that is larger than the arena does without it.
    let tight = options.clone().policy(allotment::Policy::Tight);
    let pool = Pool::new(AddressSpace::new(0), tight).expect("valid");
    assert!(pool.allocate(12 << 20).is_ok());
    assert!(pool.can_allocate(3 << 20).expect("usable"));
    assert!(pool.allocate(3 << 20).is_ok());

    // An alignment that the planned address does not have.
    let pool = Pool::new(AddressSpace::new(0), options.clone()).expect("valid");
    let shifted = pool.allocate(Request::new(3 << 20).align(4 << 20)).expect("room");
    assert!(shifted.address.is_multiple_of(4 << 20));
    pool.check().expect("sound");

    // An allocator follows the same plan.
    let mut allocator = Allocator::new(AddressSpace::new(0), options).expect("valid");
    let blocks = [0, 1].map(|_| allocator.allocate(3 << 20).expect("planned").address);
    assert_eq!(blocks.map(|address| address - AddressSpace::START), [plan.offsets()[0], plan.offsets()[1]]);
    assert_eq!((allocator.stats().num_planned, allocator.stats().reserved), (2, plan.arena()));
    allocator.check().expect("sound");
}

#[test]
fn what_does_not_go_with_a_plan_is_refused() {
    let buffer = Buffer { bytes: 1000, start: 0, end: 1 };
    let small = Arc::new(Plan::new(vec![buffer], vec![0], 8).expect("valid"));
    let plan = Arc::new(Plan::new(vec![buffer], vec![512], 256).expect("valid"));
    let refused = |options: Options| Pool::new(AddressSpace::new(0), options).err();
    let options = Options::new(1 << 20).plan(plan);
    for (options, option) in [
        (options.clone().guard(true), "guard"),
        (options.clone().elastic(true), "elastic"),
        (options.clone().thread_caches(true), "thread_caches"),
    ] {
        assert_eq!(refused(options), Some(OptionsError::NotPlanned { option }));
    }
    assert_eq!(
        refused(options.clone().limit(1024)),
        Some(OptionsError::PlanAboveLimit { arena: 1536, limit: 1024 })
    );
    assert_eq!(refused(options.plan(small)), Some(OptionsError::PlanAlignment { alignment: 8 }));
}

#[test]
fn a_recorded_training_step_replays_in_exactly_the_arena() {
    let trace = traces::named(|name| name == "torch_gnn_train").pop();
    let program = trace.expect("a trace of the repository").program;
    let effort = Effort::default().time(Duration::from_secs(60)).steps(1_000_000);
    let plan = Arc::new(plan(program.buffers(), GRANULE, &effort, |_| true).expect("valid"));
    assert!(plan.arena() <= plan.lower_bound() / 100 * 105);
    assert_eq!(plan.lower_bound(), program.peak_in_granules());
    let mut offsets = vec![0; program.events().len()];
    let options = Options::new(plan.arena()).plan(Arc::clone(&plan));
    let outcome = replay(&program, &options, 0, Some(&mut offsets)).expect("valid options");
    assert_eq!((outcome.refused, outcome.stats.peak_reserved), (0, plan.arena()));
    assert_eq!(outcome.stats.num_planned, plan.buffers().len() as u64);
    for (buffer, &offset) in plan.buffers().iter().zip(plan.offsets()) {
        assert_eq!(
            offsets[usize::try_from(buffer.start).expect("an event")],
            i64::try_from(offset).expect("small")
        );
    }
}
