"""Internals of layers, models and training; the public names are one folder up."""
