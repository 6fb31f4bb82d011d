"""The options of sessions: ``ConfigProto``, ``GPUOptions`` and the messages in them (device-config API, 9.3)."""

from typing import ClassVar

from allotment.tf.graph.options.messages import Field, Message


class _VirtualDevices(Message):
    """Logical devices of one GPU: their limits in MiB."""

    FIELDS: ClassVar = {
        "memory_limit_mb": Field(1, float, repeated=True, single=True, effect=True),
        "priority": Field(2, int, repeated=True),
        "device_ordinal": Field(3, int, repeated=True),
    }


class _GPUExperimental(Message):
    """Experimental options of GPUs: ``virtual_devices`` and the split rule have their effect, the rest is kept."""

    VirtualDevices = _VirtualDevices
    FIELDS: ClassVar = {
        "virtual_devices": Field(1, _VirtualDevices, repeated=True),
        "use_unified_memory": Field(2, bool),
        "num_dev_to_dev_copy_streams": Field(3, int),
        "collective_ring_order": Field(4, str),
        "timestamped_allocator": Field(5, bool),
        "kernel_tracker_max_interval": Field(7, int),
        "kernel_tracker_max_bytes": Field(8, int),
        "kernel_tracker_max_pending": Field(9, int),
        "internal_fragmentation_fraction": Field(10, float, effect=True),
        "use_cuda_malloc_async": Field(11, bool),
        "disallow_retry_on_allocation_failure": Field(12, bool),
    }


_GPUExperimental.__name__ = _GPUExperimental.__qualname__ = "Experimental"
_VirtualDevices.__name__ = _VirtualDevices.__qualname__ = "VirtualDevices"


class GPUOptions(Message):
    """Options of GPUs in a session. As ``tf.compat.v1.GPUOptions``."""

    Experimental = _GPUExperimental
    FIELDS: ClassVar = {
        "per_process_gpu_memory_fraction": Field(1, float, effect=True),
        "allocator_type": Field(2, str, effect=True),
        "deferred_deletion_bytes": Field(3, int),
        "allow_growth": Field(4, bool, effect=True),
        "visible_device_list": Field(5, str, effect=True),
        "polling_active_delay_usecs": Field(6, int),
        "polling_inactive_delay_msecs": Field(7, int),
        "force_gpu_compatible": Field(8, bool),
        "experimental": Field(9, _GPUExperimental),
    }


class OptimizerOptions(Message):
    """Options of TensorFlow's optimizations of graphs; kept, without effect."""

    L1, L0 = 0, -1
    DEFAULT, OFF, ON_1, ON_2 = 0, -1, 1, 2
    FIELDS: ClassVar = {
        "do_common_subexpression_elimination": Field(1, bool),
        "do_constant_folding": Field(2, bool),
        "opt_level": Field(3, int),
        "do_function_inlining": Field(4, bool),
        "global_jit_level": Field(5, int),
    }


class GraphOptions(Message):
    """Options of a session's graph. As ``tf.compat.v1.GraphOptions``; ``place_pruned_graph`` has its effect."""

    FIELDS: ClassVar = {
        "enable_recv_scheduling": Field(2, bool),
        "optimizer_options": Field(3, OptimizerOptions),
        "build_cost_model": Field(4, int),
        "infer_shapes": Field(5, bool),
        "place_pruned_graph": Field(6, bool, effect=True),
        "enable_bfloat16_sendrecv": Field(7, bool),
        "timeline_step": Field(8, int),
        "build_cost_model_after": Field(9, int),
    }


class _ConfigExperimental(Message):
    """Options that TensorFlow calls experimental; kept, without effect."""

    FIELDS: ClassVar = {
        "collective_group_leader": Field(1, str),
        "executor_type": Field(3, str),
        "disable_thread_spinning": Field(9, bool),
        "enable_mlir_bridge": Field(13, bool),
        "disable_output_partition_graphs": Field(14, bool),
    }


_ConfigExperimental.__name__ = _ConfigExperimental.__qualname__ = "Experimental"


class ConfigProto(Message):
    """The options of a session. As ``tf.compat.v1.ConfigProto``."""

    Experimental = _ConfigExperimental
    FIELDS: ClassVar = {
        "device_count": Field(1, int, is_map=True, effect=True),
        "intra_op_parallelism_threads": Field(2, int),
        "placement_period": Field(3, int),
        "device_filters": Field(4, str, repeated=True),
        "inter_op_parallelism_threads": Field(5, int),
        "gpu_options": Field(6, GPUOptions),
        "allow_soft_placement": Field(7, bool, effect=True),
        "log_device_placement": Field(8, bool, effect=True),
        "use_per_session_threads": Field(9, bool),
        "graph_options": Field(10, GraphOptions),
        "operation_timeout_in_ms": Field(11, int),
        "isolate_session_state": Field(15, bool),
        "experimental": Field(16, _ConfigExperimental),
        "share_cluster_devices_in_session": Field(17, bool),
    }


class RunOptions(Message):
    """The options of one run. As ``tf.compat.v1.RunOptions``."""

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = range(4)
    FIELDS: ClassVar = {
        "trace_level": Field(1, int, effect=True),
        "timeout_in_ms": Field(2, int),
        "inter_op_thread_pool": Field(3, int),
        "output_partition_graphs": Field(5, bool),
        "report_tensor_allocations_upon_oom": Field(7, bool, effect=True),
    }


class AllocationRecord(Message):
    """One allocation: when, and how many bytes."""

    FIELDS: ClassVar = {"alloc_micros": Field(1, int), "alloc_bytes": Field(2, int)}


class AllocatorMemoryUsed(Message):
    """The memory that one node took from one pool."""

    FIELDS: ClassVar = {
        "allocator_name": Field(1, str),
        "total_bytes": Field(2, int),
        "peak_bytes": Field(3, int),
        "live_bytes": Field(4, int),
        "allocator_bytes_in_use": Field(5, int),
        "allocation_records": Field(6, AllocationRecord, repeated=True),
    }


class NodeExecStats(Message):
    """Times and memory of one node."""

    FIELDS: ClassVar = {
        "node_name": Field(1, str),
        "all_start_micros": Field(2, int),
        "op_start_rel_micros": Field(3, int),
        "op_end_rel_micros": Field(4, int),
        "all_end_rel_micros": Field(5, int),
        "memory": Field(6, AllocatorMemoryUsed, repeated=True),
        "timeline_label": Field(8, str),
    }


class DeviceStepStats(Message):
    """Times and memory of the nodes on one device."""

    FIELDS: ClassVar = {"device": Field(1, str), "node_stats": Field(2, NodeExecStats, repeated=True)}


class StepStats(Message):
    """Times and memory of one run, by device."""

    FIELDS: ClassVar = {"dev_stats": Field(1, DeviceStepStats, repeated=True)}


class RunMetadata(Message):
    """The record of a run that has a trace level. As ``tf.compat.v1.RunMetadata``."""

    FIELDS: ClassVar = {"step_stats": Field(1, StepStats)}


__all__ = [
    "ConfigProto",
    "GPUOptions",
    "GraphOptions",
    "OptimizerOptions",
    "RunMetadata",
    "RunOptions",
    "StepStats",
]
