"""Memory limits: the arithmetic, and that they hold exactly (B003, B005, B006)."""

import pytest

import allotment
import allotment.tf as tf
from allotment import OutOfMemoryError
from allotment.devices.limits.sizes import limit_of_split, limit_of_whole_gpu
from support.devices import MIB, fresh, gpus, limits, pools, split

Config = tf.config.LogicalDeviceConfiguration
GIB = 1024 * MIB


# Worked values of the record: an 80 GiB card with a little in use, and its rule of 1800 MiB for others.
TOTAL, FREE, RESERVE = 85_899_345_920, 85_000_000_000, 1_887_436_800


@pytest.mark.parametrize(
    ("fraction", "override", "limit"),
    [
        (0, None, 83_112_563_200),
        (0.5, None, 42_949_672_960),
        (0.3, None, 25_769_803_776),
        (1.5, None, 128_849_018_880),
        (0.5, 2000, 82_902_848_000),
        (0, 3000, 81_854_272_000),
        (0, 100_000, 83_112_563_200),
        (0, 0, 85_000_000_000),
    ],
)
def test_worked_limits_of_a_whole_gpu(fraction: float, override: int | None, limit: int) -> None:
    nbytes = None if override is None else override * MIB
    assert limit_of_whole_gpu(FREE, TOTAL, fraction=fraction, reserve=RESERVE, override=nbytes) == limit


@pytest.mark.parametrize(
    ("free", "reserve", "limit"),
    [
        (16_000_000_000, 1_101_004_800, 14_898_995_200),
        (2_147_483_648, 524_288_000, 1_623_195_648),
        (2_147_483_647, 235_929_600, 1_911_554_047),
        # Where the reserve would leave nothing, it is not taken.
        (235_929_600, 235_929_600, 235_929_600),
        (200_000_000, 235_929_600, 200_000_000),
    ],
)
def test_worked_limits_without_a_share(free: int, reserve: int, limit: int) -> None:
    assert limit_of_whole_gpu(free, TOTAL, fraction=0, reserve=reserve, override=None) == limit


def test_a_share_is_rounded_down_to_bytes() -> None:
    total = 8 * GIB
    assert limit_of_whole_gpu(total, total, fraction=0.333, reserve=0, override=None) == 2_860_448_219


@pytest.mark.parametrize(
    ("mib", "nbytes"),
    [
        (1024, GIB),
        (0, 0),
        (0.9, 0),
        (1500.7, 1500 * MIB),
        (-3, -3 * MIB),
        # Single precision.
        (16_777_217, 16_777_216 * MIB),
    ],
)
def test_the_limit_of_a_split_is_in_whole_mib(mib: float, nbytes: int) -> None:
    assert limit_of_split(mib) == nbytes


@pytest.mark.not_opencl("a request is no larger than the longest allocation of the device")
def test_b005_a_share_of_memory_can_be_filled_to_the_last_granule(monkeypatch: pytest.MonkeyPatch) -> None:
    # Field report B005 (pytorch#179444).
    for total in (1_000_000_007, 85_899_345_920, 3 * 2**30):
        for fraction in (0.1, 0.3, 1 / 3, 0.7, 1.0):
            context = fresh(monkeypatch, f"1:{total}")
            tf.config.gpu.set_per_process_memory_fraction(fraction)
            (pool,) = pools(context)
            assert abs(pool.limit - total * fraction) <= 1
            most = pool.limit // 256 * 256
            with pool.allocate(most):
                assert pool.stats().reserved == most
            with pytest.raises(OutOfMemoryError):
                pool.allocate(most + 256)


