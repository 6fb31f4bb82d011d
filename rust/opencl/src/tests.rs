//! Regions, parts and order, over functions that count references and write down what is called.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use allotment::source::Objects;
use allotment::{Options, Pool};

use crate::{Buffer, OpenClError, QueueOrder};

mod shared_memory;
mod stand_in;

use stand_in::{Program, library, release};

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

#[test]
fn for_queues_of_other_contexts_the_host_waits() {
    let mut program = Program::new(&[false, false]);
    program.add_context(&[false]);
    let order = QueueOrder::default();
    let [first, second, other] = [0, 1, 2].map(|number| order.join(Some(program.queue(number))));
    first.before_free();
    for _ in 0..2 {
        order.before_use(&other).unwrap();
    }
    assert_eq!(program.calls(), ["finish queue 0"]);
    other.before_free();
    order.before_use(&second).unwrap();
    let expected =
        ["finish queue 2", "marker queue 0", "flush queue 0", "barrier queue 1 waits for event of queue 0"];
    assert_eq!(program.calls(), expected);
    // A failure is reported, and the next use waits again.
    other.before_free();
    library().fails = Some(("finish", -5));
    assert!(order.before_use(&second).unwrap_err().is_out_of_memory());
    library().fails = None;
    program.calls();
    order.before_use(&second).unwrap();
    assert_eq!(program.calls(), ["finish queue 2"]);
    drop([first, second, other]);
    drop(order);
    program.check_nothing_is_left();
}
