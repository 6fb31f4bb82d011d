"""Tensors, samples, replicas and reference implementations for tests of ``allotment.tf``."""
