"""Element-wise arithmetic and functions of numbers."""
