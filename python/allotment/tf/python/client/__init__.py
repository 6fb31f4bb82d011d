"""Modules of ``tensorflow.python.client`` that programs import: ``device_lib``."""
