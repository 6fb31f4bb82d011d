//! Memory for libraries that queue work in streams of a device.

use allotment::{FreeError, GRANULE, Unusable};
use pyo3::prelude::*;

use super::Pool;
use crate::allocation::address_argument;
use crate::error::IntoPyErr;
use crate::guests::stream_memory::{StreamAllocError, StreamMemory};
use crate::size::{size_argument, whole_number};
use crate::tag;

#[pymethods]
impl Pool {
    /// The CUDA driver's index of the device whose memory the pool is over; ``None`` for other memory.
    ///
    /// CuPy, PyTorch and the CUDA runtime number devices in the same way.
    #[getter]
    fn cuda_device(&self) -> Option<u32> {
        Some(self.streams.as_ref()?.ordinal())
    }

    /// Allocate at least ``nbytes`` bytes for work in a stream, and return their address.
    ///
    /// Work that is queued in the stream from now on may use the memory: it runs behind the work of all other streams
    /// that freed memory of the pool with ``free_on_stream``. The host does not wait. The memory is freed by
    /// ``free_on_stream`` alone; ``free`` raises ``BufferError``.
    ///
    /// Args:
    ///     nbytes: Bytes, or a text such as ``"3MiB"``. Zero bytes give the address 0.
    ///     stream: The handle of the stream as a number (``cudaStream_t``); 0 is the default stream. ``None``: any
    ///         stream may use the memory; the host waits for the device if memory was freed before. It has no effect
    ///         on a pool that is not over memory of a CUDA device.
    ///
    /// Raises:
    ///     OutOfMemoryError: No free chunk fits, and the limit or the source has no more.
    ///     ValueError: A number is out of range, or the pool is closed.
    ///     RuntimeError: The driver failed. Nothing was allocated.
    #[pyo3(signature = (nbytes, stream))]
    fn malloc_on_stream(
        &self,
        py: Python<'_>,
        nbytes: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let bytes = size_argument(nbytes, "nbytes")?;
        let stream = stream.map(|stream| whole_number(stream, "stream")).transpose()?;
        if bytes == 0 {
            // Fails if the pool is closed.
            return Ok(self.take(py, 0, GRANULE)?.address);
        }
        let memory = self.stream_memory();
        let take = || self.retrying(py, |retry| memory.allocate(bytes, stream, retry));
        tag::with_owner(py, self.core.options().owner_tags, take)?.map_err(|error| match error {
            StreamAllocError::Pool(error) => self.add_details(py, error).into_py_err(py),
            error @ StreamAllocError::Driver(_) => error.into_py_err(py),
        })
    }

    /// Free memory of ``malloc_on_stream``. Work that is queued in the stream may still use it.
    ///
    /// Args:
    ///     address: The result of ``malloc_on_stream``. 0 does nothing.
    ///     stream: The handle of the stream whose work used the memory last. ``None``: it is not known; the host waits
    ///         for the device before the pool gives out memory again.
    ///
    /// Destructors call it: in a forked child, which owns nothing, it does nothing.
    ///
    /// Raises:
    ///     InvalidFreeError: No live allocation of ``malloc_on_stream`` starts there. Nothing has changed.
    #[pyo3(signature = (address, stream))]
    fn free_on_stream(
        &self,
        py: Python<'_>,
        address: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let address = address_argument(address)?;
        let stream = stream.map(|stream| whole_number(stream, "stream")).transpose()?;
        // Attached: a destructor may call it at the end of the process, and nothing waits long.
        match self.stream_memory().free(address, stream) {
            Ok(()) | Err(FreeError::Unusable(Unusable::Forked)) => Ok(()),
            Err(error) => Err(error.into_py_err(py)),
        }
    }
}

impl Pool {
    pub(crate) fn stream_memory(&self) -> StreamMemory {
        StreamMemory { pool: self.core.clone(), streams: self.streams.clone() }
    }
}
