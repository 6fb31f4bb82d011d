"""One program on several devices. As ``tf.distribute``."""

from allotment.distribute import experimental
from allotment.distribute.cross_device_ops import CrossDeviceOps
from allotment.distribute.extended import StrategyExtended
from allotment.distribute.input import DistributedDataset, DistributedIterator
from allotment.distribute.input_context import InputContext
from allotment.distribute.mirrored import MirroredStrategy
from allotment.distribute.multi_worker import MultiWorkerMirroredStrategy
from allotment.distribute.one_device import OneDeviceStrategy
from allotment.distribute.reduce_op import ReduceOp
from allotment.distribute.reduction_to_one_device import ReductionToOneDevice
from allotment.distribute.replica_context import ReplicaContext
from allotment.distribute.ring import NcclAllReduce
from allotment.distribute.scopes import (
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from allotment.distribute.strategy import Strategy
from allotment.distribute.tree import HierarchicalCopyAllReduce
from allotment.distribute.values import DistributedValues

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
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]
