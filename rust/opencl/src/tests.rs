//! Regions, parts and order, with functions that count references and write down what is called.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allotment::source::Objects;
use allotment::{Options, Pool};

use crate::sys::{Destroyed, Functions, Handle, Part, Status};
use crate::{Buffer, Context, OpenCl, OpenClError, Queue, QueueOrder, Regions};

/// An object of the library: a context, a queue, a buffer or an event.
struct Object {
    references: usize,
    name: String,
    /// The buffer that this one is a part of; a buffer keeps it alive.
    parent: usize,
    bytes: usize,
    out_of_order: bool,
    context: usize,
    destroyed: Option<(Destroyed, usize)>,
}

#[derive(Default)]
struct Library {
    /// By handle minus 1.
    objects: Vec<Object>,
    calls: Vec<String>,
    /// The call that fails, and with what.
    fails: Option<(&'static str, Status)>,
}

static LIBRARY: Mutex<Library> = Mutex::new(Library { objects: Vec::new(), calls: Vec::new(), fails: None });
/// One test at a time has the library.
static ONE: Mutex<()> = Mutex::new(());

fn library() -> MutexGuard<'static, Library> {
    LIBRARY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn handle(number: usize) -> Handle {
    ptr::without_provenance_mut(number)
}

impl Library {
    fn add(&mut self, name: &str) -> usize {
        let name = name.to_owned();
        self.objects.push(Object {
            references: 1,
            name,
            parent: 0,
            bytes: 0,
            out_of_order: false,
            context: 0,
            destroyed: None,
        });
        self.objects.len()
    }

    fn get(&mut self, handle: Handle) -> &mut Object {
        let object = &mut self.objects[handle.addr() - 1];
        assert!(object.references > 0, "{} is used after its end", object.name);
        object
    }

    fn name(&mut self, handle: Handle) -> String {
        self.get(handle).name.clone()
    }

    /// Writes a call down; returns its result.
    fn log(&mut self, call: &'static str, what: &str) -> Status {
        self.calls.push(format!("{call} {what}"));
        match self.fails {
            Some((failing, status)) if failing == call => status,
            _ => 0,
        }
    }

