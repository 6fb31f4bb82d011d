"""Arguments of operations: whole numbers, single floats, shapes and axes."""
