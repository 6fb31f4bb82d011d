//! Memory of a GPU as Vulkan gives it: memory types, objects with offsets, alignments, and large images that get an
//! object of their own. The device is simulated; a program with a real one makes `VkDeviceMemory` in `create`.
//!
//! ```text
//! cargo run -p allotment --example vulkan
//! ```

#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allotment::source::{ObjectSource, ObjectTable, Objects, ReserveError};
use allotment::{Block, Options, Pool, Request};

/// A memory type: its heap's size, and whether the host can map it.
#[derive(Debug, Clone, Copy)]
struct MemoryType {
    heap_bytes: u64,
    host_visible: bool,
}

/// What a buffer or an image needs, as `vkGetImageMemoryRequirements` says it.
#[derive(Debug, Clone, Copy)]
struct Requirements {
    size: u64,
    alignment: u64,
    /// Bit `i` is set if memory type `i` will do.
    type_bits: u32,
    /// Whether the driver prefers an object for this resource alone.
    prefers_dedicated: bool,
}

/// A handle as `VkDeviceMemory` is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DeviceMemory(u64);

/// The simulated driver: numbers its objects, and knows how much of a heap is taken.
struct Driver {
    memory_type: MemoryType,
    taken: Arc<AtomicU64>,
    made: u64,
    sizes: Vec<(DeviceMemory, u64)>,
}

impl ObjectSource for Driver {
    type Object = DeviceMemory;

    fn create(&mut self, bytes: u64) -> Result<DeviceMemory, ReserveError> {
        if self.taken.load(Ordering::Relaxed) + bytes > self.memory_type.heap_bytes {
            return Err(ReserveError::Declined);
        }
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        self.made += 1;
        self.sizes.push((DeviceMemory(self.made), bytes));
        Ok(DeviceMemory(self.made))
    }

    fn destroy(&mut self, object: DeviceMemory) {
        let place =
            self.sizes.iter().position(|&(made, _)| made == object).expect("an object of this driver");
        self.taken.fetch_sub(self.sizes.swap_remove(place).1, Ordering::Relaxed);
    }
}

/// One memory type with its pools: one that shares objects, and one whose objects hold one resource each.
struct Heap {
    memory_type: MemoryType,
    shared: (Arc<Pool>, ObjectTable<DeviceMemory>),
    taken: Arc<AtomicU64>,
}

/// Memory of a resource: what `vkBindImageMemory` takes.
struct Memory {
    object: DeviceMemory,
    /// Frees the memory when it is dropped. A dedicated object's pool goes with it.
    block: Block<Arc<Pool>, u32>,
}

struct Gpu {
    heaps: Vec<Heap>,
}

fn pool(
    memory_type: MemoryType,
    taken: &Arc<AtomicU64>,
    options: Options,
) -> Result<(Arc<Pool>, ObjectTable<DeviceMemory>), Box<dyn Error>> {
    let driver = Driver { memory_type, taken: Arc::clone(taken), made: 0, sizes: Vec::new() };
    let (source, objects) = Objects::new(driver);
    Ok((Arc::new(Pool::new(source, options)?), objects))
}

impl Gpu {
    fn new(types: &[MemoryType]) -> Result<Self, Box<dyn Error>> {
        let heap = |&memory_type: &MemoryType| {
            let taken = Arc::default();
            let shared = pool(memory_type, &taken, Options::new(memory_type.heap_bytes))?;
            Ok(Heap { memory_type, shared, taken })
        };
        Ok(Self { heaps: types.iter().map(heap).collect::<Result<_, Box<dyn Error>>>()? })
    }

    /// Allocates memory of the first type that will do and has room.
    fn allocate(&self, needs: Requirements, host_visible: bool) -> Result<Memory, Box<dyn Error>> {
        let mut last = None;
        for (index, heap) in (0_u32..).zip(&self.heaps) {
            if needs.type_bits & 1 << index == 0 || heap.memory_type.host_visible != host_visible {
                continue;
            }
            let request = Request::new(needs.size).align(needs.alignment);
            let (pool, objects) = if needs.prefers_dedicated {
                // One region of exactly this size, which goes back with its only block.
                let options = Options::new(needs.size.next_multiple_of(256)).growth(false);
                pool(heap.memory_type, &heap.taken, options)?
            } else {
                heap.shared.clone()
            };
            let request = if needs.prefers_dedicated { Request::new(needs.size) } else { request };
            match pool.owned_block(request) {
                Ok(block) => {
                    let object = objects.get(block.region()).expect("the object of a live block");
                    return Ok(Memory { object, block: block.with_data(index) });
                }
                Err(refused) => last = Some(refused),
            }
        }
        Err(last.map_or("no memory type will do".into(), Into::into))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let types = [
        MemoryType { heap_bytes: 256 << 20, host_visible: false },
        MemoryType { heap_bytes: 64 << 20, host_visible: true },
    ];
    let gpu = Gpu::new(&types)?;
    let needs = |size, alignment| Requirements { size, alignment, type_bits: 0b11, prefers_dedicated: false };

    let vertices = gpu.allocate(needs(100_000, 256), false)?;
    let texture = gpu.allocate(needs(1 << 20, 1 << 16), false)?;
    assert_eq!(vertices.object, texture.object, "two resources share an object");
    assert_eq!((vertices.block.offset(), texture.block.offset() % (1 << 16)), (0, 0));

    let staging = gpu.allocate(needs(1 << 20, 256), true)?;
    assert_eq!(*staging.block.data(), 1, "the other memory type");

    let target = Requirements { prefers_dedicated: true, ..needs(100 << 20, 1 << 20) };
    let target = gpu.allocate(target, false)?;
    assert_eq!(target.block.offset(), 0, "a dedicated object starts with its resource");
    let taken = gpu.heaps[0].taken.load(Ordering::Relaxed);
    drop(target);
    assert_eq!(gpu.heaps[0].taken.load(Ordering::Relaxed), taken - (100 << 20), "and goes with it");

    let refused = gpu.allocate(needs(300 << 20, 256), false).err().expect("more than the heap");
    println!("{refused}");
    drop((vertices, texture, staging));
    for heap in &gpu.heaps {
        heap.shared.0.trim()?;
        assert_eq!(heap.taken.load(Ordering::Relaxed), 0, "every object was destroyed");
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().expect("the simulated device has that much");
}
