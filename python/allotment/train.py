"""Optimizers as TensorFlow 1 has them: ``tf.train`` of its programs, and ``tf.compat.v1.train``."""

from allotment.training.adaptive import AdagradOptimizer, AdamOptimizer, RMSPropOptimizer
from allotment.training.descent import GradientDescentOptimizer, MomentumOptimizer
from allotment.training.global_step import create_global_step, get_global_step, get_or_create_global_step
from allotment.training.optimizer import Optimizer

__all__ = [
    "AdagradOptimizer",
    "AdamOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "RMSPropOptimizer",
    "create_global_step",
    "get_global_step",
    "get_or_create_global_step",
]
