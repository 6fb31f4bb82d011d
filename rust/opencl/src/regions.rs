//! Regions that are buffers.

use std::sync::Arc;

use allotment::source::{ObjectSource, ReserveError};

use crate::buffer::Buffer;
use crate::error::refusal;
use crate::handles::{Context, Queue};

/// Makes a buffer of a context for each region, for [`Objects`](allotment::source::Objects).
#[derive(Debug)]
pub struct Regions {
    context: Context,
    queue: Queue,
}

impl Regions {
    /// Creates a source over the memory of a context. A queue of the context writes a byte into each new buffer: drivers
    /// find its memory at the first use, and a source has to know whether there is any.
    #[must_use]
    pub fn new(context: Context, queue: Queue) -> Self {
        Self { context, queue }
    }
}

impl ObjectSource for Regions {
    type Object = Arc<Buffer>;

    fn create(&mut self, bytes: u64) -> Result<Arc<Buffer>, ReserveError> {
        let bytes = usize::try_from(bytes).map_err(|_| ReserveError::Declined)?;
        let buffer = Buffer::new(&self.context, bytes).map_err(refusal)?;
        self.queue.touch(buffer.handle()).map_err(refusal)?;
        Ok(Arc::new(buffer))
    }

    /// Releases the buffer. Its parts keep it alive, if OpenCL still has any.
    fn destroy(&mut self, buffer: Arc<Buffer>) {
        drop(buffer);
    }
}
