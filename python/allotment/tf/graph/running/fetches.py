"""Reads the arguments of ``Session.run``: nested fetches, and feeds."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from allotment.tf import nest
from allotment.tf.graph.nodes.lookup import NodeLookup
from allotment.tf.graph.nodes.node import Operation, SymbolicTensor
from allotment.tf.ops.values import to_array
from allotment.tf.tensors.dtype import string
from allotment.tf.tensors.indexed_slices import IndexedSlices, IndexedSlicesValue
from allotment.tf.tensors.tensor import Tensor


def read_fetches(graph: NodeLookup, fetches: Any) -> list[Operation | SymbolicTensor]:
    """Return the nodes and tensors of a fetch structure as a list; ``arranged`` gives results that structure again.

    Raises:
        TypeError: Something that stands for no node or tensor.
        ValueError: A name that the graph does not have, or an element of another graph.
    """
    if fetches is None:
        raise TypeError('Argument `fetch` = None has invalid type "NoneType". Cannot be None')
    if isinstance(fetches, list | tuple):
        return [found for each in fetches for found in read_fetches(graph, each)]
    if isinstance(fetches, Mapping):
        return [found for each in fetches.values() for found in read_fetches(graph, each)]
    if isinstance(fetches, IndexedSlices):
        return read_fetches(graph, _parts(fetches))
    try:
        return [graph.as_graph_element(fetches)]
    except TypeError as error:
        error.__traceback__ = None
        raise TypeError(
            f'Argument `fetch` = {fetches} has invalid type "{type(fetches).__name__}" must be a string or Tensor. '
            f"({error})"
        ) from None
    except (ValueError, KeyError) as error:
        error.__traceback__ = None
        raise ValueError(
            f"Argument `fetch` = {fetches} cannot be interpreted as a Tensor. ({error})"
        ) from None


def arranged(fetches: Any, results: Any) -> Any:
    """Arrange results, an iterator, in the structure of the fetches."""
    if isinstance(fetches, list | tuple):
        parts = [arranged(each, results) for each in fetches]
        kind = type(fetches)
        return kind(*parts) if hasattr(fetches, "_fields") else kind(parts)
    if isinstance(fetches, Mapping):
        made = {key: arranged(each, results) for key, each in fetches.items()}
        return made if type(fetches) is dict else type(fetches)(made)  # type: ignore[call-arg]
    if isinstance(fetches, IndexedSlices):
        values, indices, *shape = arranged(_parts(fetches), results)
        return IndexedSlicesValue(values, indices, *(shape or (None,)))
    return next(results)


def _parts(slices: IndexedSlices) -> list[Any]:
    """The tensors of slices."""
    return [each for each in (slices.values, slices.indices, slices.dense_shape) if each is not None]


def read_feeds(graph: NodeLookup, feed_dict: Any) -> dict[SymbolicTensor, Any]:
    """Return the fed arrays by tensor.

    Raises:
        TypeError: Not a dictionary, or something that cannot be fed.
        ValueError: A value of another shape than the tensor's, or one that its type does not hold.
    """
    if not feed_dict:
        return {}
    if not isinstance(feed_dict, Mapping):
        raise TypeError(f"feed_dict must be a dictionary of tensors and values, not {feed_dict!r}")
    feeds: dict[SymbolicTensor, Any] = {}
    for key, value in feed_dict.items():
        keys, values = (nest.flatten(list(key)), list(value)) if isinstance(key, tuple) else ([key], [value])
        for each, given in zip(keys, values, strict=True):
            parts = _parts(each) if isinstance(each, IndexedSlices) else [each]
            # Slices are fed a tuple, of which what the slices do not have is left out.
            for part, fed in zip(parts, given if isinstance(each, IndexedSlices) else [given], strict=False):
                tensor = _tensor_of(graph, part)
                feeds[tensor] = _array_of(tensor, fed)
    return feeds


def _tensor_of(graph: NodeLookup, key: Any) -> SymbolicTensor:
    try:
        found = graph.as_graph_element(key, allow_operation=False)
    except (TypeError, ValueError, KeyError) as error:
        error.__traceback__ = None
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {error}") from None
    assert isinstance(found, SymbolicTensor)
    if found._op.type in ("VariableV2", "VarHandleOp"):
        raise ValueError(f"Tensor {found} may not be fed.")
    return found


def _array_of(tensor: SymbolicTensor, value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, Tensor) or hasattr(value, "_as_tensor"):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python scalars, strings, "
            f"lists, numpy ndarrays, or TensorHandles. For reference, the tensor object was {value!r} which was passed "
            f"to the argument `feed_dict` with key {tensor!r}."
        )
    dtype = tensor._dtype
    try:
        array = (
            to_array(np.asarray(value, object), string) if dtype is string else np.array(value, dtype.numpy)
        )
    except OverflowError as error:
        error.__traceback__ = None
        raise TypeError(
            f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type {dtype.name}. Try "
            "explicitly setting the type of the feed tensor to a larger type (e.g. int64)."
        ) from None
    except (TypeError, ValueError) as error:
        error.__traceback__ = None
        raise type(error)(
            f"{error}: {value!r} cannot be fed for {tensor!r}, which holds {dtype.name}"
        ) from None
    if not tensor._shape.is_compatible_with(array.shape):
        raise ValueError(
            f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, which has shape {tensor._shape}"
        )
    return array


__all__ = ["arranged", "read_feeds", "read_fetches"]