    fn live(&self) -> Vec<&str> {
        self.objects.iter().filter(|object| object.references > 0).map(|object| &*object.name).collect()
    }
}

unsafe extern "C" fn retain(object: Handle) -> Status {
    library().get(object).references += 1;
    0
}

unsafe extern "C" fn release(object: Handle) -> Status {
    let mut library = library();
    let released = library.get(object);
    released.references -= 1;
    if released.references == 0 {
        let (parent, destroyed) = (released.parent, released.destroyed.take());
        drop(library);
        if let Some((destroyed, data)) = destroyed {
            // SAFETY: as the caller of `on_destruction` allows.
            unsafe { destroyed(object, ptr::with_exposed_provenance_mut(data)) };
        }
        if parent != 0 {
            // SAFETY: the reference was this buffer's.
            unsafe { release(handle(parent)) };
        }
    }
    0
}

unsafe extern "C" fn queue_info(
    queue: Handle,
    name: u32,
    length: usize,
    value: *mut c_void,
    _: *mut usize,
) -> Status {
    assert_eq!(length, 8);
    let mut library = library();
    let queue = library.get(queue);
    let answer = if name == 0x1090 { queue.context as u64 } else { u64::from(queue.out_of_order) };
    // SAFETY: the caller passes a value of eight bytes.
    unsafe { value.cast::<u64>().write(answer) };
    0
}

unsafe extern "C" fn create_buffer(
    context: Handle,
    flags: u64,
    bytes: usize,
    host: *mut c_void,
    status: *mut Status,
) -> Handle {
    let mut library = library();
    library.get(context);
    assert_eq!(flags, if host.is_null() { 1 } else { 9 });
    let result = library.log("create", &format!("{bytes}"));
    // SAFETY: the caller passes a local variable.
    unsafe { *status = result };
    if result != 0 {
        return ptr::null_mut();
    }
    let number = library.add("buffer");
    library.objects[number - 1].bytes = bytes;
    handle(number)
}

unsafe extern "C" fn create_part(
    parent: Handle,
    flags: u64,
    kind: u32,
    part: *const Part,
    status: *mut Status,
) -> Handle {
    // SAFETY: the caller passes local variables.
    let (Part { origin, size }, status) = unsafe { (*part, &mut *status) };
    assert_eq!((flags, kind), (1, 0x1220));
    let mut library = library();
    let end = library.get(parent).bytes;
    *status = library.log("part", &format!("{origin}+{size}"));
    if *status != 0 || origin + size > end {
        *status = if *status == 0 { -30 } else { *status };
        return ptr::null_mut();
    }
    library.get(parent).references += 1;
    let number = library.add("part");
    library.objects[number - 1].parent = parent.addr();
    handle(number)
}

unsafe extern "C" fn on_destruction(buffer: Handle, destroyed: Destroyed, data: *mut c_void) -> Status {
    let mut library = library();
    let status = library.log("on_destruction", "");
    if status == 0 {
        library.get(buffer).destroyed = Some((destroyed, data.expose_provenance()));
    }
    status
}

unsafe extern "C" fn write(
    queue: Handle,
    buffer: Handle,
    blocking: u32,
    offset: usize,
    bytes: usize,
    _: *const c_void,
    _: u32,
    _: *const Handle,
    _: *mut Handle,
) -> Status {
    assert_eq!((blocking, offset, bytes), (1, 0, 1));
    let mut library = library();
    let text = format!("{} {}", library.name(queue), library.name(buffer));
    library.log("write", &text)
}

unsafe extern "C" fn marker(queue: Handle, count: u32, _: *const Handle, event: *mut Handle) -> Status {
    assert_eq!(count, 0);
    let mut library = library();
    let name = library.name(queue);
    let status = library.log("marker", &name);
    if status == 0 {
        let number = library.add(&format!("event of {name}"));
        // SAFETY: the caller passes a local variable.
        unsafe { *event = handle(number) };
    }
    status
}

unsafe extern "C" fn barrier(queue: Handle, count: u32, events: *const Handle, _: *mut Handle) -> Status {
    let mut library = library();
    // SAFETY: the caller passes as many events.
    let events = unsafe { std::slice::from_raw_parts(events, count as usize) };
    let events: Vec<String> = events.iter().map(|&event| library.name(event)).collect();
    let text = format!("{} waits for {}", library.name(queue), events.join(", "));
    library.log("barrier", &text)
}

unsafe extern "C" fn flush(queue: Handle) -> Status {
    let mut library = library();
    let name = library.name(queue);
    library.log("flush", &name)
}

unsafe extern "C" fn finish(queue: Handle) -> Status {
    let mut library = library();
    let name = library.name(queue);
    library.log("finish", &name)
}

const FUNCTIONS: Functions = Functions {
    retain_context: retain,
    release_context: release,
    retain_queue: retain,
    release_queue: release,
    queue_info,
    create_buffer,
    create_part,
    release_buffer: release,
    on_destruction,
    write,
    marker,
    barrier,
    release_event: release,
    flush,
    finish,
};

/// A context with queues of it, as a program would have made them.
struct Program {
    opencl: OpenCl,
    context: usize,
    queues: Vec<usize>,
    _one: MutexGuard<'static, ()>,
}

impl Program {
    fn new(out_of_order: &[bool]) -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut library = library();
        *library = Library::default();
        let context = library.add("context");
        let queues = out_of_order.iter().enumerate().map(|(number, &out_of_order)| {
            let queue = library.add(&format!("queue {number}"));
            library.objects[queue - 1].context = context;
            library.objects[queue - 1].out_of_order = out_of_order;
            queue
        });
        let queues = queues.collect();
        Self { opencl: OpenCl::of(FUNCTIONS), context, queues, _one: one }
    }

    fn context(&self) -> Context {
        // SAFETY: the library counts references, and finds those that are not live.
        unsafe { Context::retain(self.opencl, handle(self.context)) }.unwrap()
    }

    fn queue(&self, number: usize) -> Queue {
        // SAFETY: as above.
        unsafe { Queue::retain(self.opencl, handle(self.queues[number])) }.unwrap()
    }

    fn regions(&self) -> Regions {
        Regions::new(self.context(), self.queue(0))
    }

