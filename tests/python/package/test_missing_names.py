"""Names of TensorFlow that are missing here: the error says so, and what there is."""

from typing import Any

import pytest

import allotment.tf as tf
import allotment.tf.v1 as v1
from allotment.tf.names.missing_names import NotOfferedError, public_names

#: Namespaces under the package, without those that a class of one's own may not look into.
NAMESPACES = [
    *(
        None,
        "bitwise",
        "config",
        "config.experimental",
        "config.threading",
        "data",
        "debugging",
        "distribute",
    ),
    *(
        "distribute.experimental",
        "dtypes",
        "errors",
        "linalg",
        "math",
        "nest",
        "nn",
        "random",
        "strings",
        "test",
    ),
    *("train", "version", "compat"),
]


def namespace(root: Any, path: str | None) -> Any:
    for part in (path or "").split(".") if path else []:
        root = getattr(root, part)
    return root


@pytest.mark.parametrize("path", NAMESPACES)
def test_each_name_of_tensorflow_is_there_or_says_that_it_is_not_offered(path: str | None) -> None:
    recorded = public_names("2")[path or ""]
    assert len(recorded) > 2
    for name in recorded:
        try:
            getattr(namespace(tf, path), name)
        except NotOfferedError as error:
            assert f".{name} is not offered. Available: " in str(error)  # noqa: PT017 - it may be there
            assert not hasattr(namespace(tf, path), name)


@pytest.mark.parametrize("root", [tf.compat.v1, v1], ids=["compat.v1", "v1"])
def test_each_name_of_tensorflow_1_is_there_or_says_that_it_is_not_offered(root: Any) -> None:
    for path in (None, "nn", "random", "debugging"):
        for name in public_names("1")[path or ""]:
            try:
                getattr(namespace(root, path), name)
            except NotOfferedError as error:
                assert f".{name} is not offered. Available: " in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "name",
    [
        *(
            "audio",
            "contrib",
            "estimator",
            "feature_column",
            "image",
            "io",
            "lite",
            "lookup",
            "profiler",
            "ragged",
        ),
        *("quantization", "raw_ops", "saved_model", "signal", "sparse", "summary"),
    ],
)
def test_a_namespace_that_is_missing_lists_those_there_are(name: str) -> None:
    for root in (tf, tf.compat.v1, tf.compat.v2, v1):
        assert not hasattr(root, name)
        with pytest.raises(
            NotImplementedError, match=rf"{name} is not offered\. Available: .*\bmath, .*\bnn, .*see dir"
        ):
            getattr(root, name)


@pytest.mark.parametrize(
    ("root", "name", "text"),
    [
        (
            tf,
            "placeholder",
            "module 'allotment.tf' has no attribute 'placeholder'; it is a name of compat.v1",
        ),
        (tf, "reduce_summ", "module 'allotment.tf' has no attribute 'reduce_summ'; there is 'reduce_sum'"),
        (tf.math, "_x", "module 'allotment.tf.math' has no attribute '_x'"),
        (tf.math, "no_such_function", "module 'allotment.tf.math' has no attribute 'no_such_function'"),
        (tf.dtypes, "float23", "module 'allotment.tf.dtypes' has no attribute 'float23'; there is 'float32'"),
    ],
)
def test_a_name_that_tensorflow_has_not_either(root: Any, name: str, text: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(root, name)
    assert str(raised.value) == text
    assert not isinstance(raised.value, NotImplementedError)


def test_of_many_names_those_are_listed_that_are_like_it() -> None:
    with pytest.raises(
        NotImplementedError, match=r"batch_to_space is not offered\. .* other names, see dir\(\)"
    ):
        namespace(tf, "batch_to_space")


def test_compat_v2_is_the_package() -> None:
    assert tf.compat.v2.constant is tf.constant
    assert set(dir(tf.compat.v2)) == set(tf.__all__)
