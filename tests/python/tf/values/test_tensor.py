"""Tensors: what they say of themselves, and what Python and NumPy make of them."""

import copy
import logging
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment.tf.names import deprecation
from allotment.tf.tensors.tensor import EagerTensor, Tensor
from support.devices import CPU, run_on_gpus
from support.tf.tensors import check, tensor


@pytest.mark.simulated_gpus("it is on a machine without GPUs")
def test_attributes() -> None:
    x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert isinstance(x, Tensor)
    assert x.shape == x.get_shape() == [2, 3]
    assert (x.ndim, len(x)) == (2, 2)
    assert x.dtype.name == "float32"
    assert x.device == x.backing_device == CPU
    with pytest.raises(AttributeError, match="is not writable"):
        x.device = "elsewhere"
    for name in ("name", "op", "graph", "value_index"):
        with pytest.raises(
            AttributeError, match=f"Tensor.{name} is undefined when eager execution is enabled"
        ):
            getattr(x, name)


@pytest.mark.parametrize(
    ("value", "text", "representation"),
    [
        (1.5, "tf.Tensor(1.5, shape=(), dtype=float32)", "<tf.Tensor: shape=(), dtype=float32, numpy=1.5>"),
        (
            [1, 2],
            "tf.Tensor([1 2], shape=(2,), dtype=int32)",
            "<tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>",
        ),
        (
            [[22.0, 28.0], [49.0, 64.0]],
            "tf.Tensor(\n[[22. 28.]\n [49. 64.]], shape=(2, 2), dtype=float32)",
            "<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\narray([[22., 28.],\n       [49., 64.]], dtype=float32)>",
        ),
        (True, "tf.Tensor(True, shape=(), dtype=bool)", "<tf.Tensor: shape=(), dtype=bool, numpy=True>"),
        ("x", "tf.Tensor(b'x', shape=(), dtype=string)", "<tf.Tensor: shape=(), dtype=string, numpy=b'x'>"),
        (
            0.1,
            "tf.Tensor(0.1, shape=(), dtype=float32)",
            "<tf.Tensor: shape=(), dtype=float32, numpy=0.10000000149011612>",
        ),
        (
            1e10,
            "tf.Tensor(1e+10, shape=(), dtype=float32)",
            "<tf.Tensor: shape=(), dtype=float32, numpy=10000000000.0>",
        ),
    ],
)
def test_printing(value: Any, text: str, representation: str) -> None:
    assert str(tensor(value)) == text
    assert repr(tensor(value)) == representation


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, "float16", "0.0999755859375"),
        (0.1, "float64", "0.1"),
        (0.1 + 1j, "complex64", "(0.10000000149011612+1j)"),
        (1e20, "float32", "1.0000000200408773e+20"),
    ],
)
def test_scalars_show_all_their_digits(value: Any, dtype: str, text: str) -> None:
    assert repr(tensor(value, dtype)) == f"<tf.Tensor: shape=(), dtype={dtype}, numpy={text}>"


def test_the_class_has_what_tensors_have() -> None:
    for name in (
        "dtype",
        "shape",
        "ndim",
        "name",
        "ref",
        "get_shape",
        "set_shape",
        "eval",
        "experimental_ref",
    ):
        assert hasattr(Tensor, name)
    x: Any = tensor([1])
    assert x.experimental_ref() == x.ref()
    with pytest.raises(NotImplementedError, match=re.escape("is .numpy() what you're looking for?")):
        x.eval()
    with pytest.raises(NotImplementedError, match=re.escape("Tensor.consumers is undefined")):
        x.consumers()


@pytest.mark.simulated_gpus("the memory is not for NumPy to read")
def test_values_are_numpy_s_own() -> None:
    x = tensor([1.0, 2.0])
    value = x.numpy()
    value[0] = 9
    check(x, [1, 2], "float32")
    assert type(tensor(1.5).numpy()) is np.float32
    assert tensor("x").numpy() == b"x"
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.from_dlpack(x).tolist() == [1, 2]
    with pytest.raises(ValueError, match="not shared"):
        np.array(x, copy=False)


def test_scalars_are_python_s_numbers() -> None:
    assert int(tensor(3)) == 3
    assert float(tensor(3.5)) == 3.5
    assert complex(tensor(1j)) == 1j
    assert bool(tensor(2))
    assert not bool(tensor(0.0))
    assert [10, 20][tensor(1)] == 20
    assert list(range(tensor(3))) == [0, 1, 2]
    assert f"{tensor(1.234):.2f}" == "1.23"
    assert (f"{tensor(0.1)}", f"{tensor([1, 2])}") == ("0.10000000149011612", "[1 2]")
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{tensor([1.5]):.3f}"


