"""Sources, models and machines for tests of pools and of NumPy's handler."""
