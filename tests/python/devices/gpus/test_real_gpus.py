"""Real GPUs among the devices, with a CUDA driver that stands in for NVIDIA's."""

import pytest

from allotment.devices.limits.sizes import system_reserve
from support.cuda import check, run_on_stand_in

MIB = 1 << 20
GIB = 1 << 30


def test_details_are_those_of_the_driver_and_looking_makes_no_context() -> None:
    check(
        run_on_stand_in(
            """
            import allotment.tf as tf
            gpus = tf.config.list_physical_devices("GPU")
            assert [gpu.name for gpu in gpus] == ["/physical_device:GPU:0", "/physical_device:GPU:1"]
            assert tf.config.experimental.get_device_details(gpus[1]) == {
                "device_name": "NVIDIA Stand-in",
                "compute_capability": (8, 6),
                "hardware_index": 1,
                "uuid": "GPU-57a4d104-0000-4000-8000-000000000001",
                "memory": 16 << 30,
                "simulated": False,
                "pci_bus_id": "0000:3b:00.0",
            }
            assert outstanding() == {}
            """,
            ALLOTMENT_STAND_IN_DEVICES="2",
            ALLOTMENT_STAND_IN_MEMORY=str(16 * GIB),
            ALLOTMENT_STAND_IN_NAME="NVIDIA Stand-in",
            ALLOTMENT_STAND_IN_CAPABILITY="86",
        )
    )


def test_the_driver_applies_the_mask() -> None:
    check(
        run_on_stand_in(
            """
            import allotment.tf as tf
            details = tf.config.experimental.get_device_details
            found = [details(gpu)["uuid"][-1] for gpu in tf.config.list_physical_devices("GPU")]
            assert found == ["2", "0"], found
            """,
            ALLOTMENT_STAND_IN_DEVICES="3",
            CUDA_VISIBLE_DEVICES="2,0",
        )
    )


@pytest.mark.parametrize("gpus", ["0", "2:64MiB"])
def test_real_and_simulated_gpus_never_mix(gpus: str) -> None:
    check(
        run_on_stand_in(
            """
            import os
            import allotment.tf as tf
            details = [tf.config.experimental.get_device_details(gpu) for gpu in tf.config.list_physical_devices("GPU")]
            assert len(details) == int(os.environ["ALLOTMENT_SIMULATED_GPUS"][0])
            assert all(one["simulated"] for one in details)
            assert calls() == 0
            """,
            ALLOTMENT_SIMULATED_GPUS=gpus,
        )
    )


def test_that_none_are_simulated_is_no_answer_to_real_ones_that_are_listed() -> None:
    check(
        run_on_stand_in(
            """
            import allotment
            import allotment.tf as tf
            assert len(tf.config.list_physical_devices("GPU")) == 1
            for none in (0, "0"):
                try:
                    allotment.testing.simulate_gpus(none)
                except RuntimeError as error:
                    assert "simulate_gpus('0') comes too late" in str(error), error
                else:
                    raise AssertionError("a real GPU is listed")
            assert len(tf.config.list_physical_devices("GPU")) == 1
            """
        )
    )
    check(
        run_on_stand_in(
            """
            import allotment
            import allotment.tf as tf
            allotment.testing.simulate_gpus(0)
            assert tf.config.list_physical_devices("GPU") == []
            allotment.testing.simulate_gpus(0)
            """
        )
    )


def test_limits_are_of_free_memory_and_pools_take_it_from_the_driver() -> None:
    check(
        run_on_stand_in(
            """
            import allotment
            import allotment.tf as tf
            from allotment.devices.context import context
            MIB = 1 << 20
            other = allotment.Pool("1GiB", source="cuda:0", growth=False)
            held = other.allocate(1)
            tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], True)
            gpu = context().ready().devices[1]
            assert gpu.pool.limit == (15 << 30) - 1800 * MIB, gpu.pool.limit
            assert outstanding()["bytes"] == 1 << 30
            with gpu.pool.allocate(3 * MIB):
                assert tf.config.experimental.get_memory_info("GPU:0") == {"current": 4 * MIB, "peak": 4 * MIB}
                assert outstanding()["bytes"] == (1 << 30) + 4 * MIB
            """,
            ALLOTMENT_STAND_IN_MEMORY=str(16 * GIB),
        )
    )


def test_splits_may_ask_for_more_than_the_gpu_has_and_priorities_are_the_drivers() -> None:
    check(
        run_on_stand_in(
            """
            import allotment.tf as tf
            from allotment.devices.context import context
            gpu, = tf.config.list_physical_devices("GPU")
            def split(*limits, priority):
                tf.config.set_logical_device_configuration(gpu, [
                    tf.config.LogicalDeviceConfiguration(limit, experimental_priority=priority) for limit in limits
                ])
            split(40, 40, priority=-6)
            try:
                context().ready()
            except tf.errors.InvalidArgumentError as error:
                assert "Priority -6 is outside the range of supported priorities [-5,0]" in str(error), error
            split(40, 40, priority=-5)
            first, second = (device.pool for device in context().ready().devices[1:])
            assert (first.limit, second.limit) == (40 << 20, 40 << 20)
            held = first.allocate(1)
            # As in TensorFlow: the later one gets what is left.
            also = second.allocate(1)
            assert first.stats().reserved == 40 << 20 > second.stats().reserved > 0
            """,
            ALLOTMENT_STAND_IN_MEMORY=str(64 * MIB),
        )
    )


def test_a_driver_that_cannot_be_used_is_one_warning_and_no_gpu() -> None:
    done = run_on_stand_in(
        """
        import allotment.tf as tf
        assert tf.config.list_physical_devices("GPU") == []
        assert tf.config.list_physical_devices("GPU") == []
        tf.constant(1.0) + 1.0
        """,
        ALLOTMENT_CUDA_DRIVER="/nowhere/libcuda.so.1",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("No GPU is listed: the CUDA driver was not found: /nowhere/libcuda.so.1") == 1


def test_the_memory_of_a_gpu_that_cannot_be_asked_for_is_an_error() -> None:
    check(
        run_on_stand_in(
            """
            import allotment.tf as tf
            from allotment.devices.context import context
            tf.config.list_physical_devices()
            told = set()
            for nth in range(1, 20):
                fail_at(nth)
                try:
                    context().ready()
                except tf.errors.UnknownError as error:
                    call = failed().decode()
                    assert str(error).startswith(f"Failed to query available memory for GPU 0: {call} failed"), error
                    assert outstanding() == {}
                    told.add(call)
                else:
                    break
            assert {"cuDevicePrimaryCtxRetain", "cuMemGetInfo_v2"} <= told, told
            """
        )
    )


@pytest.mark.parametrize(
    ("free", "major", "mib"),
    [
        (2 * GIB - 1, 9, 225),
        (2 * GIB, 6, 500),
        (2 * GIB, 3, 500),
        (2 * GIB, 7, 1050),
        (2 * GIB, 8, 1536),
        (2 * GIB, 9, 1800),
        (80 * GIB, 12, 1800),
    ],
)
def test_the_reserve_for_the_system_is_tensorflows(free: int, major: int, mib: int) -> None:
    assert system_reserve(free, major) == mib * MIB
