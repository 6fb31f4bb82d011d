"""Layers of TensorFlow 1 by concept: trained layers, normalization, and layers without variables."""
