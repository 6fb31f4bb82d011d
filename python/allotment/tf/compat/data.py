"""``tf.compat.v1.data``: ``tf.data`` with the iterators that TensorFlow 1 had."""

from typing import Any, Final

from allotment.tf import data
from allotment.tf.data.graph_iterators import (
    GraphIterator,
    make_initializable_iterator,
    make_one_shot_iterator,
)
from allotment.tf.data.structure import map_values
from allotment.tf.names.missing_names import missing_name_error
from allotment.tf.tensors.tensor import Tensor


def get_output_types(dataset_or_iterator: Any) -> Any:
    """Return the element types of a data set or iterator. As ``tf.compat.v1.data.get_output_types``."""
    return map_values(lambda spec: spec.dtype, dataset_or_iterator.element_spec)


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """Return the shapes of the elements. As ``tf.compat.v1.data.get_output_shapes``."""
    return map_values(lambda spec: spec.shape, dataset_or_iterator.element_spec)


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """Return the classes of the elements: tensors. As ``tf.compat.v1.data.get_output_classes``."""
    return map_values(lambda spec: Tensor, dataset_or_iterator.element_spec)  # noqa: ARG005 - all alike


_OWN: Final = {
    "Iterator": GraphIterator,
    "get_output_classes": get_output_classes,
    "get_output_shapes": get_output_shapes,
    "get_output_types": get_output_types,
    "make_initializable_iterator": make_initializable_iterator,
    "make_one_shot_iterator": make_one_shot_iterator,
}


def __getattr__(name: str) -> Any:
    if name in _OWN:
        return _OWN[name]
    if name in data.__all__:
        return getattr(data, name)
    raise missing_name_error("allotment.tf.compat.v1.data", name, __dir__())


def __dir__() -> list[str]:
    return sorted({*data.__all__, *_OWN})
