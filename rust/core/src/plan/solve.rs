//! The search for a plan: a first one in one pass, then orders, then branch and bound and random changes of the order.

use super::clock::{Clock, Effort, PlanProgress, Random};
use super::exact::{Answer, Exact};
use super::neighbours::{Neighbours, count_pairs};
use super::orders::{ORDERS, order};
use super::placing::{Fit, Placer};
use super::sections::{Part, parts, to_blocks};
use super::sweep::sweep;
use super::{Buffer, Plan, PlanError, check_buffers, rounded};
use crate::units::MAX_BYTES;

/// The most pairs of blocks of a part that branch and bound takes on.
const MAX_EXACT_PAIRS: u64 = 4 << 20;
/// The most blocks of a part that branch and bound takes on: it calls itself once for each.
const MAX_EXACT_BLOCKS: usize = 4096;

/// Searches for the smallest arena that holds all buffers, which are in the order of their requests.
///
/// The calling thread calls `on_progress` at once and about twenty times a second; the search ends when it returns false.
/// It ends early when the arena is as small as the lower bound.
///
/// # Errors
/// If a number is out of range, or if `on_progress` ended the search.
///
/// ```
/// use allotment::plan::{Buffer, Effort, plan};
///
/// let lifetimes = [(4096, 0, 2), (8192, 1, 4), (4096, 3, 5)];
/// let buffers = lifetimes.map(|(bytes, start, end)| Buffer { bytes, start, end });
/// let found = plan(buffers.to_vec(), 256, &Effort::default(), |_| true)?;
/// assert_eq!((found.arena(), found.lower_bound()), (12288, 12288));
/// # Ok::<(), allotment::plan::PlanError>(())
/// ```
pub fn plan(
    buffers: Vec<Buffer>,
    alignment: u64,
    effort: &Effort,
    mut on_progress: impl FnMut(PlanProgress) -> bool,
) -> Result<Plan, PlanError> {
    check_buffers(&buffers, alignment)?;
    check_live(&buffers, alignment)?;
    let (blocks, _) = to_blocks(&buffers, alignment);
    let parts = parts(&blocks);
    drop(blocks);
    let lower_bound = parts.iter().map(|part| part.lower_bound).max().unwrap_or(0);
    let mut clock = Clock::new(effort, lower_bound, &mut on_progress);
    let mut parts: Vec<_> = parts.into_iter().map(Solved::new).collect();
    let proven = improve_all(&mut parts, &mut Random::new(effort.seed), &mut clock);
    if clock.is_stopped() {
        return Err(PlanError::Stopped);
    }
    let mut offsets = vec![0; buffers.len()];
    for solved in &parts {
        for (&member, &offset) in solved.part.members.iter().zip(&solved.offsets) {
            offsets[member as usize] = offset;
        }
    }
    let plan = Plan::new(buffers, offsets, alignment)?;
    Ok(if plan.arena() <= proven { plan.proven_optimal() } else { plan })
}

/// Refuses buffers of which so many bytes live at once that no arena has them, however far the first plan reaches.
fn check_live(buffers: &[Buffer], alignment: u64) -> Result<(), PlanError> {
    let mut by_end: Vec<usize> = (0..buffers.len()).collect();
    by_end.sort_unstable_by_key(|&buffer| buffers[buffer].end);
    let mut ended = by_end.into_iter().peekable();
    let mut live = 0_u64;
    for (buffer, &Buffer { bytes, start, .. }) in buffers.iter().enumerate() {
        while let Some(&gone) = ended.peek()
            && buffers[gone].end <= start
        {
            live -= rounded(buffers[gone].bytes, alignment);
            ended.next();
        }
        live += rounded(bytes, alignment);
        if live > MAX_BYTES {
            return Err(PlanError::TooLarge { buffer });
        }
    }
    Ok(())
}

/// A part with the best offsets so far.
struct Solved {
    part: Part,
    offsets: Vec<u64>,
    arena: u64,
    pairs: u64,
    /// No arena is smaller: the lower bound, or what a search has proven.
    proven: u64,
    /// The greatest common divisor of all sizes: offsets of a smallest arena are multiples of it.
    step: u64,
}

impl Solved {
    fn new(part: Part) -> Self {
        let offsets = sweep(&part.blocks);
        let mut solved = Self {
            arena: 0,
            offsets: Vec::new(),
            pairs: count_pairs(&part.blocks),
            proven: part.lower_bound,
            step: part.blocks.iter().fold(0, |step, block| gcd(step, block.size)),
            part,
        };
        solved.arena = solved.reach(&offsets);
        solved.offsets = offsets;
        solved
    }

    /// Returns how far offsets reach.
    fn reach(&self, offsets: &[u64]) -> u64 {
        self.part.blocks.iter().zip(offsets).map(|(block, offset)| block.size + offset).max().unwrap_or(0)
    }

    /// Takes offsets if they are better.
    fn offer(&mut self, offsets: &[u64]) -> bool {
        let arena = self.reach(offsets);
        let is_better = arena < self.arena;
        if is_better {
            self.arena = arena;
            self.offsets.copy_from_slice(offsets);
        }
        is_better
    }

