//! Virtual memory management: addresses, physical memory, and mappings between them.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use crate::device::{find, write};
use crate::host::{HostSpan, allow_access, copy, drop_content};
use crate::state::{Physical, Range, State, call_initialized};
use crate::status::{INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY, Status};

/// `CUmemLocation`.
#[repr(C)]
struct Location {
    kind: c_uint,
    id: c_int,
}

/// `CUmemAllocationProp`.
#[repr(C)]
struct Properties {
    kind: c_uint,
    handle_types: c_uint,
    location: Location,
    win32: *mut c_void,
    flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[repr(C)]
struct Access {
    location: Location,
    flags: c_uint,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetAllocationGranularity(
    bytes: *mut usize,
    properties: *const Properties,
    _option: c_uint,
) -> Status {
    call_initialized(c"cuMemGetAllocationGranularity", |state| {
        // SAFETY: the caller's pointer, as in the driver.
        let device = unsafe { device_of(state, properties) }?;
        // SAFETY: as above.
        unsafe { write(bytes, address(granularity(state, device)?)?) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAddressReserve(
    start: *mut u64,
    bytes: usize,
    alignment: usize,
    _hint: u64,
    flags: c_ulonglong,
) -> Status {
    call_initialized(c"cuMemAddressReserve", |state| {
        let unit = granularity(state, 0)?;
        let is_aligned = alignment == 0 || alignment.is_power_of_two();
        if bytes == 0 || !(bytes as u64).is_multiple_of(unit) || !is_aligned || flags != 0 {
            return Err(INVALID_VALUE);
        }
        let unit = unit.max(alignment as u64);
        let span =
            bytes.checked_add(address(unit)?).and_then(HostSpan::without_access).ok_or(OUT_OF_MEMORY)?;
        let first = span.start().next_multiple_of(unit);
        state.ranges.insert(first, Range { bytes: bytes as u64, _span: span });
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(start, first) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAddressFree(start: u64, bytes: usize) -> Status {
    call_initialized(c"cuMemAddressFree", |state| {
        let bytes = bytes as u64;
        let is_known = state.ranges.get(&start).is_some_and(|range| range.bytes == bytes);
        if !is_known || state.mappings.range(start..start + bytes).next().is_some() {
            return Err(INVALID_VALUE);
        }
        state.ranges.remove(&start);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemCreate(
    handle: *mut u64,
    bytes: usize,
    properties: *const Properties,
    flags: c_ulonglong,
) -> Status {
    call_initialized(c"cuMemCreate", |state| {
        // SAFETY: the caller's pointer, as in the driver.
        let device = unsafe { device_of(state, properties) }?;
        let bytes = bytes as u64;
        if bytes == 0 || !bytes.is_multiple_of(granularity(state, device)?) || flags != 0 {
            return Err(INVALID_VALUE);
        }
        let number = state.next_handle;
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(handle, number) }?;
        state.charge(device, bytes)?;
        state.next_handle += 1;
        let memory = Physical { bytes, device, is_held: true, mappings: 0, accessible: Vec::new() };
        state.handles.insert(number, memory);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemRelease(handle: u64) -> Status {
    call_initialized(c"cuMemRelease", |state| {
        let memory = state.handles.get_mut(&handle).filter(|memory| memory.is_held).ok_or(INVALID_VALUE)?;
        memory.is_held = false;
        state.settle(handle);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemMap(start: u64, bytes: usize, offset: usize, handle: u64, flags: c_ulonglong) -> Status {
    call_initialized(c"cuMemMap", |state| {
        let bytes = bytes as u64;
        let memory = state.handles.get(&handle).filter(|memory| memory.is_held).ok_or(INVALID_VALUE)?;
        let range = state.ranges.range(..=start).next_back();
        let is_reserved = range.is_some_and(|(first, range)| start + bytes <= first + range.bytes);
        let before = state.mappings.range(..start + bytes).next_back();
        let is_free = before.is_none_or(|(first, (length, _))| first + length <= start);
        let is_aligned = start.is_multiple_of(granularity(state, memory.device)?);
        if !is_reserved || !is_free || !is_aligned || bytes != memory.bytes || offset != 0 || flags != 0 {
            return Err(INVALID_VALUE);
        }
        state.mappings.insert(start, (bytes, handle));
        state.handles.entry(handle).and_modify(|memory| memory.mappings += 1);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemUnmap(start: u64, bytes: usize) -> Status {
    call_initialized(c"cuMemUnmap", |state| {
        let mapped = whole_mappings(state, start, bytes as u64)?;
        for &(first, handle) in &mapped {
            // Another mapping with access gets the content.
            if let Some(memory) = state.handles.get_mut(&handle)
                && memory.accessible.pop_if(|last| *last == first).is_some()
                && let Some(&other) = memory.accessible.last()
            {
                move_content(first, other, memory.bytes)?;
            }
        }
        // SAFETY: the span lies within a reserved range.
        if !unsafe { drop_content(address(start)?, bytes) } {
            return Err(OUT_OF_MEMORY);
        }
        for (first, handle) in mapped {
            state.mappings.remove(&first);
            state.handles.entry(handle).and_modify(|memory| {
                memory.mappings -= 1;
                memory.accessible.retain(|&mapping| mapping != first);
            });
            state.settle(handle);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemSetAccess(start: u64, bytes: usize, access: *const Access, count: usize) -> Status {
    call_initialized(c"cuMemSetAccess", |state| {
        let mapped = whole_mappings(state, start, bytes as u64)?;
        // SAFETY: the caller's pointer, as in the driver.
        let access = unsafe { access.as_ref() }.filter(|_| count == 1).ok_or(INVALID_VALUE)?;
        let device = find(state, access.location.id).map_err(|_| INVALID_VALUE)?;
        let is_own = mapped.iter().all(|(_, handle)| state.handles[handle].device == device);
        // SAFETY: the span lies within a reserved range.
        let is_allowed = access.location.kind == 1
            && access.flags == 3
            && is_own
            && unsafe { allow_access(address(start)?, bytes) };
        if !is_allowed {
            return Err(INVALID_VALUE);
        }
        for (first, handle) in mapped {
            let Some(memory) = state.handles.get_mut(&handle) else { continue };
            if !memory.accessible.contains(&first) {
                if let Some(&other) = memory.accessible.last() {
                    move_content(other, first, memory.bytes)?;
                }
                memory.accessible.push(first);
            }
        }
        Ok(())
    })
}

/// Moves the content of a mapping to another one of the same memory, as addresses of this process cannot share it.
/// NVIDIA's driver gives access by both.
fn move_content(from: u64, to: u64, bytes: u64) -> Result<(), Status> {
    let (from, to, bytes) = (address(from)?, address(to)?, address(bytes)?);
    // SAFETY: both are mappings of this driver, which is what the caller vouches for.
    let is_moved = unsafe {
        allow_access(to, bytes) && {
            copy(from, to, bytes);
            drop_content(from, bytes)
        }
    };
    is_moved.then_some(()).ok_or(OUT_OF_MEMORY)
}

/// Returns starts and handles of the mappings that cover a span exactly.
fn whole_mappings(state: &State, start: u64, bytes: u64) -> Result<Vec<(u64, u64)>, Status> {
    let mut covered = start;
    let mut found = Vec::new();
    while covered < start + bytes {
        let (length, handle) = state.mappings.get(&covered).ok_or(INVALID_VALUE)?;
        found.push((covered, *handle));
        covered += length;
    }
    if covered == start + bytes && bytes > 0 { Ok(found) } else { Err(INVALID_VALUE) }
}

/// Returns the device that properties name.
///
/// # Safety
/// The pointer is null or may be read.
unsafe fn device_of(state: &State, properties: *const Properties) -> Result<usize, Status> {
    // SAFETY: the caller vouches for the pointer.
    let properties = unsafe { properties.as_ref() }.ok_or(INVALID_VALUE)?;
    let is_usual = properties.kind == 1
        && properties.handle_types == 0
        && properties.location.kind == 1
        && properties.win32.is_null()
        && properties.flags == [0; 8];
    if is_usual { find(state, properties.location.id) } else { Err(INVALID_VALUE) }
}

fn granularity(state: &State, device: usize) -> Result<u64, Status> {
    let settings = &state.devices[device].settings;
    if settings.has_virtual_memory { Ok(settings.granularity) } else { Err(NOT_SUPPORTED) }
}

/// Returns a number of the driver as one of this process.
fn address(start: u64) -> Result<usize, Status> {
    usize::try_from(start).map_err(|_| INVALID_VALUE)
}
