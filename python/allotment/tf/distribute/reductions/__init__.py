"""Reductions between the memories of devices: algorithms, and the devices and arrays they work on."""
