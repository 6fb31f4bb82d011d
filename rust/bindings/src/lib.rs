//! The compiled module `allotment._core`: converts arguments, results and errors between Python and the core.

#![deny(unsafe_code)]
#![allow(
    clippy::doc_markdown,
    reason = "doc comments of classes and methods are docstrings of Python, in reStructuredText"
)]

use pyo3::prelude::*;

mod allocation;
mod bench;
mod cuda;
mod error;
mod guard;
mod guests;
mod held;
mod interpreter;
mod numbers;
mod numpy;
mod plain_pickle;
mod plan;
mod pool;
mod recording;
mod replay;
mod report;
mod size;
mod source;
mod tag;

/// Pools, allocations, and replays of recorded programs.
#[pymodule(gil_used = false)]
mod _core {
    use pyo3::exceptions::PyRuntimeWarning;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::allocation::Allocation;
    #[pymodule_export]
    use crate::bench::{time_functions, time_pool};
    #[pymodule_export]
    use crate::cuda::{cuda_devices, cuda_memory_info, cuda_stream_priorities};
    #[pymodule_export]
    use crate::error::admission::machine_memory;
    #[pymodule_export]
    use crate::error::message_text::{one_line, show_text, show_value};
    #[pymodule_export]
    use crate::guests::GuestMemory;
    #[pymodule_export]
    use crate::guests::opencl::{OpenClAllocator, OpenClSharedMemory, OpenClSource};
    #[pymodule_export]
    use crate::guests::torch::TorchAllocator;
    #[pymodule_export]
    use crate::interpreter::garbage::collect_garbage;
    #[pymodule_export]
    use crate::numpy::ArrayMemory;
    #[pymodule_export]
    use crate::plain_pickle::read_plain_pickle;
    #[pymodule_export]
    use crate::plain_pickle::rows::PickledRows;
    #[pymodule_export]
    use crate::plain_pickle::stacks::PickledStacks;
    #[pymodule_export]
    use crate::plan::{Plan, plan};
    #[pymodule_export]
    use crate::pool::Pool;
    #[pymodule_export]
    use crate::pool::registry::all_stats;
    #[pymodule_export]
    use crate::pool::scope::Scope;
    #[pymodule_export]
    use crate::recording::EventLog;
    #[pymodule_export]
    use crate::replay::caching::{CachingReplay, replay_caching};
    #[pymodule_export]
    use crate::replay::picture::{Picture, picture};
    #[pymodule_export]
    use crate::replay::result::ReplayResult;
    #[pymodule_export]
    use crate::replay::{Limits, Program, Replay, find_limits, replay};
    #[pymodule_export]
    use crate::report::advice::Advice;
    #[pymodule_export]
    use crate::report::explanation::{Explanation, OwnerGroup, SizeGroup, Splitter};
    #[pymodule_export]
    use crate::report::snapshot::{Chunk, KeptRegion, Region, Snapshot};
    #[pymodule_export]
    use crate::report::stats::PoolStats;
    #[pymodule_export]
    use crate::size::{format_size, parse_size};
    #[pymodule_export]
    use crate::source::HostMemory;
    #[pymodule_export]
    use crate::tag::set_tag_of_thread;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        crate::interpreter::claim(py)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("OutOfMemoryError", py.get_type::<crate::error::OutOfMemoryError>())?;
        module.add("InvalidFreeError", py.get_type::<crate::error::InvalidFreeError>())?;
        module.add("MemoryDamageError", py.get_type::<crate::error::MemoryDamageError>())?;
        crate::interpreter::fork::watch();
        crate::guard::watch_exit(module)?;
        if cfg!(debug_assertions) {
            let text = c"allotment._core is a debug build: nothing measured with it means anything";
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), text, 1)?;
        }
        Ok(())
    }
}
