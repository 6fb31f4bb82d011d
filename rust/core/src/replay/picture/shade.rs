//! A grid of shares: how much of each cell is covered by blocks that are too many to show one by one.

use std::ops::Range;

use super::BlockSpan;
use crate::units::ratio;

/// A grid over the events that are shown (columns) and addresses (rows).
#[derive(Debug, Clone, PartialEq)]
pub struct Shade {
    columns: usize,
    rows: usize,
    /// Number of blocks.
    blocks: u64,
    /// The share of each cell that is covered, row after row from the lowest address on; of whole columns in between
    /// as differences to the cell on the left until [`Shade::cells`].
    edges: Vec<f64>,
    differences: Vec<f64>,
}

impl Shade {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        let (columns, rows) = (columns.max(1), rows.max(1));
        let cells = columns * rows;
        Self { columns, rows, blocks: 0, edges: vec![0.0; cells], differences: vec![0.0; cells] }
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of blocks in the grid.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns the covered share of each cell from 0 to 255, row after row from the lowest address on. What is covered
    /// at all is at least 1.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the share is clamped to the range of a byte"
    )]
    pub fn cells(&self) -> Vec<u8> {
        let mut cells = Vec::with_capacity(self.edges.len());
        let rows = self.edges.chunks(self.columns).zip(self.differences.chunks(self.columns));
        for (edges, differences) in rows {
            let mut whole = 0.0;
            for (edge, difference) in edges.iter().zip(differences) {
                whole += difference;
                let share = whole + edge;
                // A rest of a block that has ended, from rounding, is not a share.
                cells.push(if share < 1e-9 { 0 } else { (share * 255.0).clamp(1.0, 255.0) as u8 });
            }
        }
        cells
    }

    /// Adds a block; `top` is the end of the highest row, and more than 0 if any block has bytes.
    pub(super) fn add(&mut self, block: &BlockSpan, shown: &Range<usize>, top: u64) {
        self.blocks += 1;
        let column =
            |event: usize| ratio((event - shown.start) as u64, shown.len() as u64) * real(self.columns);
        let (left, right) =
            (column(block.start.max(shown.start)), column(block.end.unwrap_or(shown.end).min(shown.end)));
        let row = |address: u64| ratio(address, top) * real(self.rows);
        let (low, high) = (row(block.offset), row(block.offset + block.size));
        let (first, last) = (cell(left, self.columns), cell(right, self.columns));
        for number in cell(low, self.rows)..=cell(high, self.rows) {
            let height = high.min(real(number + 1)) - low.max(real(number));
            let start = number * self.columns;
            if first == last {
                self.edges[start + first] += height * (right - left);
                continue;
            }
            self.edges[start + first] += height * (real(first + 1) - left);
            self.edges[start + last] += height * (right - real(last));
            self.differences[start + first + 1] += height;
            self.differences[start + last] -= height;
        }
    }
}

/// Returns the cell of a position from 0 to `cells`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positions are not negative, and cut to the cell they are in"
)]
fn cell(position: f64, cells: usize) -> usize {
    (position as usize).min(cells - 1)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of cells are small")]
fn real(cells: usize) -> f64 {
    cells as f64
}
