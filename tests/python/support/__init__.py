"""Helper functions and data for several test files."""
