//! Tests per-process values. Its own test program, because it marks the whole process as a forked child.
#![cfg(not(loom))]

use std::sync::Mutex;
use std::thread;

use allotment_sync::{PerProcess, entered_child};

static VALUE: PerProcess<Mutex<u32>> = PerProcess::new(Mutex::new(1), || Mutex::new(2));

#[test]
fn a_forked_child_has_its_own_value_while_a_parent_thread_holds_the_lock() {
    let parents = VALUE.get().lock().unwrap();
    assert_eq!(*parents, 1);
    entered_child();
    thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| *VALUE.get().lock().unwrap() += 10);
        }
    });
    let childs = VALUE.get().lock().unwrap();
    assert_eq!(*childs, 82, "one for all threads of the child");
    entered_child();
    assert_eq!(*VALUE.get().lock().unwrap(), 2, "a child of the child starts over");
    drop((parents, childs));
}
