"""State of variables, and the operations that change it."""
