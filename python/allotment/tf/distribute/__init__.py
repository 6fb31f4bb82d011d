"""Strategies that run one program on several devices. As ``tf.distribute``."""

from allotment.tf.distribute import experimental
from allotment.tf.distribute.current import (
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from allotment.tf.distribute.extended import StrategyExtended
from allotment.tf.distribute.input.context import InputContext
from allotment.tf.distribute.input.dataset import DistributedDataset, DistributedIterator
from allotment.tf.distribute.mirrored import MirroredStrategy
from allotment.tf.distribute.multi_worker import MultiWorkerMirroredStrategy
from allotment.tf.distribute.one_device import OneDeviceStrategy
from allotment.tf.distribute.reductions.cross_device_ops import CrossDeviceOps
from allotment.tf.distribute.reductions.reduce_op import ReduceOp
from allotment.tf.distribute.reductions.ring import NcclAllReduce
from allotment.tf.distribute.reductions.to_one_device import ReductionToOneDevice
from allotment.tf.distribute.reductions.tree import HierarchicalCopyAllReduce
from allotment.tf.distribute.replica_context import ReplicaContext
from allotment.tf.distribute.strategy import Strategy
from allotment.tf.distribute.values import DistributedValues
from allotment.tf.names.missing_names import refuse_other_names

__all__ = [
    "CrossDeviceOps",
    "DistributedDataset",
    "DistributedIterator",
    "DistributedValues",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "Strategy",
    "StrategyExtended",
    "experimental",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]

refuse_other_names(__name__)
