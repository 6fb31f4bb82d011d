//! Tests that a thread inherits the locks of one that has ended. Alone in its process: a thread of another test could be
//! the heir.
#![cfg(not(loom))]

use std::thread;

use allotment_sync::Mutex;

#[test]
fn a_thread_inherits_the_locks_of_one_that_has_ended() {
    let mutex = Mutex::new(0);
    let is_owner = || mutex.try_with_as_owner(|number| Some(*number)).is_some();
    // More threads than any table of owners could hold, each in the life of one request.
    let owners = (0..100).filter(|_| {
        thread::scope(|scope| {
            scope
                .spawn(|| {
                    *mutex.lock().unwrap() += 1;
                    is_owner()
                })
                .join()
                .unwrap()
        })
    });
    assert_eq!(owners.count(), 100);
}
