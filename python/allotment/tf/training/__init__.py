"""Optimizers as TensorFlow 1 has them: they change variables by gradients, eagerly and in graphs."""
