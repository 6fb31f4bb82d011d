//! Structures of `dlpack.h`, version 1.1, that every exchange of tensors has.

use std::ffi::c_void;

/// `DLDevice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Device {
    pub(crate) kind: i32,
    pub(crate) index: i32,
}

/// `kDLCPU`, `kDLCUDA`.
pub(crate) const CPU: i32 = 1;
pub(crate) const CUDA: i32 = 2;

/// `DLDataType`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct DataType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

/// `kDLUInt` of 8 bits.
pub(crate) const BYTE: DataType = DataType { code: 1, bits: 8, lanes: 1 };

/// `DLTensor`.
#[repr(C)]
pub(crate) struct Tensor {
    pub(crate) data: *mut c_void,
    pub(crate) device: Device,
    pub(crate) ndim: i32,
    pub(crate) dtype: DataType,
    pub(crate) shape: *mut i64,
    pub(crate) strides: *mut i64,
    pub(crate) byte_offset: u64,
}
