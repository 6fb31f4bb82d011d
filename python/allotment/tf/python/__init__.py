"""Modules that programs import by TensorFlow's own paths: ``tensorflow.python``."""
