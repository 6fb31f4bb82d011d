#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]

mod blocks;
mod content;
mod entry;
mod exports;
mod journal;
mod new_file;
mod own_allocator;
mod ranges;
mod real;
mod report;
mod resizing;
mod settings;
mod source;
mod statistics;

pub use exports::*;
use settings::Settings;

#[global_allocator]
static ALLOCATOR: own_allocator::RealAllocator = own_allocator::RealAllocator;

/// Runs when the library is loaded, before the program's `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = {
    extern "C" fn begin() {
        let Some(settings) = Settings::read() else { return };
        statistics::report_loaded(&settings);
        entry::register_fork_handlers();
        real::keep_small_blocks(settings.threshold, settings.keep);
        if let Err(error) = blocks::begin(settings) {
            report::print(&error.to_string());
        }
    }
    begin
};
