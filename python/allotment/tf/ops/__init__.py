"""The operations: the table, what runs them, and a file for each concept."""
