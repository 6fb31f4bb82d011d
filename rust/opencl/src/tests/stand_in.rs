//! Functions that take the place of a library: they count references and write down what is called.
//!
//! Longer than 300 lines: one function for each of the library's.

use std::alloc::{self, Layout};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys::{Destroyed, Functions, Handle, Part, Status, SvmFunctions};
use crate::{Context, OpenCl, OpenClError, Queue, Regions};

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
pub(super) struct Library {
    /// By handle minus 1.
    objects: Vec<Object>,
    calls: Vec<String>,
    /// The call that fails, and with what.
    pub(super) fails: Option<(&'static str, Status)>,
    /// The capabilities of shared virtual memory of each device.
    pub(super) svm_capabilities: Vec<u64>,
    /// Shared memory: where it starts, and how long it is.
    shared: Vec<(usize, Layout)>,
}

static LIBRARY: Mutex<Library> = Mutex::new(Library {
    objects: Vec::new(),
    calls: Vec::new(),
    fails: None,
    svm_capabilities: Vec::new(),
    shared: Vec::new(),
});
/// One test at a time has the library.
static ONE: Mutex<()> = Mutex::new(());

pub(super) fn library() -> MutexGuard<'static, Library> {
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

pub(super) unsafe extern "C" fn release(object: Handle) -> Status {
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
        library.objects[number - 1].context = library.get(queue).context;
        // SAFETY: the caller passes a local variable.
        unsafe { *event = handle(number) };
    }
    status
}

unsafe extern "C" fn barrier(queue: Handle, count: u32, events: *const Handle, _: *mut Handle) -> Status {
    let mut library = library();
    // SAFETY: the caller passes as many events.
    let events = unsafe { std::slice::from_raw_parts(events, count as usize) };
    let context = library.get(queue).context;
    if events.iter().any(|&event| library.get(event).context != context) {
        return -34;
    }
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

/// `CL_DEVICE_MAX_MEM_ALLOC_SIZE` of the first device; each further one has half of it.
pub(super) const LONGEST: u64 = 8 << 20;

unsafe extern "C" fn context_info(
    context: Handle,
    name: u32,
    length: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> Status {
    assert_eq!(name, 0x1081);
    let mut library = library();
    library.get(context);
    let status = library.log("devices", "");
    let count = library.svm_capabilities.len();
    // SAFETY: the caller passes a local variable, or as many bytes as it was told.
    unsafe {
        if let Some(needed) = needed.as_mut() {
            *needed = 8 * count;
        } else {
            assert_eq!(length, 8 * count);
            for index in 0..count {
                value.cast::<Handle>().add(index).write(handle(index + 1));
            }
        }
    }
    status
}

unsafe extern "C" fn device_info(
    device: Handle,
    name: u32,
    length: usize,
    value: *mut c_void,
    _: *mut usize,
) -> Status {
    assert_eq!(length, 8);
    let mut library = library();
    let index = device.addr() - 1;
    let answer = match name {
        0x1053 => library.svm_capabilities[index],
        0x1010 => LONGEST >> index,
        _ => panic!("{name:#x} is not asked for"),
    };
    // SAFETY: the caller passes a value of eight bytes.
    unsafe { value.cast::<u64>().write(answer) };
    library.log("device_info", "")
}

unsafe extern "C" fn allocate_shared(
    context: Handle,
    flags: u64,
    bytes: usize,
    alignment: u32,
) -> *mut c_void {
    assert_eq!((flags, alignment), (1 | 1 << 10, 0));
    let mut library = library();
    library.get(context);
    if library.log("allocate", &format!("{bytes}")) != 0 {
        return ptr::null_mut();
    }
    // No better aligned than OpenCL must.
    let layout = Layout::from_size_align(bytes + 128, 256).unwrap();
    // SAFETY: the length is not zero.
    let start = unsafe { alloc::alloc(layout) };
    library.shared.push((start.addr() + 128, layout));
    // SAFETY: the allocation is that long.
    unsafe { start.add(128) }.cast()
}

unsafe extern "C" fn free_shared(context: Handle, start: *mut c_void) {
    let mut library = library();
    library.get(context);
    library.log("free", "");
    let found = library.shared.iter().position(|&(address, _)| address == start.addr());
    let (_, layout) = library.shared.swap_remove(found.expect("it is shared memory"));
    // SAFETY: it was allocated with that layout, 128 bytes before.
    unsafe { alloc::dealloc(start.cast::<u8>().sub(128), layout) };
}

const SVM_FUNCTIONS: SvmFunctions = SvmFunctions { allocate: allocate_shared, free: free_shared };

const FUNCTIONS: Functions = Functions {
    context_info,
    device_info,
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

/// Contexts with queues of them, as a program would have made them.
pub(super) struct Program {
    opencl: OpenCl,
    contexts: Vec<usize>,
    queues: Vec<usize>,
    _one: MutexGuard<'static, ()>,
}

impl Program {
    /// Makes a context with a queue for each entry, which says whether it runs out of order.
    pub(super) fn new(out_of_order: &[bool]) -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        *library() = Library::default();
        let mut program = Self {
            opencl: OpenCl::of(FUNCTIONS, Ok(SVM_FUNCTIONS)),
            contexts: Vec::new(),
            queues: Vec::new(),
            _one: one,
        };
        program.add_context(out_of_order);
        program
    }

    /// Makes a context of an OpenCL without shared virtual memory.
    pub(super) fn of_version_1() -> Self {
        let mut program = Self::new(&[]);
        let (path, symbol, version) = ("libOpenCL.so.1".to_owned(), "clSVMAlloc", "2.0");
        program.opencl = OpenCl::of(FUNCTIONS, Err(OpenClError::MissingSymbol { path, symbol, version }));
        program
    }

    /// Adds a context with queues, which count on.
    pub(super) fn add_context(&mut self, out_of_order: &[bool]) {
        let mut library = library();
        let context = library.add("context");
        self.contexts.push(context);
        for &out_of_order in out_of_order {
            let queue = library.add(&format!("queue {}", self.queues.len()));
            library.objects[queue - 1].context = context;
            library.objects[queue - 1].out_of_order = out_of_order;
            self.queues.push(queue);
        }
    }

    /// Returns the first context.
    pub(super) fn context(&self) -> Context {
        // SAFETY: the library counts references, and finds those that are not live.
        unsafe { Context::retain(self.opencl, handle(self.contexts[0])) }.unwrap()
    }

    pub(super) fn queue(&self, number: usize) -> Queue {
        // SAFETY: as above.
        unsafe { Queue::retain(self.opencl, handle(self.queues[number])) }.unwrap()
    }

    pub(super) fn regions(&self) -> Regions {
        Regions::new(self.context(), self.queue(0))
    }

    /// Returns the calls since the last time.
    #[expect(clippy::unused_self, reason = "the program alone has the library")]
    pub(super) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut library().calls)
    }

    /// Checks that the program alone has references, to what it made.
    pub(super) fn check_nothing_is_left(&self) {
        let library = library();
        assert!(library.shared.is_empty());
        assert_eq!(library.live().len(), self.contexts.len() + self.queues.len(), "{:?}", library.live());
        assert!(library.objects.iter().all(|object| object.references <= 1));
    }
}
