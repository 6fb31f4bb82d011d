"""Tensors, their element types, shapes and specifications."""
