"""Imports every module of ``allotment.tf``, so that all operations are registered in the operation table."""

import importlib
import pkgutil

import allotment.tf


def import_every_module() -> None:
    """Import all modules under ``allotment.tf``."""
    for module in pkgutil.walk_packages(allotment.tf.__path__, "allotment.tf."):
        importlib.import_module(module.name)
