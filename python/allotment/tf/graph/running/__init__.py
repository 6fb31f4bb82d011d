"""Runs parts of graphs: places nodes, orders them, makes programs of them, and executes those."""
