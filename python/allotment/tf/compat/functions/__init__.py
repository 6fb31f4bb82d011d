"""Functions of TensorFlow 1 that differ from those of TensorFlow 2, or have other names or parameters."""
