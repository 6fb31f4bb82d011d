//! Static plans: where each buffer of a known program lies in one arena.

use std::time::Duration;

use allotment::GRANULE;
use allotment::plan::{Buffer, Effort, Plan, plan};

use crate::pool::store;
use crate::status::{Failure, Status, null, run};

/// A buffer of a plan: its size, when it lives, and where it lies. The buffers of a plan are in the order of their
/// requests.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PlanBuffer {
    /// Size in bytes, at least 1.
    pub bytes: u64,
    /// When it starts to live, in any unit of time; never smaller than that of the buffer before.
    pub start: u64,
    /// The first time at which it no longer lives, after `start`.
    pub end: u64,
    /// Its offset in the arena in bytes, a multiple of the plan's alignment.
    pub offset: u64,
}

/// Returns the buffers of a plan in the core's form.
fn core_buffers(buffers: &[PlanBuffer]) -> Vec<Buffer> {
    buffers.iter().map(|&PlanBuffer { bytes, start, end, .. }| Buffer { bytes, start, end }).collect()
}

/// Returns the alignment of a plan: 0 means 256.
fn alignment_or_default(alignment: u64) -> u64 {
    if alignment == 0 { GRANULE } else { alignment }
}

/// Checks the pointer and the length of an array that must not be empty.
fn check_array(
    buffers: *const PlanBuffer,
    length: usize,
    name: &str,
    length_name: &str,
) -> Result<(), Failure> {
    if buffers.is_null() {
        return Err(null(name));
    }
    if length == 0 || length > isize::MAX.unsigned_abs() / size_of::<PlanBuffer>() {
        return Err(Failure::invalid(format!(
            "{length_name} {length} is not the number of buffers in {name}"
        )));
    }
    if !buffers.is_aligned() {
        return Err(Failure::invalid(format!("{name} is not aligned as an array of allotment_plan_buffer")));
    }
    Ok(())
}

/// Returns the plan of a pool's options; `None` without one.
///
/// # Safety
/// `buffers` is null or points to `length` buffers.
pub(crate) unsafe fn plan_option(
    buffers: *const PlanBuffer,
    length: usize,
    alignment: u64,
) -> Result<Option<Plan>, Failure> {
    if buffers.is_null() && length == 0 {
        return if alignment == 0 {
            Ok(None)
        } else {
            Err(Failure::invalid(format!("plan_alignment is {alignment}, but plan is null")))
        };
    }
    check_array(buffers, length, "plan", "plan_length")?;
    // SAFETY: guaranteed by the caller; the pointer and the length were checked.
    let buffers = unsafe { std::slice::from_raw_parts(buffers, length) };
    let offsets = buffers.iter().map(|buffer| buffer.offset).collect();
    let plan = Plan::new(core_buffers(buffers), offsets, alignment_or_default(alignment));
    plan.map(Some).map_err(|error| Failure::invalid(format!("plan: {error}")))
}

/// Searches for the smallest arena that holds `length` buffers, those that live at the same time apart, and stores the
/// `offset` of each; on failure all offsets are as they were. `alignment` 0 means 256, the smallest one of plans that
/// pools follow.
///
/// The search ends when no arena is smaller, after `seconds`, or after `steps` steps, each about the placing of one
/// buffer; 0 steps are no bound. It makes a first plan in any case. With enough time the same steps find the same plan
/// on every machine. Stores the bytes of the arena, and the most bytes that live at once: no arena is smaller.
///
/// # Safety
/// `buffers` points to `length` buffers that can be written; `arena` and `lower_bound` are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_plan_search(
    buffers: *mut PlanBuffer,
    length: usize,
    alignment: u64,
    seconds: f64,
    steps: u64,
    arena: *mut u64,
    lower_bound: *mut u64,
) -> Status {
    run(|| {
        check_array(buffers, length, "buffers", "length")?;
        if seconds.is_nan() || seconds < 0.0 {
            return Err(Failure::invalid(format!("seconds {seconds} is not 0 or more")));
        }
        // SAFETY: guaranteed by the caller; the pointer and the length were checked.
        let buffers = unsafe { std::slice::from_raw_parts_mut(buffers, length) };
        // A time beyond the range of `Duration` means no bound.
        let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let effort = Effort::default().time(time).steps(Some(steps).filter(|&steps| steps > 0));
        let found = plan(core_buffers(buffers), alignment_or_default(alignment), &effort, |_| true)
            .map_err(|error| Failure::invalid(error.to_string()))?;
        for (buffer, &offset) in buffers.iter_mut().zip(found.offsets()) {
            buffer.offset = offset;
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            store(arena, found.arena());
            store(lower_bound, found.lower_bound());
        }
        Ok(())
    })
}