@pytest.mark.parametrize(("size", "count"), [(MIB, 256), (64 * 1024, 4096), (100 * MIB, 2)])
def test_b006_a_split_holds_what_it_says_and_no_more(
    size: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Field report B006 (tensorflow#53822).
    context = fresh(monkeypatch, "1:1024MiB")
    split(gpus()[0], 256)
    (pool,) = pools(context)
    for _ in range(count):
        pool.malloc(size)
        assert pool.stats().reserved <= 256 * MIB
    with pytest.raises(OutOfMemoryError) as raised:
        pool.malloc(size)
    assert raised.value.limit == 256 * MIB
    assert raised.value.verdict in ("full", "fragmented")
    assert "256 MiB" in str(raised.value)


@pytest.mark.simulated_gpus("the memory is not for the host to write to")
def test_b003_growth_takes_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    # Field report B003 (rmm#496).
    context = fresh(monkeypatch, "1:32MiB")
    tf.config.experimental.set_memory_growth(gpus()[0], True)
    (pool,) = pools(context)
    held = [pool.allocate(size) for size in ("8MiB", "8MiB", "8MiB", "7.5MiB")]
    for number, allocation in enumerate(held):
        memoryview(allocation)[:4] = bytes([number]) * 4
    with pytest.raises(OutOfMemoryError):
        pool.allocate("1MiB")
    assert [bytes(memoryview(allocation)[:4]) for allocation in held] == [bytes([n]) * 4 for n in range(4)]


@pytest.mark.simulated_gpus("limits of splits are not compared with the memory")
@pytest.mark.parametrize("limit", [257, 1 << 42])
def test_a_limit_that_no_gpu_has_is_refused(limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:256MiB")
    split(gpus()[0], limit)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"ask for .* MiB of memory, but it has 256 MiB"):
        tf.config.list_logical_devices()


def test_splits_share_the_memory_of_their_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = None, None
    context = fresh(monkeypatch, "1:256MiB")
    split(gpus()[0], 128, 128)
    one, other = pools(context)
    one.allocate("128MiB")
    other.allocate("128MiB")


@pytest.mark.parametrize("limit", [0, 0.9])
def test_less_than_a_mib_is_a_device_that_holds_nothing(
    limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = fresh(monkeypatch, "1:256MiB")
    split(gpus()[0], limit, 64)
    none, _ = pools(context)
    assert allotment.experimental.get_logical_device_details("GPU:0")["memory_limit"] == 0
    assert none.allocate(0).size == 0
    with pytest.raises(OutOfMemoryError):
        none.allocate(1)


def test_gpu_splits_need_a_limit_that_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:256MiB")
    with pytest.raises(ValueError, match="Setting memory limit is required for GPU virtual devices"):
        split(gpus()[0], 64, Config())
    assert tf.config.get_logical_device_configuration(gpus()[0]) is None
    split(gpus()[0], "64")
    with pytest.raises(TypeError, match="memory_limit of /physical_device:GPU:0 must be a number of MiB"):
        tf.config.list_logical_devices()


@pytest.mark.parametrize(
    ("reserve", "fraction", "limit", "warned"),
    [
        (None, 0, 64, False),
        ("16", 0, 48, False),
        ("16", 0.5, 48, False),
        ("0", 0, 64, False),
        ("65", 0, 64, True),
        ("65", 0.5, 32, True),
        ("-1", 0, 64, True),
    ],
)
def test_a_reserve_for_the_system_only_where_it_is_asked_for(
    reserve: str | None,
    fraction: float,
    limit: int,
    warned: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    environ = {} if reserve is None else {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB": reserve}
    context = fresh(monkeypatch, "2:64MiB", **environ)
    tf.config.gpu.set_per_process_memory_fraction(fraction)
    assert limits(context) == [("GPU:0", limit), ("GPU:1", limit)]
    # A fraction that the reserve overrides is named for each GPU.
    overridden = 2 if reserve == "16" and fraction else 0
    assert len(caplog.messages) == warned + overridden
    assert all("TF_DEVICE_MIN_SYS_MEMORY_IN_MB" in message for message in caplog.messages)


def test_splits_do_not_look_at_the_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    context = fresh(monkeypatch, "1:64MiB", TF_DEVICE_MIN_SYS_MEMORY_IN_MB="16")
    split(gpus()[0], 64)
    assert limits(context) == [("GPU:0", 64)]


def test_regions_are_given_back_before_a_refusal_unless_the_environment_says_no(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for text, works in ((None, True), ("true", True), ("false", False)):
        environ = {} if text is None else {"TF_ENABLE_GPU_GARBAGE_COLLECTION": text}
        context = fresh(monkeypatch, "1:64MiB", **environ)
        tf.config.experimental.set_memory_growth(gpus()[0], True)
        (pool,) = pools(context)
        pool.free(pool.malloc("32MiB"))
        if works:
            pool.malloc("48MiB")
        else:
            with pytest.raises(OutOfMemoryError):
                pool.malloc("48MiB")


def test_the_cpu_has_a_pool_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    context = fresh(monkeypatch, "0", TF_CPU_ALLOCATOR_USE_BFC="true", TF_CPU_BFC_MEM_LIMIT_IN_MB="64")
    (cpu,) = tf.config.list_physical_devices()
    tf.config.set_logical_device_configuration(cpu, [Config(), Config()])
    first, second = (device.pool for device in context.ready().devices)
    assert first is second
    assert first is not None
    assert (first.name, first.limit, first.growth) == ("bfc_cpu_allocator_for_gpu", 64 * MIB, True)
    first.malloc(1000)
    assert tf.config.experimental.get_memory_info("CPU:0") == {"current": 1024, "peak": 1024}
