#![doc = include_str!("../README.md")]
#![allow(non_snake_case, reason = "the names are those of the driver")]

mod context;
mod control;
mod copies;
mod device;
mod host;
mod plain;
mod settings;
mod state;
mod status;
mod streams;
mod virtual_memory;
