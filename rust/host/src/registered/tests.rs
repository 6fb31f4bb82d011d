use std::fs;
use std::os::fd::AsFd;

use allotment::{Options, Pool};
use rustix::mm::{MapFlags, ProtFlags};

use super::*;
use crate::{clear, end_of_region};

const BYTES: u64 = 16 << 20;

/// A private mapping of a file of ones: its pages have content before they are written.
struct OfFile(Grant);

impl OfFile {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("allotment-{}-{name}", std::process::id()));
        let length = usize::try_from(BYTES).unwrap();
        fs::write(&path, vec![1; length]).unwrap();
        let file = fs::File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses the address; the file has the length.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), length, access, MapFlags::PRIVATE, file.as_fd(), 0)
        };
        Self(Grant { address: start.unwrap().expose_provenance() as u64, bytes: BYTES })
    }
}

impl RegionSource for OfFile {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        assert_eq!((bytes, alignment), (BYTES, 256));
        Ok(self.0)
    }

    fn release(&mut self, region: Grant) {
        assert_eq!(region, self.0);
        let start = std::ptr::with_exposed_provenance_mut(usize::try_from(region.address).unwrap());
        // SAFETY: the mapping is this source's, and no test uses it any more.
        unsafe { rustix::mm::munmap(start, usize::try_from(region.bytes).unwrap()) }.unwrap();
    }
}

// SAFETY: the grant is a private mapping that lives until `release`.
unsafe impl HostAccessible for OfFile {}

#[test]
fn pages_of_other_allocators_are_zeroed_whether_they_were_written_or_not() {
    let mut source = Registered::new(OfFile::new("zeroed"));
    let grant = source.reserve(BYTES, 256).unwrap();
    let (address, bytes) = (usize::try_from(grant.address).unwrap(), usize::try_from(grant.bytes).unwrap());
    let start: *mut u8 = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: the test holds the grant.
    let content = unsafe {
        clear(start, bytes);
        std::slice::from_raw_parts(start, bytes)
    };
    assert!(content.iter().all(|&byte| byte == 0));
    source.release(grant);
}

#[test]
fn regions_are_found_while_they_live_and_can_be_guarded() {
    let source = OfFile::new("guarded");
    let start = source.0.address;
    assert_eq!(end_of_region(start), None);
    let options = Options::new(BYTES).growth(false).guard(true);
    let pool = Pool::new(Registered::new(source), options).unwrap();
    let address = pool.allocate(1000).unwrap().address;
    assert_eq!(end_of_region(address), Some(start + BYTES));
    let behind: *mut u8 = std::ptr::with_exposed_provenance_mut(usize::try_from(address + 1000).unwrap());
    // SAFETY: the byte is in the region, behind the allocation: this is the damage that a guard finds.
    unsafe { behind.write(7) };
    assert!(pool.free(address).unwrap_err().to_string().contains("damage"));
    drop(pool);
    assert_eq!(end_of_region(start), None);
}
