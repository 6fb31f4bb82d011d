//! Storage of a tensor library: typed memory of a pool that tensors share, counted, limited, and freed with the last.
//!
//! ```text
//! cargo run -p allotment --example tensor_storage
//! ```

#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;

use allotment::{AllocError, Block, Options, Pool, Request};
use allotment_host::HostMemory;

/// Elements in memory of a pool, with their number as the block's data.
struct Storage<T> {
    block: Block<Arc<Pool>, usize>,
    elements: PhantomData<T>,
}

/// Types of which all bits are a value, zero among them.
trait Element: Copy {}
impl Element for f32 {}
impl Element for u64 {}

impl<T: Element> Storage<T> {
    /// Takes memory for `length` elements, all zero.
    fn zeros(pool: &Arc<Pool>, length: usize, name: &str) -> Result<Self, AllocError> {
        let bytes = (length * size_of::<T>()) as u64;
        let block = pool.owned_block(Request::new(bytes.max(1)).tag(name))?.with_data(length);
        let mut storage = Self { block, elements: PhantomData };
        // SAFETY: the block has these bytes, and nothing else refers to them yet.
        unsafe { storage.start().cast::<u8>().write_bytes(0, length * size_of::<T>()) };
        Ok(storage)
    }

    fn start(&mut self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(usize::try_from(self.block.address()).expect("host memory"))
    }

    fn as_slice(&self) -> &[T] {
        let start = usize::try_from(self.block.address()).expect("host memory");
        // SAFETY: the block is that many elements of host memory, aligned to 256 bytes and written by `zeros`; it lives
        // as long as the slice.
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(start), *self.block.data()) }
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        let (start, length) = (self.start(), *self.block.data());
        // SAFETY: as above, and the storage is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(start, length) }
    }
}

/// A tensor: a shape over storage that others may share.
#[derive(Clone)]
struct Tensor {
    storage: Arc<Storage<f32>>,
    shape: [usize; 2],
}

impl Tensor {
    fn from_fn(
        pool: &Arc<Pool>,
        shape: [usize; 2],
        value: impl Fn(usize, usize) -> f32,
    ) -> Result<Self, AllocError> {
        let mut storage = Storage::zeros(pool, shape[0] * shape[1], "tensor")?;
        for (place, element) in storage.as_mut_slice().iter_mut().enumerate() {
            *element = value(place / shape[1], place % shape[1]);
        }
        Ok(Self { storage: Arc::new(storage), shape })
    }

    /// Another shape of the same memory.
    fn reshaped(&self, shape: [usize; 2]) -> Self {
        assert_eq!(shape[0] * shape[1], self.shape[0] * self.shape[1], "as many elements");
        Self { shape, ..self.clone() }
    }

    fn sum(&self) -> f32 {
        self.storage.as_slice().iter().sum()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let pool = Arc::new(Pool::new(HostMemory::new(), Options::new(8 << 20))?);
    let matrix = Tensor::from_fn(&pool, [100, 200], |row, column| if row == column { 1.0 } else { 0.0 })?;
    let flat = matrix.reshaped([1, 20_000]);
    assert_eq!((matrix.sum(), flat.sum()), (100.0, 100.0));
    assert_eq!(pool.stats()?.requested, 80_000, "two tensors, one memory");

    // What is too large says what would help, instead of ending the process.
    let refused = Tensor::from_fn(&pool, [2000, 2000], |_, _| 0.0).err().ok_or("16 MB of 8 MiB")?;
    println!("{refused}");
    drop(matrix);
    assert_eq!(pool.stats()?.num_live, 1);
    drop(flat);
    assert_eq!(pool.stats()?.num_live, 0);
    Ok(())
}

#[test]
fn it_runs() {
    main().expect("it fits");
}
