"""Figures, pictures and errors travel: to other processes, into copies, into dictionaries."""

import copy
import ctypes
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import allotment.tf as tf
from allotment import Pool, errors
from allotment.trace.error import TraceError
from support.devices import fresh

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def travelled(value: Any) -> Iterator[Any]:
    for protocol in PROTOCOLS:
        yield pickle.loads(pickle.dumps(value, protocol))
    yield copy.copy(value)
    yield copy.deepcopy(value)


def raised(call: Callable[[], object]) -> Any:
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def data() -> list[Any]:
    pool = Pool("1MiB", owner_tags=True, name="it's")
    first, _ = pool.malloc(1000), pool.malloc(5000)
    pool.free(first)
    snapshot = pool.snapshot()
    (region,) = snapshot.regions
    refused = raised(lambda: pool.malloc("2MiB"))
    explanation = pool.explain("2MiB")
    groups = [*refused.by_size, *refused.by_owner, explanation.splitter, *refused.advice]
    assert len(groups) > 3
    return [pool.stats(), snapshot, region, *region.chunks, *pool.kept_regions(), *groups]


@pytest.mark.parametrize("value", data(), ids=lambda value: type(value).__name__)
def test_what_a_pool_tells_travels_under_every_protocol(value: Any) -> None:
    for again in travelled(value):
        assert type(again) is type(value)
        assert again == value
        assert repr(again) == repr(value)


def test_fields_by_name_are_those_of_the_objects() -> None:
    for value in data():
        if hasattr(value, "_asdict"):
            fields = value._asdict()
            assert all(getattr(value, name) == field for name, field in fields.items())
            assert type(value)(**fields) == value
    stats = Pool("1MiB").stats()
    assert f"PoolStats({', '.join(f'{name}={value!r}' for name, value in stats._asdict().items())})" == repr(
        stats
    )


def damage() -> Any:
    pool = Pool("1MiB", guard=True)
    allocation = pool.allocate(100)
    ctypes.memset(allocation.address - 8, 1, 4)
    return raised(allocation.free)


def of_a_graph() -> Any:
    with tf.Graph().as_default():
        wide = tf.compat.v1.placeholder(tf.float32, [None, None])
        product = tf.matmul(tf.constant([[1.0]]), wide)
        return raised(lambda: tf.compat.v1.Session().run(product, {wide: [[1.0, 2.0], [3.0, 4.0]]}))


def of_an_operation() -> Any:
    with tf.device("/GPU:0"):
        return raised(lambda: tf.zeros([1 << 24]))


def every_code() -> list[Any]:
    classes = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.OpError)
    ]
    classes.remove(errors._CodedError)
    return [kind(None, None, "what happened", *([3] if kind is errors.OpError else [])) for kind in classes]


@pytest.mark.parametrize(
    "make",
    [
        lambda: raised(lambda: Pool("1MiB").malloc("2MiB")),
        lambda: raised(lambda: Pool("1MiB").free(77)),
        damage,
        of_a_graph,
        of_an_operation,
        lambda: TraceError("file: line 3"),
    ],
)
def test_errors_travel_with_their_fields(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:16MiB")
    error = make()
    for again in travelled(error):
        assert type(again) is type(error)
        assert str(again) == str(error)
        fields = error._asdict()
        assert fields["message"] == str(error)
        # An operation stays with its graph.
        assert {**again._asdict(), "op": None} == {**fields, "op": None}


def test_errors_of_every_code_travel() -> None:
    for error in every_code():
        for again in travelled(error):
            assert (type(again), again._asdict()) == (type(error), error._asdict())


def test_a_refusal_has_its_figures_by_name() -> None:
    error = raised(lambda: Pool("1MiB").malloc("2MiB"))
    fields = error._asdict()
    assert (fields["requested"], fields["limit"], fields["verdict"]) == (2 << 20, 1 << 20, "limit")
    assert fields.keys() == {"message", *vars(error)}


def test_a_copy_of_an_error_keeps_its_operation() -> None:
    error = of_a_graph()
    assert error.op is not None
    assert copy.copy(error).op is error.op
    assert pickle.loads(pickle.dumps(error)).op is None
