"""Modules at TensorFlow's internal paths, such as ``tensorflow.python.client``, which some programs import."""
