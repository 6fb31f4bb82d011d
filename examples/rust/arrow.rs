//! Arrow buffers in a pool of host memory: one limit for columns, which their slices and copies share without a copy of
//! the bytes, and which the last of them gives back.
//!
//! ```text
//! cargo run -p allotment-host --example arrow
//! ```

#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use allotment::{AllocError, Block, Options, Pool, Request};
use allotment_host::HostMemory;
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};

/// The alignment that Arrow recommends for buffers, in bytes.
const ALIGNMENT: u64 = 64;

/// Columns of one table, in a pool of their own.
struct Columns {
    // Private, and over host memory: no other code frees what a buffer uses, and addresses are those of this process.
    pool: Arc<Pool>,
}

impl Columns {
    fn new(limit: u64) -> Result<Self, Box<dyn Error>> {
        Ok(Self { pool: Arc::new(Pool::new(HostMemory::new(), Options::new(limit).name("columns"))?) })
    }

    /// Collects values into a buffer of the pool.
    fn collect<T: ArrowNativeType>(
        &self,
        tag: &str,
        values: impl ExactSizeIterator<Item = T>,
    ) -> Result<ScalarBuffer<T>, AllocError> {
        let length = values.len();
        let bytes = length * size_of::<T>();
        let request = Request::new(bytes.max(1) as u64).align(ALIGNMENT).tag(tag);
        let block: Block<Arc<Pool>> = self.pool.owned_block(request)?;
        let address = usize::try_from(block.address()).expect("memory of this process");
        let start: NonNull<T> =
            NonNull::new(std::ptr::with_exposed_provenance_mut(address)).expect("not at 0");
        let mut written = 0;
        for value in values.take(length) {
            // SAFETY: the block has room for `length` values from its start, and nothing else refers to it yet.
            unsafe { start.add(written).write(value) };
            written += 1;
        }
        // SAFETY: so many values are written, and the block keeps the memory until the buffer drops it.
        let buffer = unsafe {
            Buffer::from_custom_allocation(
                start.cast(),
                written * size_of::<T>(),
                Arc::new(AssertUnwindSafe(block)),
            )
        };
        Ok(ScalarBuffer::new(buffer, 0, written))
    }

    fn live(&self) -> u64 {
        self.pool.stats().expect("this process").requested
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let columns = Columns::new(4 << 20)?;
    let prices = columns.collect("prices", (0..100_000_u32).map(|day| f64::from(day % 365)))?;
    let days = columns.collect("days", 0..100_000_i32)?;
    println!("two columns: {} bytes of the pool", columns.live());

    let year = prices.slice(365, 365);
    drop(prices);
    println!(
        "a year of prices keeps all of them: {} bytes, mean {}",
        columns.live(),
        year.iter().sum::<f64>() / 365.0
    );

    match columns.collect("too many", 0..2_000_000_i32) {
        Err(AllocError::OutOfMemory(refused)) => println!("refused: {}", refused.suggestion()),
        other => println!("not refused: {:?}", other.map(|buffer| buffer.len())),
    }
    drop((year, days));
    println!("all dropped: {} bytes", columns.live());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_share_a_block_and_the_last_gives_it_back() {
        let columns = Columns::new(1 << 20).expect("in range");
        let numbers = columns.collect("numbers", 0..1_000_i32).expect("fits");
        assert!(numbers.iter().copied().eq(0..1_000));
        assert_eq!(columns.live(), 4_000);
        let tail = numbers.slice(990, 10);
        let shared = tail.clone().into_inner();
        drop(numbers);
        assert_eq!(
            (columns.live(), tail.as_ref()),
            (4_000, &[990, 991, 992, 993, 994, 995, 996, 997, 998, 999][..])
        );
        drop(tail);
        assert_eq!((columns.live(), shared.len()), (4_000, 40));
        drop(shared);
        assert_eq!(columns.live(), 0);
    }

    #[test]
    fn a_buffer_outlives_its_columns() {
        let columns = Columns::new(1 << 20).expect("in range");
        let numbers = columns.collect("numbers", (0..1_000_u32).map(f64::from)).expect("fits");
        drop(columns);
        assert!(numbers.iter().copied().eq((0..1_000_u32).map(f64::from)));
    }

    #[test]
    fn a_column_above_the_limit_is_refused_and_leaves_nothing() {
        let columns = Columns::new(2048).expect("in range");
        assert!(matches!(columns.collect("all", 0..1_000_i32), Err(AllocError::OutOfMemory(_))));
        assert_eq!(columns.collect("none", 0..0_i32).expect("fits").len(), 0);
        assert_eq!(columns.live(), 0);
    }

    #[test]
    fn the_program_runs() {
        main().expect("no error");
    }
}
