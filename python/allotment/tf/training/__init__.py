"""Optimizers of TensorFlow 1, checkpoints and savers."""
