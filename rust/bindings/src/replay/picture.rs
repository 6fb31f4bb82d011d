//! Replays with the detail that a picture has room for, packed for `NumPy`.

use std::ops::Range;

use allotment::replay::{self as core, BlockSpan, Detail, Point};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{Program, Replay, gap_argument, options, replay_error, with_pages};
use crate::interpreter::detach;
use crate::size::size_argument;

/// Cells of the grid of blocks that are not shown one by one: rows and columns.
const GRID: (usize, usize) = (256, 512);

/// The content of a picture of a replay. Amounts are in bytes, events are numbers from 0 on.
#[pyclass(frozen, module = "allotment")]
pub(crate) struct Picture {
    drawn: core::Picture,
    /// Number of events of the program.
    events: usize,
}

#[pymethods]
impl Picture {
    /// The result of the whole replay; its time includes what the picture took.
    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Replay>> {
        Replay::new(py, self.drawn.outcome, self.events)
    }

    /// The first event that is shown, and the first one behind them.
    #[getter]
    fn shown(&self) -> (usize, usize) {
        let Range { start, end } = self.drawn.events;
        (start, end)
    }

    /// The curves: rows of seven 64-bit integers, each of some events.
    ///
    /// The last of these events; the least and the most bytes live, the most in use, the most reserved during them;
    /// free bytes and the largest free chunk after the last one.
    #[getter]
    fn points<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        pack(py, &self.drawn.points, |point| {
            let &Point { event, least_live, most_live, most_in_use, most_reserved, free, largest_free } =
                point;
            [event as u64, least_live, most_live, most_in_use, most_reserved, free, largest_free]
        })
    }

    /// The blocks of the largest area: rows of five 64-bit integers.
    ///
    /// Event of the allocation, event of the free (-1 for none), distance from the first region's start, bytes of the
    /// chunk, bytes requested.
    #[getter]
    fn blocks<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        pack(py, &self.drawn.blocks, block_row)
    }

    /// The blocks that are live at the peak, largest request first, in rows as those of :attr:`blocks`.
    #[getter]
    fn at_peak<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        pack(py, &self.drawn.at_peak, block_row)
    }

    /// The event after which the most bytes are live; ``None`` without events.
    #[getter]
    fn peak(&self) -> Option<usize> {
        self.drawn.peak
    }

    /// The end of the highest chunk, as a distance from the first region's start.
    #[getter]
    fn top(&self) -> u64 {
        self.drawn.top
    }

    /// Number of blocks that are in the grid, not in :attr:`blocks`.
    #[getter]
    fn shaded(&self) -> u64 {
        self.drawn.shade.blocks()
    }

    /// Rows and columns of the grid: addresses up to :attr:`top`, and the events that are shown.
    #[getter]
    fn grid_shape(&self) -> (usize, usize) {
        (self.drawn.shade.rows(), self.drawn.shade.columns())
    }

    /// Bytes from 0 to 255: the share of each cell that the blocks of the grid cover, row after row.
    #[getter]
    fn grid<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.drawn.shade.cells())
    }

    /// The refused requests that are shown: event and bytes.
    #[getter]
    fn refusals(&self) -> Vec<(usize, u64)> {
        self.drawn.refusals.clone()
    }

    /// Number and bytes of the requests that are shown, by size.
    ///
    /// Entry n is of those of more than 2^(n-1) and up to 2^n bytes.
    #[getter]
    fn sizes(&self) -> Vec<(u64, u64)> {
        self.drawn.sizes.to_vec()
    }
}

fn block_row(block: &BlockSpan) -> [u64; 5] {
    let end = block.end.map_or(u64::MAX, |end| end as u64);
    [block.start as u64, end, block.offset, block.size, block.requested]
}

fn pack<'py, T, const N: usize>(
    py: Python<'py>,
    rows: &[T],
    row: impl Fn(&T) -> [u64; N],
) -> Bound<'py, PyBytes> {
    let packed: Vec<u8> = rows.iter().flat_map(row).flat_map(u64::to_ne_bytes).collect();
    PyBytes::new(py, &packed)
}

/// Play a program into a new pool of made-up addresses and keep what a picture of it shows.
///
/// Args:
///     program: The program.
///     limit: As for :func:`replay`.
///     growth: As for :func:`replay`.
///     trim_on_oom: As for :func:`replay`.
///     gap: As for :func:`replay`.
///     joined: As for :func:`replay`.
///     policy: As for :func:`replay`.
///     elastic: As for :func:`replay`.
///     page_size: As for :func:`replay`.
///     first: The first event that is shown; those before it are replayed as well.
///     last: The first event behind those that are shown; ``None`` (default): all are.
///     points: The most points of the curves.
///     blocks: The most blocks that are kept one by one.
///
/// Raises:
///     ValueError: An option is out of range.
#[pyfunction]
#[pyo3(signature = (program, *, limit, growth = true, trim_on_oom = false, gap = None, joined = None, policy = None,
    elastic = false, page_size = None, first = 0, last = None, points = 16384, blocks = 65536),
    text_signature = "(program, *, limit, growth=True, trim_on_oom=False, gap=0, joined=None, policy='tensorflow', \
    elastic=False, page_size=None, first=0, last=None, points=16384, blocks=65536)")]
#[expect(clippy::too_many_arguments, reason = "one for each option, by name")]
pub(crate) fn picture(
    py: Python<'_>,
    program: &Program,
    limit: &Bound<'_, PyAny>,
    growth: bool,
    trim_on_oom: bool,
    gap: Option<&Bound<'_, PyAny>>,
    joined: Option<bool>,
    policy: Option<&Bound<'_, PyAny>>,
    elastic: bool,
    page_size: Option<&Bound<'_, PyAny>>,
    first: usize,
    last: Option<usize>,
    points: usize,
    blocks: usize,
) -> PyResult<Picture> {
    let limit = size_argument(limit, "limit")?;
    let options = options(limit, growth, trim_on_oom, joined, policy)?;
    let options = with_pages(options, elastic, page_size)?;
    let gap = gap_argument(gap)?;
    if points == 0 {
        return Err(PyValueError::new_err("points must be at least 1, not 0"));
    }
    let (rows, columns) = GRID;
    let detail = Detail { events: first..last.unwrap_or(usize::MAX), points, blocks, columns, rows };
    let drawn = detach(py, || core::picture(program.core(), &options, gap, &detail));
    let drawn = drawn.map_err(|error| replay_error(py, error))?;
    Ok(Picture { drawn, events: program.core().events().len() })
}
