"""Reverse-mode differentiation: tapes, the backward pass, and the gradients of all operations."""
