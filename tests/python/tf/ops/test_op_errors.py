"""The errors of operations: TensorFlow's names, codes and forms, and what ours are beside."""

import copy
import pickle

import pytest

import allotment.tf as tf
from allotment import OutOfMemoryError, Pool, errors

# The record of TensorFlow 2.21.
CODES = {
    "OK": 0,
    "CANCELLED": 1,
    "UNKNOWN": 2,
    "INVALID_ARGUMENT": 3,
    "DEADLINE_EXCEEDED": 4,
    "NOT_FOUND": 5,
    "ALREADY_EXISTS": 6,
    "PERMISSION_DENIED": 7,
    "RESOURCE_EXHAUSTED": 8,
    "FAILED_PRECONDITION": 9,
    "ABORTED": 10,
    "OUT_OF_RANGE": 11,
    "UNIMPLEMENTED": 12,
    "INTERNAL": 13,
    "UNAVAILABLE": 14,
    "DATA_LOSS": 15,
    "UNAUTHENTICATED": 16,
}
CLASSES = {
    "Cancelled": 1,
    "Unknown": 2,
    "InvalidArgument": 3,
    "DeadlineExceeded": 4,
    "NotFound": 5,
    "AlreadyExists": 6,
    "PermissionDenied": 7,
    "ResourceExhausted": 8,
    "FailedPrecondition": 9,
    "Aborted": 10,
    "OutOfRange": 11,
    "Unimplemented": 12,
    "Internal": 13,
    "Unavailable": 14,
    "DataLoss": 15,
    "Unauthenticated": 16,
}


def test_codes() -> None:
    assert {name: getattr(errors, name) for name in CODES} == CODES


@pytest.mark.parametrize(("name", "code"), CLASSES.items())
def test_each_class_has_its_code(name: str, code: int) -> None:
    error = getattr(errors, f"{name}Error")(None, "op", "what happened")
    assert isinstance(error, errors.OpError)
    assert (error.message, str(error), error.op, error.node_def, error.error_code) == (
        "what happened",
        "what happened",
        "op",
        None,
        code,
    )
    assert repr(error) == f"{name}Error()"
    # The documents' programs catch RuntimeError.
    assert isinstance(error, RuntimeError)
    assert not isinstance(error, ValueError)
    assert error.experimental_payloads == {}


def test_the_base_takes_a_code() -> None:
    error = errors.OpError(None, None, "text", 3)
    assert (error.error_code, str(error)) == (3, "text")


def test_running_out_of_memory_carries_the_pool_s_figures() -> None:
    pool = Pool("1MiB", growth=False)
    pool.malloc(1000)
    with pytest.raises(OutOfMemoryError) as raised:
        pool.malloc("1MiB")
    error = errors.ResourceExhaustedError.of_pool("OOM when allocating tensor", raised.value)
    assert isinstance(error, MemoryError)
    assert str(error) == f"OOM when allocating tensor\n{raised.value}"
    names = ("requested", "limit", "in_use", "reserved", "free", "largest_free", "verdict")
    assert [getattr(error, name) for name in names] == [getattr(raised.value, name) for name in names]
    assert error.requested == 1 << 20


def test_running_out_of_memory_without_a_pool() -> None:
    for error in (
        errors.ResourceExhaustedError(None, None, "oom"),
        errors.ResourceExhaustedError.of_pool("oom", None),
        errors.ResourceExhaustedError.of_pool("oom", MemoryError()),
    ):
        assert (str(error), error.error_code, error.requested, error.verdict) == ("oom", 8, None, None)


def test_errors_are_copied_and_pickled() -> None:
    error = errors.ResourceExhaustedError(None, None, "oom")
    error.limit = 7
    for each in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(each) is errors.ResourceExhaustedError
        assert (str(each), each.limit, each.error_code) == ("oom", 7, 8)
    assert pickle.loads(pickle.dumps(errors.OpError(None, None, "text", 3))).error_code == 3


def test_errors_of_graphs() -> None:
    assert issubclass(tf.errors.OperatorNotAllowedInGraphError, TypeError)


def test_what_lacks_is_said_of_the_class_itself() -> None:
    for name in CLASSES:
        with pytest.raises(TypeError) as raised:
            getattr(errors, f"{name}Error")("x")
        assert (
            str(raised.value)
            == f"{name}Error.__init__() missing 2 required positional arguments: 'op' and 'message'"
        )


def test_payloads_are_the_first_argument_behind_the_text() -> None:
    payloads = {b"a": b"b"}
    for name, code in CLASSES.items():
        error = getattr(errors, f"{name}Error")(None, None, "text", payloads, {b"c": b"d"})
        assert (error.message, error.error_code, error.experimental_payloads) == ("text", code, payloads)
    assert errors.OpError(None, None, "text", 3, payloads).experimental_payloads == payloads
    assert errors.OpError(None, None, "text", 3).experimental_payloads == {}
