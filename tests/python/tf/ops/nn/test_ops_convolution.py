"""Convolution and pooling, against loops over every window."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import allotment.tf as tf
from allotment import errors
from allotment.tf import nn
from support.tf.tensors import check, check_refused, tensor

SEED = np.random.default_rng(3)
Array = npt.NDArray[Any]


def border(length: int, size: int, stride: int, padding: Any) -> tuple[int, int, int]:
    """What is added in front of an axis, behind it, and how many windows there are then."""
    if padding == "VALID":
        before = after = 0
    elif padding == "SAME":
        missing = max((int(np.ceil(length / stride)) - 1) * stride + size - length, 0)
        before, after = missing // 2, missing - missing // 2
    else:
        before, after = padding
    return before, after, (length + before + after - size) // stride + 1


def slow_convolution(images: Array, filters: Array, stride: Any, padding: Any, dilation: int = 1) -> Array:
    down, right = stride
    height, width = ((size - 1) * dilation + 1 for size in filters.shape[:2])
    each = padding if isinstance(padding, str) else None
    top, bottom, rows = border(images.shape[1], height, down, each or padding[1])
    left, behind, columns = border(images.shape[2], width, right, each or padding[2])
    padded = np.pad(images, [(0, 0), (top, bottom), (left, behind), (0, 0)])
    depth, outputs = filters.shape[2:]
    share = outputs // (images.shape[3] // depth)
    result = np.zeros((len(images), rows, columns, outputs))
    for n, y, x, k in np.ndindex(*result.shape):
        first = k // share * depth
        for i, j, c in np.ndindex(*filters.shape[:3]):
            element = padded[n, y * down + i * dilation, x * right + j * dilation, first + c]
            result[n, y, x, k] += element * filters[i, j, c, k]
    return result


@pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [1, 0], [0, 2], [0, 0]]])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (2, 1)])
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (3, 3)])
def test_convolution(size: tuple[int, int], stride: tuple[int, int], padding: Any) -> None:
    images, filters = SEED.normal(size=(2, 5, 4, 3)), SEED.normal(size=(*size, 3, 4))
    expected = slow_convolution(images, filters, stride, padding)
    found = nn.conv2d(tensor(images), tensor(filters), list(stride), padding)
    check(found, expected, "float64", rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_dilated_filters(padding: str) -> None:
    images, filters = SEED.normal(size=(1, 7, 6, 2)), SEED.normal(size=(3, 2, 2, 3))
    expected = slow_convolution(images, filters, (1, 1), padding, dilation=2)
    found = nn.conv2d(tensor(images), tensor(filters), 1, padding, dilations=2)
    check(found, expected, "float64", rtol=1e-10, atol=1e-12)


def test_groups_of_channels() -> None:
    images, filters = SEED.normal(size=(2, 4, 4, 6)), SEED.normal(size=(2, 2, 2, 9))
    expected = slow_convolution(images, filters, (1, 1), "SAME")
    check(nn.conv2d(tensor(images), tensor(filters), 1, "SAME"), expected, "float64", rtol=1e-10, atol=1e-12)


def test_channels_in_front() -> None:
    images, filters = SEED.normal(size=(2, 5, 4, 3)), SEED.normal(size=(3, 3, 3, 2))
    expected = slow_convolution(images, filters, (2, 1), "SAME")
    turned = tensor(np.moveaxis(images, -1, 1).copy())
    found = nn.conv2d(turned, tensor(filters), [1, 1, 2, 1], "SAME", data_format="NCHW")
    check(found, np.moveaxis(expected, -1, 1), "float64", rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_convolution_by_hand(dtype: str) -> None:
    image = tensor([[[[1], [2]], [[3], [4]]]], dtype)
    ones = tensor([[[[1]], [[1]]], [[[1]], [[1]]]], dtype)
    check(nn.conv2d(image, ones, 1, "VALID"), [[[[10]]]], dtype)
    # The border is behind, where one column is missing.
    check(nn.conv2d(image, ones, [1, 1, 1, 1], "SAME"), [[[[10], [6]], [[7], [4]]]], dtype)
    check(nn.conv2d(input=image, filters=ones, strides=1, padding="VALID", name="mine"), [[[[10]]]], dtype)


def test_nothing_to_slide_over() -> None:
    filters = tensor(np.ones((2, 2, 3, 4)))
    check(nn.conv2d(tensor(np.ones((0, 5, 5, 3))), filters, 1, "SAME"), np.zeros((0, 5, 5, 4)), "float64")
    check(nn.conv2d(tensor(np.ones((1, 1, 5, 3))), filters, 1, "VALID"), np.zeros((1, 0, 4, 4)), "float64")
    # How many windows there are is rounded to zero, so that images may be smaller by almost a stride.
    far = nn.conv2d(tensor(np.ones((1, 2, 5, 3))), tensor(np.ones((3, 1, 3, 4))), 2, "VALID", dilations=2)
    check(far, np.zeros((1, 0, 3, 4)), "float64")


def slow_pool(images: Array, size: Any, stride: Any, padding: str, reduce: Any) -> Array:
    top, _, rows = border(images.shape[1], size[0], stride[0], padding)
    left, _, columns = border(images.shape[2], size[1], stride[1], padding)
    result = np.zeros((len(images), rows, columns, images.shape[3]))
    for n, y, x, c in np.ndindex(*result.shape):
        inside = [
            images[n, row, column, c]
            for row in range(y * stride[0] - top, y * stride[0] - top + size[0])
            for column in range(x * stride[1] - left, x * stride[1] - left + size[1])
            if 0 <= row < images.shape[1] and 0 <= column < images.shape[2]
        ]
        result[n, y, x, c] = reduce(inside)
    return result


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 2)])
def test_pooling(size: tuple[int, int], stride: tuple[int, int], padding: str) -> None:
    images = SEED.normal(size=(2, 5, 4, 3))
    largest = slow_pool(images, size, stride, padding, max)
    means = slow_pool(images, size, stride, padding, np.mean)
    check(nn.max_pool(tensor(images), size, stride, padding), largest, "float64")
    check(nn.avg_pool(tensor(images), list(size), [1, *stride, 1], padding), means, "float64")
    turned = tensor(np.moveaxis(images, -1, 1).copy())
    found = nn.avg_pool2d(turned, size, stride, padding, data_format="NCHW")
    check(found, np.moveaxis(means, -1, 1), "float64")


def test_pooling_of_other_types() -> None:
    image = [[[[1], [2]], [[3], [5]]]]
    for dtype in ("float16", "float32", "int32", "uint8", "int64"):
        check(nn.max_pool(tensor(image, dtype), 2, 2, "VALID"), [[[[5]]]], dtype)
    check(
        nn.max_pool2d(tensor(image), ksize=2, strides=1, padding="SAME"), [[[[5], [5]], [[5], [5]]]], "int32"
    )
    check(nn.avg_pool(tensor(image, "float16"), 2, 2, "VALID"), [[[[2.75]]]], "float16")
    check_refused(nn.avg_pool, tensor(image), 2, 2, "VALID", text="[Op:AvgPool]")


def test_shapes_that_do_not_fit() -> None:
    images, filters = tensor(np.ones((1, 4, 4, 3))), tensor(np.ones((2, 2, 3, 4)))
    check_refused(
        nn.conv2d,
        tensor([1.0]),
        tensor([1.0]),
        1,
        "SAME",
        text="input must be 4-dimensional: [1] [Op:Conv2D]",
    )
    check_refused(
        nn.conv2d, images, tensor([1.0], "float64"), 1, "SAME", text="filter must be 4-dimensional: [1]"
    )
    two = tensor(np.ones((2, 2, 2, 4)))
    check_refused(
        nn.conv2d, images, two, 1, "SAME", text="input depth must be evenly divisible by filter depth: 3 vs 2"
    )
    one = tensor(np.ones((2, 2, 1, 4)))
    check_refused(
        nn.conv2d,
        images,
        one,
        1,
        "SAME",
        text="output depth must be evenly divisible by number of groups: 4 vs 3",
    )
    big = tensor(np.ones((6, 6, 3, 4)))
    text = "Computed output size would be negative: -1 [input_size: 4, effective_filter_size: 6, stride: 1]"
    check_refused(nn.conv2d, images, big, 1, "VALID", text=text)
    check_refused(nn.max_pool, images, 6, 1, "VALID", text=text)
    check_refused(nn.max_pool, tensor([1.0]), 1, 1, "VALID", text="tensor_in must be 4-dimensional: [1]")
    check_refused(
        nn.conv2d, images, tensor(np.ones((2, 2, 3, 4), np.float32)), 1, "SAME", text="input #1(zero-based)"
    )
    assert filters.shape == (2, 2, 3, 4)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"strides": [1, 2, 3]}, "strides should be of length 1, 2 or 4"),
        ({"padding": [[0, 0], [1, 1], [1, 1], [0, 1]]}, "padding must be"),
        ({"padding": [[1, 1], [1, 1], [1, 1], [0, 0]]}, "padding must be"),
        ({"padding": [[0, 0], [1, -1], [1, 1], [0, 0]]}, "padding must be"),
        ({"padding": [[0, 0], [1, 1]]}, "padding must be"),
    ],
)
def test_arguments_of_no_use(changed: dict[str, Any], text: str) -> None:
    images, filters = tensor(np.ones((1, 4, 4, 3))), tensor(np.ones((2, 2, 3, 4)))
    given: dict[str, Any] = {"input": images, "filters": filters, "strides": 1, "padding": "SAME"}
    with pytest.raises(ValueError, match=text):
        nn.conv2d(**(given | changed))


@pytest.mark.parametrize(
    ("changed", "kind", "text"),
    [
        ({"strides": 0}, errors.InvalidArgumentError, "strides must be positive"),
        ({"dilations": -1}, errors.InvalidArgumentError, "dilations must be positive"),
        ({"strides": [2, 1, 1, 1]}, errors.UnimplementedError, "strides must be 1 in the batch and depth"),
    ],
)
def test_windows_that_no_kernel_takes(changed: dict[str, Any], kind: type[Exception], text: str) -> None:
    given: dict[str, Any] = {"filters": np.ones((2, 2, 3, 4), np.float32), "strides": 1, "padding": "SAME"}
    images = np.ones((1, 4, 4, 3), np.float32)
    with pytest.raises(kind, match=text):
        nn.conv2d(tf.constant(images), **(given | changed))
    with tf.compat.v1.Graph().as_default(), pytest.raises(ValueError, match=text):
        nn.conv2d(tf.constant(images), **(given | changed))


def test_paddings_and_formats_that_are_none() -> None:
    images, filters = tensor(np.ones((1, 4, 4, 3))), tensor(np.ones((2, 2, 3, 4)))
    allowed = '"SAME", "VALID", "EXPLICIT"'
    for wrong in ("FULL", "same"):
        text = f"Value for attr 'padding' of \"{wrong}\" is not in the list of allowed values: {allowed}"
        check_refused(nn.conv2d, images, filters, 1, wrong, text=text)
        check_refused(nn.max_pool2d, images, 2, 1, wrong, text=text)
        check_refused(nn.avg_pool2d, images, 2, 1, wrong, text=text.replace(', "EXPLICIT"', ""))
    check_refused(
        nn.conv2d,
        images,
        filters,
        1,
        "VALID",
        "CHWN",
        text='Value for attr \'data_format\' of "CHWN" is not in the list of allowed values: "NHWC", "NCHW"',
    )
    with pytest.raises(TypeError, match="Expected string for argument 'padding' not 5"):
        nn.conv2d(images, filters, 1, 5)
    with pytest.raises(TypeError, match="Expected string for argument 'padding' not"):
        nn.avg_pool2d(images, 2, 1, [[0, 0], [1, 1], [1, 1], [0, 0]])


def test_arguments_that_are_no_whole_numbers() -> None:
    images = tensor(np.ones((1, 4, 4, 3)))
    for wrong in ("ab", [1, "a"], [object()]):
        with pytest.raises(TypeError, match="ksize must be one whole number"):
            nn.max_pool(images, wrong, 1, "SAME")
    # Attributes are what Python's `int` makes of them.
    assert nn.max_pool(images, 2.5, None, "SAME").shape == (1, 4, 4, 3)
    with pytest.raises(errors.InvalidArgumentError, match="padding must be whole numbers"):
        nn.max_pool(images, 2, 1, [[0, 0], [0.5, 0], [0, 0], [0, 0]])


def test_windows_in_the_border_alone_have_no_largest_element() -> None:
    images = tf.ones([1, 3, 3, 1])
    assert tf.nn.max_pool2d(images, 3, 1, [[0, 0], [2, 0], [0, 2], [0, 0]]).shape == (1, 3, 3, 1)
    for pads, text in (
        ([[0, 0], [0, 2], [0, 0], [0, 0]], "Bottom padding 2 needs to be smaller than the window size 2"),
        ([[0, 0], [0, 0], [3, 0], [0, 0]], "Left padding 3 needs to be smaller than the window size 2"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            tf.nn.max_pool2d(images, 2, 1, pads)


def test_several_batch_axes() -> None:
    images = np.arange(36, dtype=np.float32).reshape(2, 2, 3, 3, 1)
    filters = np.array([1.0, 2.0, 3.0, 4.0], np.float32).reshape(2, 2, 1, 1)
    expected = [
        [nn.conv2d(images[i, j][None], filters, 1, "SAME").numpy()[0] for j in (0, 1)] for i in (0, 1)
    ]
    np.testing.assert_array_equal(nn.conv2d(images, filters, 1, "SAME"), expected)
    for shape in ([2, 2, 3, 3, 1], [None] * 5):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            fed = tf.compat.v1.placeholder(tf.float32, shape)
            np.testing.assert_array_equal(
                session.run(nn.conv2d(fed, filters, 1, "SAME"), {fed: images}), expected
            )
    assert nn.conv1d(images[..., 0], np.ones([2, 3, 4], np.float32), 1, "VALID").shape == (2, 2, 2, 4)
