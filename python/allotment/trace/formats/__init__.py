"""Readers of trace files, one module for each kind of file."""
