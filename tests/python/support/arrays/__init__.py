"""A stand-in for CuPy's arrays, and the calls of kernels that run on it."""
