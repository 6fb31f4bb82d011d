"""``tf.train``: checkpoints, and the optimizers of TensorFlow 1."""

from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.training.adaptive import AdagradOptimizer, AdamOptimizer, RMSPropOptimizer
from allotment.tf.training.checkpoint import Checkpoint
from allotment.tf.training.checkpoint_manager import CheckpointManager
from allotment.tf.training.checkpoint_state import (
    get_checkpoint_state,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from allotment.tf.training.descent import GradientDescentOptimizer, MomentumOptimizer
from allotment.tf.training.device_setter import ClusterSpec
from allotment.tf.training.global_step import create_global_step, get_global_step, get_or_create_global_step
from allotment.tf.training.optimizer import Optimizer

__all__ = [
    "AdagradOptimizer",
    "AdamOptimizer",
    "Checkpoint",
    "CheckpointManager",
    "ClusterSpec",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "RMSPropOptimizer",
    "create_global_step",
    "get_checkpoint_state",
    "get_global_step",
    "get_or_create_global_step",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]

refuse_other_names(__name__)
