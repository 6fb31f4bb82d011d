use std::fs;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use allotment::{AllocError, GrantFault, Options, Pool};
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

/// A source that grants one span, whatever it is asked for, and counts releases.
struct Constant {
    grant: Grant,
    released: Arc<AtomicU64>,
}

impl RegionSource for Constant {
    fn reserve(&mut self, _bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        Ok(self.grant)
    }

    fn release(&mut self, region: Grant) {
        assert_eq!(region, self.grant);
        self.released.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: no pool accepts these grants but one, and the tests hold the memory of that one.
unsafe impl HostAccessible for Constant {}

#[test]
fn a_grant_that_cannot_be_a_region_is_an_error_and_goes_back() {
    for (address, bytes, fault) in [
        (1 << 12, u64::MAX - 255, GrantFault::OutOfRange),
        (u64::MAX - 255, 512, GrantFault::OutOfRange),
        (0, BYTES, GrantFault::OutOfRange),
        (100, BYTES, GrantFault::Misaligned),
        (1 << 12, BYTES + 1, GrantFault::Misaligned),
    ] {
        let grant = Grant { address, bytes };
        let released = Arc::default();
        let source = Constant { grant, released: Arc::clone(&released) };
        let pool = Pool::new(Registered::new(source), Options::new(BYTES).growth(false).guard(true)).unwrap();
        for turn in 1..3 {
            let error = pool.allocate(1000).unwrap_err();
            let is_expected = matches!(&error, AllocError::BadGrant { fault: found, .. } if *found == fault);
            assert!(is_expected, "{error}");
            assert_eq!((released.load(Ordering::Relaxed), end_of_region(1 << 13)), (turn, None));
        }
    }
}

#[test]
fn an_empty_grant_goes_back() {
    let released = Arc::default();
    let source = Constant { grant: Grant { address: 1 << 12, bytes: 0 }, released: Arc::clone(&released) };
    let pool = Pool::new(Registered::new(source), Options::new(BYTES).growth(false).guard(true)).unwrap();
    pool.allocate(1000).unwrap_err();
    assert!(released.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_grant_that_overlaps_a_live_one_is_an_error_and_changes_nothing() {
    let mut words = vec![0_u64; 1 << 14];
    let address = (words.as_mut_ptr().expose_provenance() as u64).next_multiple_of(256);
    let grant = Grant { address, bytes: 1 << 16 };
    let released = Arc::default();
    let source = Constant { grant, released: Arc::clone(&released) };
    let pool = Pool::new(Registered::new(source), Options::new(1 << 20).guard(true)).unwrap();
    let first = pool.allocate(40_000).unwrap();
    let error = pool.allocate(40_000).unwrap_err();
    assert!(matches!(&error, AllocError::BadGrant { fault: GrantFault::Overlap, .. }), "{error}");
    assert_eq!(end_of_region(address), Some(grant.end()));
    pool.free(first.address).unwrap();
    drop(pool);
    assert_eq!((released.load(Ordering::Relaxed), end_of_region(address)), (1, None));
}
