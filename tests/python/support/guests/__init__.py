"""Guests, the libraries that take memory from pools: their stand-ins, what tests compile for them, a player of all."""
