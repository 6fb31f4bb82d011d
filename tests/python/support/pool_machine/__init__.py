"""The parts of a machine that plays random programs over a pool: each adds rules of one kind."""
