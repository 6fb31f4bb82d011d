//! The functions of streams and events as methods.

use super::Driver;
use crate::error::CudaError;
use crate::sys::{self, Event, Functions, Stream};

impl Driver {
    /// Creates an event of the current context, without a time.
    pub(crate) fn create_event(&self) -> Result<Event, CudaError> {
        let mut event = Event(std::ptr::null_mut());
        let Functions { create_event, .. } = self.0.functions;
        // SAFETY: the pointer is to a local variable.
        self.call("cuEventCreate", || unsafe { create_event(&raw mut event, sys::WITHOUT_TIMING) })?;
        Ok(event)
    }

    pub(crate) fn destroy_event(&self, event: Event) -> Result<(), CudaError> {
        let Functions { destroy_event, .. } = self.0.functions;
        // SAFETY: the caller owns the event.
        self.call("cuEventDestroy_v2", || unsafe { destroy_event(event) })
    }

    /// Sets an event behind the work that is queued in a stream.
    pub(crate) fn record_event(&self, event: Event, stream: Stream) -> Result<(), CudaError> {
        let Functions { record_event, .. } = self.0.functions;
        // SAFETY: the caller owns the event; the driver checks the stream.
        self.call("cuEventRecord", || unsafe { record_event(event, stream) })
    }

    /// Returns whether the work before an event is done.
    pub(crate) fn is_event_done(&self, event: Event) -> Result<bool, CudaError> {
        let Functions { query_event, .. } = self.0.functions;
        // SAFETY: the caller owns the event.
        match self.call("cuEventQuery", || unsafe { query_event(event) }) {
            Err(CudaError::Call { code: sys::NOT_READY, .. }) => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Lets the work that is queued in a stream from now on wait for an event; the host does not wait.
    pub(crate) fn wait_event(&self, stream: Stream, event: Event) -> Result<(), CudaError> {
        let Functions { wait_event, .. } = self.0.functions;
        // SAFETY: the caller owns the event; the driver checks the stream.
        self.call("cuStreamWaitEvent", || unsafe { wait_event(stream, event, 0) })
    }

    /// Returns the number of a stream, which no other stream of the process has or had; `None` if the driver is too old.
    pub(crate) fn stream_id(&self, stream: Stream) -> Result<Option<u64>, CudaError> {
        let Some(identity) = self.0.stream_identity else { return Ok(None) };
        let mut id = 0;
        // SAFETY: the pointer is to a local variable; the driver checks the stream.
        self.call("cuStreamGetId", || unsafe { (identity.stream_id)(stream, &raw mut id) })?;
        Ok(Some(id))
    }
}
