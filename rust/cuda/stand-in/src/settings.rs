//! Devices and their properties, from the environment or from a test.

use std::env;

use crate::status::{INVALID_VALUE, Status};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) devices: u64,
    /// Bytes of each device.
    pub(crate) memory: u64,
    pub(crate) granularity: u64,
    pub(crate) has_virtual_memory: bool,
    /// Ten times the compute capability.
    pub(crate) capability: u64,
    pub(crate) name: String,
    /// `CUDA_VISIBLE_DEVICES`.
    pub(crate) mask: Option<String>,
}

impl Settings {
    pub(crate) fn from_environment() -> Result<Self, Status> {
        Ok(Self {
            devices: number("ALLOTMENT_STAND_IN_DEVICES", 1)?,
            memory: number("ALLOTMENT_STAND_IN_MEMORY", 1 << 30)?,
            granularity: number("ALLOTMENT_STAND_IN_GRANULARITY", 2 << 20)?,
            has_virtual_memory: number("ALLOTMENT_STAND_IN_VIRTUAL_MEMORY", 1)? != 0,
            capability: number("ALLOTMENT_STAND_IN_CAPABILITY", 90)?,
            name: env::var("ALLOTMENT_STAND_IN_NAME").unwrap_or_else(|_| "Stand-in GPU".to_owned()),
            mask: env::var("CUDA_VISIBLE_DEVICES").ok(),
        })
    }

    /// Returns the hardware indices of the devices that `CUDA_VISIBLE_DEVICES` leaves, by the driver's rules about
    /// indices: the list ends at the first item that names no device; a device that is named twice leaves none.
    pub(crate) fn visible(&self) -> Vec<u64> {
        let Some(mask) = &self.mask else { return (0..self.devices).collect() };
        let named =
            mask.split(',').map_while(|item| item.trim().parse().ok().filter(|&at| at < self.devices));
        let visible: Vec<u64> = named.collect();
        let is_repeated = visible.iter().enumerate().any(|(at, device)| visible[..at].contains(device));
        if is_repeated { Vec::new() } else { visible }
    }
}

fn number(name: &str, default: u64) -> Result<u64, Status> {
    env::var(name).map_or(Ok(default), |text| text.trim().parse().map_err(|_| INVALID_VALUE))
}