    fn is_exact(&self) -> bool {
        self.pairs <= MAX_EXACT_PAIRS && self.part.blocks.len() <= MAX_EXACT_BLOCKS
    }
}

/// Returns the greatest common divisor.
fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Improves the parts until each is as small as the largest of their lower bounds, or until the clock ends it. Returns the
/// bytes that no arena can be smaller than: the lower bound, or what the search has proven.
fn improve_all(parts: &mut [Solved], random: &mut Random, clock: &mut Clock<'_>) -> u64 {
    let mut target = parts.iter().map(|solved| solved.proven).max().unwrap_or(0);
    let mut open: Vec<&mut Solved> = parts.iter_mut().filter(|solved| solved.arena > target).collect();
    // The fewest pairs first: where time is short, most parts are improved.
    open.sort_by_key(|solved| solved.pairs);
    for solved in &mut open {
        try_orders(solved, target, clock);
    }
    open.retain(|solved| solved.arena > target);
    let mut round = 0;
    while !open.is_empty() && !clock.is_over() {
        clock.progress.arena = open.iter().map(|solved| solved.arena).max();
        for solved in &mut open {
            improve(solved, target, round, random, clock);
            target = target.max(solved.proven);
        }
        open.retain(|solved| solved.arena > target);
        round += 1;
    }
    target
}

fn try_orders(solved: &mut Solved, target: u64, clock: &mut Clock<'_>) {
    let part = solved.part.clone();
    let mut placer = Placer::new(&part.blocks);
    for keys in ORDERS {
        let order = order(&part, keys);
        for fit in [Fit::First, Fit::Best] {
            if solved.arena <= target || clock.is_over() {
                return;
            }
            if placer.place(&order, fit, solved.arena, clock).is_some() {
                solved.offer(&placer.offsets);
            }
        }
    }
}

/// One round of improvement of a part.
fn improve(solved: &mut Solved, target: u64, round: u32, random: &mut Random, clock: &mut Clock<'_>) {
    if !solved.is_exact() {
        return reorder(solved, round, random, clock);
    }
    let part = solved.part.clone();
    let neighbours = Neighbours::listed(&part.blocks);
    let mut exact = Exact::new(&part, &neighbours);
    let nodes = (part.blocks.len() as u64) << exponent(round);
    for (attempt, keys) in (0..).zip(ORDERS) {
        let mut order = order(&part, keys);
        if round >= ROUNDS_IN_ORDER {
            shuffle(&mut order, random);
        }
        let lowest = target.max(solved.proven);
        if lowest >= solved.arena || clock.is_over() {
            return;
        }
        // While the arena is far above the bound most attempts make it smaller, later half of them go for the bound.
        let is_far = solved.arena - lowest > lowest / 25;
        let shares = if is_far { [4, 7, 6, 0, 5, 7] } else { [0, 4, 0, 7, 0, 2] };
        let eighths = shares[(round + attempt) as usize % shares.len()];
        let capacity = lowest + (solved.arena - lowest) / solved.step * eighths / 8 * solved.step;
        match exact.search(capacity, &order, nodes, clock) {
            Answer::Fits => {
                solved.offer(&exact.offsets);
            }
            Answer::Impossible => solved.proven = capacity / solved.step * solved.step + solved.step,
            Answer::Unknown => {}
        }
    }
}

/// Places the blocks of a large part in an order that is changed a little; keeps it if that is no worse.
fn reorder(solved: &mut Solved, round: u32, random: &mut Random, clock: &mut Clock<'_>) {
    let part = solved.part.clone();
    let keys = ORDERS[round as usize % ORDERS.len()];
    let mut order = order(&part, keys);
    shuffle(&mut order, random);
    let mut placer = Placer::new(&part.blocks);
    if placer.place(&order, Fit::First, solved.arena, clock).is_some() {
        solved.offer(&placer.offsets);
    }
}

/// The rounds in which orders are tried as they are, each with twice the nodes of the round before.
const ROUNDS_IN_ORDER: u32 = 3;

/// Returns how often a round doubles the nodes of a search: in the order of Luby, Sinclair and Zuckerman, which is never
/// far from the best one where nothing is known of the time that a search takes.
fn exponent(round: u32) -> u32 {
    if round < ROUNDS_IN_ORDER {
        return round + 1;
    }
    let mut index = round - ROUNDS_IN_ORDER + 1;
    loop {
        let bits = u32::BITS - index.leading_zeros();
        if index == (1 << bits) - 1 {
            return bits;
        }
        index -= (1 << (bits - 1)) - 1;
    }
}

/// Moves some blocks of an order.
fn shuffle(order: &mut Vec<u32>, random: &mut Random) {
    for _ in 0..=random.below(1 + order.len() / 8) {
        let from = random.below(order.len());
        let block = order.remove(from);
        let to = random.below(order.len() + 1);
        order.insert(to, block);
    }
}