    /// Returns the calls since the last time.
    #[expect(clippy::unused_self, reason = "the program alone has the library")]
    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut library().calls)
    }

    /// Checks that the program alone has references, to what it made.
    fn check_nothing_is_left(&self) {
        let library = library();
        assert_eq!(library.live().len(), 1 + self.queues.len(), "{:?}", library.live());
        assert!(library.objects.iter().all(|object| object.references <= 1));
    }
}

#[test]
fn regions_are_buffers_with_memory_and_allocations_are_parts_of_them() {
    let program = Program::new(&[false]);
    let (source, buffers) = Objects::new(program.regions());
    let pool = Pool::new(source, Options::new(64 << 20)).unwrap();
    let blocks = [pool.block(1000).unwrap(), pool.block(3 << 20).unwrap()];
    assert_eq!(
        program.calls(),
        ["create 2097152", "write queue 0 buffer", "create 4194304", "write queue 0 buffer"]
    );
    let ends = Arc::new(AtomicUsize::new(0));
    for (block, bytes) in blocks.iter().zip([1000, 3 << 20]) {
        let (parent, offset) = buffers.locate(block.address()).unwrap();
        assert_eq!(
            (buffers.get(block.region()).unwrap().handle(), block.offset()),
            (parent.handle(), offset)
        );
        let count = Arc::clone(&ends);
        let end = move || _ = count.fetch_add(1, Ordering::Relaxed);
        let part = parent.sub_buffer(usize::try_from(offset).unwrap(), bytes, end).unwrap();
        drop(part);
    }
    assert_eq!(ends.load(Ordering::Relaxed), 2);
    assert_eq!(program.calls(), ["part 0+1000", "on_destruction ", "part 0+3145728", "on_destruction "]);
    drop(blocks);
    pool.trim().unwrap();
    drop(pool);
    program.check_nothing_is_left();
}

#[test]
fn a_pool_never_joins_regions() {
    let program = Program::new(&[false]);
    let (source, buffers) = Objects::new(program.regions());
    let pool = Pool::new(source.without_zero(), Options::new(64 << 20).joins_regions(true)).unwrap();
    let blocks: Vec<_> = (0..8).map(|_| pool.block(2 << 20).unwrap()).collect();
    assert_eq!(pool.stats().unwrap().num_regions, 4);
    assert!(blocks.iter().all(|block| block.address() > 0));
    for block in &blocks {
        let (parent, offset) = buffers.locate(block.address()).unwrap();
        let offset = usize::try_from(offset).unwrap();
        // The library refuses a part that ends outside.
        drop(parent.sub_buffer(offset, 2 << 20, || {}).unwrap());
    }
}

#[test]
fn without_memory_the_source_declines_and_other_failures_reach_the_caller() {
    let program = Program::new(&[false]);
    for (call, status, text) in [
        ("create", -61, "out of memory"),
        ("write", -4, "out of memory"),
        ("write", -5, "out of memory"),
        ("create", -34, "clCreateBuffer failed: CL_INVALID_CONTEXT (-34)"),
        ("write", -36, "clEnqueueWriteBuffer failed: CL_INVALID_COMMAND_QUEUE (-36)"),
    ] {
        let (source, _) = Objects::new(program.regions());
        let pool = Pool::new(source, Options::new(64 << 20)).unwrap();
        library().fails = Some((call, status));
        let error = pool.allocate(1000).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        library().fails = None;
        pool.free(pool.allocate(1000).unwrap().address).unwrap();
    }
    program.check_nothing_is_left();
}

#[test]
fn a_part_that_is_refused_leaves_nothing_and_calls_nothing() {
    let program = Program::new(&[false]);
    let buffer = Arc::new(Buffer::new(&program.context(), 4096).unwrap());
    let kept = Arc::new(());
    for (call, expected) in [
        ("part", "clCreateSubBuffer failed: CL_MISALIGNED_SUB_BUFFER_OFFSET (-13)"),
        ("on_destruction", "clSetMemObjectDestructorCallback failed: CL_MISALIGNED_SUB_BUFFER_OFFSET (-13)"),
    ] {
        library().fails = Some((call, -13));
        let token = Arc::clone(&kept);
        let refused = buffer.sub_buffer(8, 100, move || panic!("{token:?}")).unwrap_err();
        assert_eq!(refused.to_string(), expected);
        assert_eq!(Arc::strong_count(&kept), 1);
    }
    library().fails = None;
    let refused = buffer.sub_buffer(4000, 97, || ()).unwrap_err();
    assert_eq!(refused, OpenClError::Call { call: "clCreateSubBuffer", code: -30, name: "CL_INVALID_VALUE" });
    // A panic does not unwind into OpenCL.
    drop(buffer.sub_buffer(0, 1, || panic!("on purpose")).unwrap());
    drop(buffer);
    program.check_nothing_is_left();
}

