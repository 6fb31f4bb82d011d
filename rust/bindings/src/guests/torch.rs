//! PyTorch's pluggable allocator: C functions that `torch.cuda.memory.CUDAPluggableAllocator` looks up by name.
//!
//! They neither unwind nor need the interpreter: PyTorch calls them from any thread, with its own locks held. The
//! functions of a pair have no argument of their own, so there are several pairs, each with its pools by device.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use allotment::{AllocError, FreeError};
use allotment_sync::PerProcess;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::guests::stream_memory::{StreamAllocError, StreamMemory, WeakStreamMemory};
use crate::pool::Pool;

/// A device's pool in a pair.
struct Route {
    device: c_int,
    memory: WeakStreamMemory,
    /// Live allocations; the pool is kept alive while there are any.
    live: usize,
    kept: Option<StreamMemory>,
}

/// The pools of a pair of functions; a pair whose pools are all gone can be used again.
#[derive(Default)]
struct Pair {
    routes: Vec<Route>,
}

/// Why PyTorch got no memory, or gave back what it had not got.
enum Failure {
    NoPool { device: c_int },
    Pool { pool: String, error: StreamAllocError },
    BadFree { address: usize },
    Panicked,
}

struct Refusal {
    failure: Failure,
    thread: ThreadId,
}

/// The last refusal of any thread: PyTorch allocates gradients on threads of its own.
static LAST: PerProcess<Mutex<Option<Refusal>>> = PerProcess::new(Mutex::new(None), Mutex::default);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn store(failure: Failure) {
    *locked(LAST.get()) = Some(Refusal { failure, thread: thread::current().id() });
}

/// Forgets a refusal after which PyTorch emptied its cache and was served.
fn forget_refusal_of_this_thread() {
    locked(LAST.get()).take_if(|refusal| refusal.thread == thread::current().id());
}

impl Pair {
    fn is_unused(&self) -> bool {
        self.routes.iter().all(|route| route.memory.upgrade().is_none())
    }

    /// Returns the memory of a device, and counts an allocation there.
    fn enter(&mut self, device: c_int) -> Option<StreamMemory> {
        let route = self.routes.iter_mut().find(|route| route.device == device)?;
        let memory = route.memory.upgrade()?;
        route.live += 1;
        route.kept = Some(memory.clone());
        Some(memory)
    }

    /// Counts an allocation less; the caller drops the result without the lock, as a pool may end with it.
    fn leave(&mut self, memory: &StreamMemory) -> Option<StreamMemory> {
        let route = self.routes.iter_mut().find(|route| route.memory.is_of(memory))?;
        route.live = route.live.saturating_sub(1);
        if route.live == 0 { route.kept.take() } else { None }
    }

    /// Returns the pools with live allocations, that of the device first.
    fn in_use(&self, device: c_int) -> Vec<StreamMemory> {
        let (here, elsewhere): (Vec<_>, Vec<_>) = self
            .routes
            .iter()
            .filter_map(|route| Some((route.device == device, route.kept.clone()?)))
            .partition(|(is_here, _)| *is_here);
        here.into_iter().chain(elsewhere).map(|(_, memory)| memory).collect()
    }
}

fn allocate(pair: &Mutex<Pair>, size: isize, device: c_int, stream: *mut c_void) -> *mut c_void {
    let served = catch_unwind(AssertUnwindSafe(|| {
        let bytes = u64::try_from(size).unwrap_or(0);
        if bytes == 0 {
            return Ok(0);
        }
        let memory = locked(pair).enter(device).ok_or(Failure::NoPool { device })?;
        // PyTorch holds its locks and perhaps the interpreter's: the request does not wait and collects no garbage.
        let taken = memory.allocate(bytes, Some(stream.addr() as u64), |_| false);
        if taken.is_err() {
            let last = locked(pair).leave(&memory);
            drop(last);
        }
        let pool = || memory.pool.options().name.clone();
        taken.map_err(|error| Failure::Pool { pool: pool(), error: with_details(&memory, error) })
    }));
    match served.unwrap_or(Err(Failure::Panicked)) {
        Ok(address) => {
            forget_refusal_of_this_thread();
            // An address of the device, which nothing here follows.
            std::ptr::without_provenance_mut(usize::try_from(address).unwrap_or(0))
        }
        Err(failure) => {
            store(failure);
            std::ptr::null_mut()
        }
    }
}

fn free(pair: &Mutex<Pair>, data: *mut c_void, device: c_int, stream: *mut c_void) {
    let freed = catch_unwind(AssertUnwindSafe(|| {
        let address = data.addr();
        if address == 0 {
            return Ok(());
        }
        let pools = locked(pair).in_use(device);
        // The address decides, whatever device is named: a pool knows its own.
        for memory in &pools {
            match memory.free(address as u64, Some(stream.addr() as u64)) {
                Ok(()) | Err(FreeError::Damaged(_)) => {
                    let last = locked(pair).leave(memory);
                    drop(last);
                    return Ok(());
                }
                // A forked child owns nothing.
                Err(FreeError::Unusable(_)) => return Ok(()),
                Err(_) => {}
            }
        }
        Err(Failure::BadFree { address })
    }));
    if let Err(failure) = freed.unwrap_or(Err(Failure::Panicked)) {
        store(failure);
    }
}

fn with_details(memory: &StreamMemory, mut error: StreamAllocError) -> StreamAllocError {
    if let StreamAllocError::Pool(AllocError::OutOfMemory(refused)) = &mut error {
        // In a forked child the error has no details.
        let _ = memory.pool.add_details(refused);
    }
    error
}

