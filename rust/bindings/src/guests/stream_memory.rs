//! A pool's memory for libraries that queue work in streams: the pool, and the order of the streams that share it.

use std::sync::{Arc, Weak};

use allotment::bindings::PoolForBindings as _;
use allotment::{AllocError, AllocationAttempt, FreeError, Pool};
use allotment_cuda::{CudaError, StreamOrder};
use pyo3::prelude::*;

use crate::error::IntoPyErr;

/// Why a stream got no memory.
pub(crate) enum StreamAllocError {
    Pool(AllocError),
    /// The stream could not be made to wait for the others.
    Driver(CudaError),
}

impl IntoPyErr for StreamAllocError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Pool(error) => error.into_py_err(py),
            Self::Driver(error) => error.into_py_err(py),
        }
    }
}

/// A pool, with the order of its streams if it is over memory of a CUDA device. Its allocations are held: a free by
/// address that knows no stream fails.
#[derive(Clone)]
pub(crate) struct StreamMemory {
    pub(crate) pool: Arc<Pool>,
    pub(crate) streams: Option<Arc<StreamOrder>>,
}

/// The same without keeping the pool alive.
pub(crate) struct WeakStreamMemory {
    pool: Weak<Pool>,
    streams: Option<Weak<StreamOrder>>,
}

impl StreamMemory {
    /// Allocates memory that work in `stream`, or in any stream, may use from now on; calls `retry` before a refusal.
    pub(crate) fn allocate(
        &self,
        bytes: u64,
        stream: Option<u64>,
        retry: impl FnMut(&AllocationAttempt) -> bool,
    ) -> Result<u64, StreamAllocError> {
        let address = self.pool.allocate_held(bytes, retry).map_err(StreamAllocError::Pool)?.address;
        if let Some(streams) = &self.streams
            && let Err(error) = streams.before_use(stream)
        {
            let _ = self.pool.free_held(address);
            return Err(StreamAllocError::Driver(error));
        }
        Ok(address)
    }

    /// Frees memory that work queued in `stream`, or in an unknown one, may still use.
    pub(crate) fn free(&self, address: u64, stream: Option<u64>) -> Result<(), FreeError> {
        // Before the memory is free: the next allocation in it must know of the stream.
        if let Some(streams) = &self.streams {
            streams.before_free(stream);
        }
        self.pool.free_held(address)
    }

    pub(crate) fn downgrade(&self) -> WeakStreamMemory {
        WeakStreamMemory {
            pool: Arc::downgrade(&self.pool),
            streams: self.streams.as_ref().map(Arc::downgrade),
        }
    }
}

impl WeakStreamMemory {
    pub(crate) fn upgrade(&self) -> Option<StreamMemory> {
        let streams = match &self.streams {
            Some(streams) => Some(streams.upgrade()?),
            None => None,
        };
        Some(StreamMemory { pool: self.pool.upgrade()?, streams })
    }

    pub(crate) fn is_of(&self, memory: &StreamMemory) -> bool {
        self.pool.as_ptr() == Arc::as_ptr(&memory.pool)
    }
}
