//! Order of the commands of queues around memory that one of them frees and another one gets.
//!
//! A program drops a buffer when it has added the commands that use it to a queue; the device may not have run them.
//! Commands that are added to the same queue later run behind them by themselves, if the queue runs in order. Before
//! another queue gets memory, it waits for those that have freed some since it last waited; for queues of another
//! context, of which a pool of host memory may have several, the host waits. The order is one for all memory of a pool:
//! it knows which queue freed something, and not what.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::OpenClError;
use crate::handles::Queue;

/// One queue that uses a pool's memory, or all queues that the program does not name.
#[derive(Debug)]
pub struct QueueUse {
    /// `None`: the commands that use the memory are in a queue that is not known.
    queue: Option<Queue>,
    /// Number of frees so far.
    frees: AtomicU64,
}

/// The order of the queues that share a pool's memory.
#[derive(Default)]
pub struct QueueOrder {
    state: Mutex<State>,
    /// Whether there is anything to order: more than one queue, or one that orders nothing itself.
    is_needed: AtomicBool,
}

#[derive(Default)]
struct State {
    uses: Vec<Arc<QueueUse>>,
    /// By the positions of a queue that waited and of one that freed: the number of the last free that was waited for.
    waited: HashMap<(usize, usize), u64>,
}

/// A queue that another one has to wait for.
struct Freeing {
    position: usize,
    queue: Option<Queue>,
    /// The number of its last free.
    frees: u64,
}

impl QueueUse {
    /// Returns the queue; `None` if it is not known.
    #[must_use]
    pub fn queue(&self) -> Option<&Queue> {
        self.queue.as_ref()
    }

    /// Notes that commands in the queue may still use memory that is freed after this call.
    #[inline]
    pub fn before_free(&self) {
        self.frees.fetch_add(1, Ordering::Release);
    }

    fn is_of(&self, queue: Option<&Queue>) -> bool {
        self.queue.as_ref().map(Queue::handle) == queue.map(Queue::handle)
    }

    fn runs_in_order(&self) -> bool {
        self.queue.as_ref().is_some_and(Queue::runs_in_order)
    }
}

impl QueueOrder {
    /// Returns the use of the memory by a queue; the same one each time. Queues stay retained as long as the order lives.
    #[must_use]
    pub fn join(&self, queue: Option<Queue>) -> Arc<QueueUse> {
        let mut state = self.lock();
        if let Some(known) = state.uses.iter().find(|known| known.is_of(queue.as_ref())) {
            return Arc::clone(known);
        }
        let joined = Arc::new(QueueUse { queue, frees: AtomicU64::new(0) });
        state.uses.push(Arc::clone(&joined));
        // Before the queue can use memory.
        if state.uses.len() > 1 || !joined.runs_in_order() {
            self.is_needed.store(true, Ordering::Release);
        }
        joined
    }

    /// Returns whether [`QueueOrder::before_use`] may do anything: one queue that runs in order needs none.
    #[must_use]
    #[inline]
    pub fn is_needed(&self) -> bool {
        self.is_needed.load(Ordering::Acquire)
    }

    /// Lets commands that are added to a queue from now on wait for those of all queues that have freed memory. The host
    /// waits for those of other contexts, and for all if the queue is not known.
    ///
    /// # Errors
    /// If OpenCL fails; memory that was just allocated must not be used then.
    #[inline]
    pub fn before_use(&self, by: &Arc<QueueUse>) -> Result<(), OpenClError> {
        if self.is_needed() { self.wait(by) } else { Ok(()) }
    }

    #[cold]
    fn wait(&self, by: &Arc<QueueUse>) -> Result<(), OpenClError> {
        let Some((own, freeing)) = self.freeing(by) else { return Ok(()) };
        // The lock is not held: the host may wait here. A thread that comes meanwhile waits, too.
        let context = by.queue.as_ref().map(Queue::context);
        // Nothing is known of the commands of a queue that was not named: the program waits for those itself.
        let queues = freeing.iter().filter_map(|freeing| freeing.queue.as_ref());
        // Events exist in one context.
        let (near, far): (Vec<&Queue>, Vec<&Queue>) =
            queues.partition(|queue| context.is_some_and(|context| queue.context() == context));
        far.iter().try_for_each(|queue| queue.finish())?;
        if let Some(queue) = &by.queue
            && !near.is_empty()
        {
            queue.wait_for(&near)?;
        }
        let mut state = self.lock();
        for Freeing { position, frees, .. } in freeing {
            let waited = state.waited.entry((own, position)).or_default();
            *waited = frees.max(*waited);
        }
        Ok(())
    }

    /// Returns the position of a queue and those that it has to wait for; `None`: there are none.
    fn freeing(&self, by: &Arc<QueueUse>) -> Option<(usize, Vec<Freeing>)> {
        let state = self.lock();
        let own = state.uses.iter().position(|known| Arc::ptr_eq(known, by))?;
        let mut freeing = Vec::new();
        for (position, other) in state.uses.iter().enumerate() {
            let frees = other.frees.load(Ordering::Acquire);
            let waited = state.waited.get(&(own, position)).copied().unwrap_or(0);
            let orders_itself = position == own && by.runs_in_order();
            if frees > waited && !orders_itself {
                freeing.push(Freeing { position, queue: other.queue.clone(), frees });
            }
        }
        (!freeing.is_empty()).then_some((own, freeing))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for QueueOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueOrder").field("queues", &self.lock().uses.len()).finish()
    }
}