/// Declares the pairs of functions, and the tables of their pools and names.
macro_rules! pairs {
    ($($number:literal $alloc:ident $free:ident)*) => {
        const NAMES: &[(&str, &str)] = &[$((stringify!($alloc), stringify!($free))),*];

        static PAIRS: PerProcess<[Mutex<Pair>; NAMES.len()]> = PerProcess::new(
            [const { Mutex::new(Pair { routes: Vec::new() }) }; NAMES.len()],
            || std::array::from_fn(|_| Mutex::default()),
        );

        $(
            /// As `CUDAPluggableAllocator` calls it: null if the pool refuses.
            #[unsafe(no_mangle)]
            pub(crate) extern "C" fn $alloc(size: isize, device: c_int, stream: *mut c_void) -> *mut c_void {
                allocate(&PAIRS.get()[$number], size, device, stream)
            }

            /// As `CUDAPluggableAllocator` calls it.
            #[unsafe(no_mangle)]
            pub(crate) extern "C" fn $free(data: *mut c_void, _size: isize, device: c_int, stream: *mut c_void) {
                free(&PAIRS.get()[$number], data, device, stream);
            }
        )*
    };
}

pairs! {
    0 allotment_torch_alloc_0 allotment_torch_free_0
    1 allotment_torch_alloc_1 allotment_torch_free_1
    2 allotment_torch_alloc_2 allotment_torch_free_2
    3 allotment_torch_alloc_3 allotment_torch_free_3
    4 allotment_torch_alloc_4 allotment_torch_free_4
    5 allotment_torch_alloc_5 allotment_torch_free_5
    6 allotment_torch_alloc_6 allotment_torch_free_6
    7 allotment_torch_alloc_7 allotment_torch_free_7
    8 allotment_torch_alloc_8 allotment_torch_free_8
    9 allotment_torch_alloc_9 allotment_torch_free_9
    10 allotment_torch_alloc_10 allotment_torch_free_10
    11 allotment_torch_alloc_11 allotment_torch_free_11
    12 allotment_torch_alloc_12 allotment_torch_free_12
    13 allotment_torch_alloc_13 allotment_torch_free_13
    14 allotment_torch_alloc_14 allotment_torch_free_14
    15 allotment_torch_alloc_15 allotment_torch_free_15
}

/// A pair of C functions of this module for ``torch.cuda.memory.CUDAPluggableAllocator``.
///
/// They are ``void *alloc(ssize_t size, int device, cudaStream_t stream)``, which returns null if the pool refuses, and
/// ``void free(void *ptr, ssize_t size, int device, cudaStream_t stream)``. They need no interpreter and never wait for
/// a free. The pools must be kept alive; a pool with live memory of PyTorch's stays.
///
/// Args:
///     pools: The pool of each device, by PyTorch's number of it.
///
/// Raises:
///     ValueError: There is no pool.
///     RuntimeError: All pairs are in use by pools that are alive.
#[pyclass(frozen, module = "allotment._core")]
pub(crate) struct TorchAllocator {
    names: (&'static str, &'static str),
}

#[pymethods]
impl TorchAllocator {
    #[new]
    #[pyo3(signature = (pools))]
    #[expect(clippy::needless_pass_by_value, reason = "a dictionary of Python's becomes a map of its own")]
    fn new(pools: BTreeMap<c_int, Bound<'_, Pool>>) -> PyResult<Self> {
        if pools.is_empty() {
            return Err(PyValueError::new_err("no pool was given: PyTorch needs one for each device"));
        }
        let memories: Vec<_> =
            pools.iter().map(|(&device, pool)| (device, pool.get().stream_memory())).collect();
        for (pair, &names) in PAIRS.get().iter().zip(NAMES) {
            let mut pair = locked(pair);
            if pair.is_unused() {
                let route = |(device, memory): &(c_int, StreamMemory)| Route {
                    device: *device,
                    memory: memory.downgrade(),
                    live: 0,
                    kept: None,
                };
                pair.routes = memories.iter().map(route).collect();
                return Ok(Self { names });
            }
        }
        Err(PyRuntimeError::new_err(format!(
            "PyTorch takes memory from {} sets of pools already, which is the most: drop pools that are not used any \
             more",
            NAMES.len()
        )))
    }

    /// The symbol of the function that allocates.
    #[getter]
    fn alloc_name(&self) -> &'static str {
        self.names.0
    }

    /// The symbol of the function that frees.
    #[getter]
    fn free_name(&self) -> &'static str {
        self.names.1
    }

    /// Return the last refusal of any thread as an exception, and forget it; ``None`` if there is none.
    ///
    /// Its attribute ``pool`` is the name of the pool, if one refused.
    #[staticmethod]
    fn take_refusal(py: Python<'_>) -> Option<PyErr> {
        let refusal = locked(LAST.get()).take();
        refusal.map(|refusal| refusal.failure.into_py_err(py))
    }
}

impl IntoPyErr for Failure {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            Self::NoPool { device } => PyRuntimeError::new_err(format!(
                "PyTorch asked for memory of CUDA device {device}, for which it was given no pool that is alive"
            )),
            Self::Pool { pool, error } => {
                let error = error.into_py_err(py);
                match error.value(py).setattr("pool", pool) {
                    Ok(()) => error,
                    Err(failed) => failed,
                }
            }
            Self::BadFree { address } => crate::error::InvalidFreeError::new_err(format!(
                "PyTorch freed {address:#x}, which no pool of that allocator has given out; nothing has changed"
            )),
            Self::Panicked => {
                PyRuntimeError::new_err("a fault of allotment: a pool panicked in a call of PyTorch's")
            }
        }
    }
}
