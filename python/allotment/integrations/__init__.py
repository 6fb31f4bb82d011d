"""Pools plugged into other libraries: one module for each, imported by whoever wants it."""