#[test]
fn a_handle_that_is_given_away_is_not_released_here() {
    let program = Program::new(&[]);
    let mut memory = [0_u8; 64];
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let end = move || _ = count.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the memory outlives the buffer.
    let buffer = unsafe { program.context().host_buffer(memory.as_mut_ptr().cast(), 64, end) }.unwrap();
    let given = buffer.into_handle();
    assert_eq!(ended.load(Ordering::Relaxed), 0);
    // SAFETY: the reference is this test's.
    unsafe { release(given) };
    assert_eq!(ended.load(Ordering::Relaxed), 1);
    program.check_nothing_is_left();
}

#[test]
fn one_queue_that_runs_in_order_needs_no_order() {
    let program = Program::new(&[false]);
    let order = QueueOrder::default();
    let only = order.join(Some(program.queue(0)));
    assert!(Arc::ptr_eq(&only, &order.join(Some(program.queue(0)))));
    for _ in 0..3 {
        only.before_free();
        order.before_use(&only).unwrap();
    }
    assert_eq!(program.calls(), [""; 0]);
}

#[test]
fn a_queue_waits_once_for_each_queue_that_freed() {
    let program = Program::new(&[false, false, false]);
    let order = QueueOrder::default();
    let uses = [0, 1, 2].map(|number| order.join(Some(program.queue(number))));
    order.before_use(&uses[0]).unwrap();
    assert_eq!(program.calls(), [""; 0]);
    uses[0].before_free();
    order.before_use(&uses[0]).unwrap();
    assert_eq!(program.calls(), [""; 0]);
    uses[1].before_free();
    for _ in 0..2 {
        order.before_use(&uses[2]).unwrap();
    }
    let expected = [
        "marker queue 0",
        "flush queue 0",
        "marker queue 1",
        "flush queue 1",
        "barrier queue 2 waits for event of queue 0, event of queue 1",
    ];
    assert_eq!(program.calls(), expected);
    uses[1].before_free();
    order.before_use(&uses[0]).unwrap();
    let expected = ["marker queue 1", "flush queue 1", "barrier queue 0 waits for event of queue 1"];
    assert_eq!(program.calls(), expected);
    // A failure is reported, and the next use waits again.
    for call in ["marker", "flush", "barrier"] {
        uses[0].before_free();
        library().fails = Some((call, -5));
        assert!(order.before_use(&uses[1]).unwrap_err().is_out_of_memory());
        library().fails = None;
        program.calls();
        order.before_use(&uses[1]).unwrap();
        assert_eq!(program.calls().last().unwrap(), "barrier queue 1 waits for event of queue 0");
    }
    drop(uses);
    drop(order);
    program.check_nothing_is_left();
}

#[test]
fn a_queue_without_an_order_of_its_own_waits_for_itself() {
    let program = Program::new(&[true]);
    let order = QueueOrder::default();
    let only = order.join(Some(program.queue(0)));
    order.before_use(&only).unwrap();
    only.before_free();
    order.before_use(&only).unwrap();
    let expected = ["marker queue 0", "flush queue 0", "barrier queue 0 waits for event of queue 0"];
    assert_eq!(program.calls(), expected);
}

#[test]
fn for_a_queue_that_is_not_known_the_host_waits() {
    let program = Program::new(&[false]);
    let order = QueueOrder::default();
    let (unknown, known) = (order.join(None), order.join(Some(program.queue(0))));
    known.before_free();
    for _ in 0..2 {
        order.before_use(&unknown).unwrap();
    }
    assert_eq!(program.calls(), ["finish queue 0"]);
    // The program has waited for what it does not name.
    unknown.before_free();
    order.before_use(&known).unwrap();
    order.before_use(&unknown).unwrap();
    assert_eq!(program.calls(), [""; 0]);
}
