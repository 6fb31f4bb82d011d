"""``tf.compat.v1.data``: ``tf.data`` with the iterators of TensorFlow 1."""

from typing import Any, Final

from allotment.tf import data
from allotment.tf.compat.functions.namespace import extend_namespace
from allotment.tf.data.graph_iterators import (
    GraphIterator,
    make_initializable_iterator,
    make_one_shot_iterator,
)
from allotment.tf.data.structure import map_values
from allotment.tf.names.missing_names import refuse_other_names
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

__getattr__, __dir__ = extend_namespace(__name__, data, _OWN)

refuse_other_names(__name__)