def test_other_tensors_are_no_numbers() -> None:
    for call in (int, float, complex):
        with pytest.raises(TypeError):
            call(tensor([1, 2]))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tensor([1, 2]))
    with pytest.raises(TypeError, match=re.escape("Scalar tensor has no `len()`")):
        len(tensor(1))
    with pytest.raises(TypeError):
        [1, 2][tensor(1.0)]


def test_references_are_keys() -> None:
    x, y = tensor(1), tensor(1)
    with pytest.raises(
        TypeError, match=re.escape("Tensor is unhashable. Instead, use tensor.ref() as the key.")
    ):
        hash(x)
    assert x.ref() == x.ref()
    assert x.ref() != y.ref()
    assert {x.ref(): "x"}[x.ref()] == "x"
    assert x.ref().deref() is x
    assert repr(x.ref()) == f"<Reference wrapping {x!r}>"


def test_copies_are_the_tensor_itself() -> None:
    x = tensor([1.0])
    assert copy.copy(x) is x
    assert copy.deepcopy(x) is x
    assert copy.deepcopy([x, x])[1] is x


@pytest.mark.parametrize("value", [1.5, [1, 2], [[True]], ["a", "ä"], [], 1j])
def test_pickles(value: Any) -> None:
    x = tensor(value)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(x, protocol))
        check(again, x.numpy(), x.dtype.name)
        assert again.device == x.device


def test_a_shape_can_be_checked() -> None:
    x: Any = tensor([[1, 2]])
    assert x.set_shape([1, None]) is None
    with pytest.raises(
        ValueError, match=re.escape("Tensor's shape (1, 2) is not compatible with supplied shape (3, 3)")
    ):
        x.set_shape([3, 3])


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    monkeypatch.setattr(deprecation, "_reported", {})
    caplog.set_level(logging.WARNING, "allotment.tf.names.deprecation")
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.mark.simulated_gpus("the memory is not for NumPy to read")
def test_copies_to_a_device_by_method(told: Callable[[], list[str]]) -> None:
    x: Any = tensor([1.0])
    for _ in range(2):
        y = x.cpu()
        check(y, [1], "float32")
        assert y is not x
        assert not np.shares_memory(y._array, x._array)
        assert y.device == CPU
    (line,) = told()
    assert "EagerTensor.cpu is deprecated" in line
    assert "Use tf.identity with explicit device placement instead." in line


@pytest.mark.simulated_gpus("it is on a machine without GPUs")
@pytest.mark.parametrize("index", [0, 3, "x"])
def test_a_gpu_that_is_not_there(told: Callable[[], list[str]], index: Any) -> None:
    x: Any = tensor([1.0])
    with pytest.raises(RuntimeError, match=f"^GPU:{index} unknown device.$") as raised:
        x.gpu(index)
    assert type(raised.value) is RuntimeError


def test_copies_between_simulated_gpus() -> None:
    done = run_on_gpus(
        "2:1GiB",
        """
        import copy
        import logging
        import pickle
        from allotment.tf.config.experimental import get_memory_info
        from allotment.devices.device_scope import device
        from allotment.tf.ops import operators
        from allotment.tf.ops.array.constants import constant
        logging.disable()
        def used(index):
            return get_memory_info(f"GPU:{index}")["current"]
        x = constant([1.0] * 1024)
        assert x.device.endswith("GPU:0")
        y = x.gpu(1)
        assert y.device == y.backing_device and y.device.endswith("GPU:1")
        assert (used(0), used(1)) == (4096, 4096)
        z = y.cpu()
        assert z.device.endswith("CPU:0") and (used(0), used(1)) == (4096, 4096)
        again = x.gpu()
        assert again.device.endswith("GPU:0") and used(0) == 2 * 4096
        i = constant([1]).gpu(1)
        assert i.device.endswith("GPU:1") and i.backing_device.endswith("CPU:0")
        assert copy.deepcopy(y) is y and used(1) == 4096
        with device("/GPU:1"):
            restored = pickle.loads(pickle.dumps(x))
        assert restored.device.endswith("GPU:1")
        del x, y, z, again, i, restored
        assert (used(0), used(1)) == (0, 0)
        """,
    )
    assert done.returncode == 0, done.stderr


def test_a_tensor_of_no_elements_is_one() -> None:
    x = tensor([])
    assert isinstance(x, EagerTensor)
    assert len(x) == 0
    assert list(x) == []
    assert not bool(x)
