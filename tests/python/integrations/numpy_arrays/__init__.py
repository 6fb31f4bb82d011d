"""Tests of NumPy's arrays in a pool. A package, because its fixtures are in a file of a name that pytest sets."""
