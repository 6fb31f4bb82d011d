//! Streams that share a pool's memory: work on memory that another stream has freed comes behind that stream's work.

use allotment_cuda::StreamOrder;

mod support;
use support::{Outstanding, StandIn, UNKNOWN};

const LEGACY: u64 = 0;
const PER_THREAD: u64 = 2;

/// A device with streams, whose driver knows what comes behind what.
struct Machine {
    stand_in: StandIn,
    order: StreamOrder,
}

/// Work that was queued in the stream of a number.
#[derive(Debug, Clone, Copy)]
struct Work {
    stream: u64,
    number: u64,
}

impl Machine {
    fn new() -> Self {
        let stand_in = StandIn::new(1);
        let order = StreamOrder::new(&stand_in.driver(), 0).expect("device 0 is there");
        stand_in.enter_context(0);
        Self { stand_in, order }
    }

    fn create_stream(&self) -> u64 {
        let create: unsafe extern "C" fn(*mut u64, u32) -> u32 = self.stand_in.function("cuStreamCreate");
        let mut stream = 0;
        // SAFETY: the pointer is to a local variable.
        assert_eq!(unsafe { create(&raw mut stream, 1) }, 0);
        stream
    }

    fn destroy_stream(&self, stream: u64) {
        let destroy: unsafe extern "C" fn(u64) -> u32 = self.stand_in.function("cuStreamDestroy_v2");
        // SAFETY: a number only.
        assert_eq!(unsafe { destroy(stream) }, 0);
    }

    fn synchronize(&self) {
        let synchronize: unsafe extern "C" fn() -> u32 = self.stand_in.function("cuCtxSynchronize");
        // SAFETY: no arguments.
        assert_eq!(unsafe { synchronize() }, 0);
    }

    fn work(&self, stream: u64) -> Work {
        let queue: unsafe extern "C" fn(u64) -> u64 = self.stand_in.function("standInQueueWork");
        let number: unsafe extern "C" fn(u64) -> u64 = self.stand_in.function("standInStreamNumber");
        // SAFETY: numbers only.
        unsafe { Work { number: queue(stream), stream: number(stream) } }
    }

    fn is_behind(&self, stream: u64, work: Work) -> bool {
        let is_behind: unsafe extern "C" fn(u64, u64, u64) -> bool =
            self.stand_in.function("standInIsBehind");
        // SAFETY: numbers only.
        unsafe { is_behind(stream, work.stream, work.number) }
    }

    /// Ends the order, and looks at what is left.
    fn end(self) -> Outstanding {
        let Self { stand_in, order } = self;
        drop(order);
        stand_in.outstanding()
    }
}

/// The context that the test itself has entered.
const LEFT: Outstanding =
    Outstanding { allocations: 0, ranges: 0, handles: 0, mappings: 0, contexts: 1, bytes: 0, events: 0 };

#[test]
fn the_default_stream_alone_makes_no_call_of_the_driver() {
    let machine = Machine::new();
    let before = machine.stand_in.calls();
    for _ in 0..10 {
        machine.order.before_free(Some(LEGACY));
        machine.order.before_use(Some(LEGACY)).unwrap();
    }
    assert_eq!(machine.stand_in.calls(), before);
    assert_eq!(machine.end(), LEFT);
}

#[test]
fn a_stream_waits_for_those_that_freed_memory_and_once() {
    let machine = Machine::new();
    let (a, b) = (machine.create_stream(), machine.create_stream());
    for (freeing, using) in [(LEGACY, a), (a, b), (b, LEGACY), (b, PER_THREAD), (PER_THREAD, a)] {
        let before = machine.work(freeing);
        assert!(!machine.is_behind(using, before));
        machine.order.before_free(Some(freeing));
        let after = machine.work(freeing);
        machine.order.before_use(Some(using)).unwrap();
        assert!(machine.is_behind(using, before), "{freeing} {using}");
        // The default stream, which cannot go, is recorded when another one waits.
        assert_eq!(machine.is_behind(using, after), freeing == LEGACY, "{freeing} {using}");
        let calls = machine.stand_in.calls();
        machine.order.before_use(Some(using)).unwrap();
        let made = machine.stand_in.calls() - calls;
        assert!(made <= 3, "the number of the stream, in its context: {made}");
    }
    assert_eq!(machine.end(), LEFT);
}

