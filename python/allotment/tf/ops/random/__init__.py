"""Random numbers: seeds, generators, draws and initializers."""
