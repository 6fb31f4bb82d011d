//! Orders in which blocks are placed.

use super::sections::{Block, Part, totals};

/// A property by which buffers are ordered, the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Size in bytes.
    Size,
    /// Number of sections.
    Width,
    /// Size times width.
    Area,
    /// The most bytes that live at once while the block does.
    Pressure,
    /// What starts first comes first.
    Start,
}

/// The orders that are tried, the most promising first.
pub(super) const ORDERS: &[&[Key]] = &[
    &[Key::Size, Key::Width],
    &[Key::Width, Key::Area, Key::Pressure],
    &[Key::Pressure, Key::Area, Key::Width],
    &[Key::Area, Key::Size],
    &[Key::Width, Key::Size],
    &[Key::Pressure, Key::Width, Key::Area],
    &[Key::Pressure, Key::Size, Key::Width],
    &[Key::Start, Key::Size],
];

/// Returns the blocks of a part in an order.
pub(super) fn order(part: &Part, keys: &[Key]) -> Vec<u32> {
    let pressures =
        if keys.contains(&Key::Pressure) { pressures(&part.blocks, part.sections) } else { Vec::new() };
    let mut ranked: Vec<([u128; 3], u32)> = (0..)
        .zip(&part.blocks)
        .map(|(index, &block)| {
            let mut values = [0; 3];
            for (value, key) in values.iter_mut().zip(keys) {
                *value = u128::MAX
                    - match key {
                        Key::Size => block.size.into(),
                        Key::Width => block.width().into(),
                        Key::Area => block.area(),
                        Key::Pressure => pressures[index as usize].into(),
                        Key::Start => u128::MAX - u128::from(block.from),
                    };
            }
            (values, index)
        })
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, index)| index).collect()
}

/// Returns the most bytes that live at once in the sections of each block.
pub(super) fn pressures(blocks: &[Block], sections: usize) -> Vec<u64> {
    // `levels[k]` has the maximum of each run of 2^k sections.
    let mut levels = vec![totals(blocks, sections)];
    let mut step = 1;
    while let Some(last) = levels.last()
        && last.len() > step
    {
        levels.push(last.iter().zip(&last[step..]).map(|(one, other)| *one.max(other)).collect());
        step *= 2;
    }
    let of = |block: &Block| {
        let level = (block.width().ilog2() as usize).min(levels.len() - 1);
        let last = block.to as usize - (1 << level);
        levels[level][block.from as usize].max(levels[level][last])
    };
    blocks.iter().map(of).collect()
}