#[test]
fn another_stream_with_the_handle_of_a_destroyed_one_is_another_stream() {
    let machine = Machine::new();
    let first = machine.create_stream();
    machine.order.before_use(Some(first)).unwrap();
    let work = machine.work(first);
    machine.order.before_free(Some(first));
    machine.destroy_stream(first);
    let second = machine.create_stream();
    assert_eq!(first, second, "the driver uses handles again");
    machine.order.before_use(Some(second)).unwrap();
    assert!(machine.is_behind(second, work));
    assert_eq!(machine.end(), LEFT);
}

#[test]
fn a_stream_that_is_gone_when_its_memory_is_freed_makes_the_next_use_wait_for_the_device() {
    let machine = Machine::new();
    let (gone, other) = (machine.create_stream(), machine.create_stream());
    let work = machine.work(gone);
    machine.destroy_stream(gone);
    machine.order.before_free(Some(gone));
    machine.order.before_use(Some(other)).unwrap();
    assert!(machine.is_behind(other, work));
    assert_eq!(machine.end(), LEFT);
}

#[test]
fn memory_without_a_stream_waits_for_the_device() {
    let machine = Machine::new();
    let (a, b) = (machine.create_stream(), machine.create_stream());
    let work = machine.work(a);
    machine.order.before_free(None);
    machine.order.before_use(Some(b)).unwrap();
    assert!(machine.is_behind(b, work));
    let calls = machine.stand_in.calls();
    machine.order.before_use(None).unwrap();
    assert_eq!(machine.stand_in.calls(), calls, "nothing was freed since");
    let work = machine.work(a);
    machine.order.before_free(Some(a));
    machine.order.before_use(None).unwrap();
    assert!(machine.is_behind(b, work));
    assert_eq!(machine.end(), LEFT);
}

#[test]
fn a_stream_that_does_not_exist_is_an_error() {
    let machine = Machine::new();
    machine.order.before_use(Some(0xDEAD)).unwrap();
    machine.order.before_free(Some(LEGACY));
    let error = machine.order.before_use(Some(0xDEAD)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cuStreamGetId failed: CUDA_ERROR_INVALID_HANDLE (400), invalid resource handle"
    );
    assert_eq!(machine.end(), LEFT);
}

#[test]
fn events_of_streams_whose_work_is_done_are_dropped() {
    let machine = Machine::new();
    for _ in 0..200 {
        let stream = machine.create_stream();
        machine.work(stream);
        machine.order.before_free(Some(stream));
        machine.destroy_stream(stream);
        machine.synchronize();
    }
    assert!(machine.stand_in.outstanding().events <= 33);
    assert_eq!(machine.end(), LEFT);
}

/// Streams free, get and use memory in any order; a call of the driver fails now and then.
#[test]
fn random_programs_are_ordered_whatever_call_fails() {
    let mut random = fastrand(7);
    let mut failures = 0;
    for _ in 0..40 {
        let machine = Machine::new();
        let mut streams = [LEGACY, PER_THREAD, machine.create_stream(), machine.create_stream()];
        let mut freed: Vec<Work> = Vec::new();
        for _ in 0..400 {
            let at = random(streams.len() as u64);
            let stream = streams[at];
            if random(6) == 0 {
                machine.stand_in.fail_at(1 + random(6) as u64, UNKNOWN);
            }
            match random(9) {
                0..3 => {
                    let work = machine.work(stream);
                    machine.order.before_free(Some(stream));
                    freed.push(work);
                }
                3..8 => match machine.order.before_use(Some(stream)) {
                    Ok(()) => {
                        for work in &freed {
                            assert!(machine.is_behind(stream, *work), "{stream} {work:?}");
                        }
                    }
                    Err(_) => failures += 1,
                },
                _ if at > 1 => {
                    machine.stand_in.fail_at(0, UNKNOWN);
                    machine.destroy_stream(stream);
                    streams[at] = machine.create_stream();
                }
                _ => {}
            }
        }
        machine.stand_in.fail_at(0, UNKNOWN);
        assert_eq!(machine.end(), LEFT);
    }
    assert!(failures > 100, "{failures}");
}

/// Numbers below a bound, from a seed.
fn fastrand(seed: u64) -> impl FnMut(u64) -> usize {
    let mut state = seed;
    move |bound| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((state >> 33) % bound).expect("a small number")
    }
}
