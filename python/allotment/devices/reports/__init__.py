"""Reports on all devices of the process, as values and as text."""
