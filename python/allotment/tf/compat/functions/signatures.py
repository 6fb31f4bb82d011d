"""Parameters of functions in TensorFlow 1, where their order, names or defaults differ from TensorFlow 2."""

import ast
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, Final

from allotment.tf.tensors import dtype as types

#: Parameters by the function's name. ``old > new`` renames a parameter, ``old > -`` drops it.
_REDUCTION: Final = (
    "input_tensor, axis=None, keepdims=None, name=None, reduction_indices=None > axis, "
    "keep_dims=None > keepdims"
)
_POSITION: Final = "input, axis=None, name=None, dimension=None > axis, output_type=int64"
_SOFTMAX: Final = "logits, axis=None, name=None, dim=None > axis"
_SCATTER: Final = "ref, indices, updates, use_locking=False, name=None"
_POOL: Final = "value > input, ksize, strides, padding, data_format='NHWC', name=None, input=None"
_PARAMETERS: Final = {
    **{
        f"reduce_{what}": _REDUCTION
        for what in ("all", "any", "logsumexp", "max", "mean", "min", "prod", "sum")
    },
    "argmax": _POSITION,
    "argmin": _POSITION,
    "avg_pool": _POOL,
    "avg_pool2d": _POOL,
    "bincount": "arr, weights=None, minlength=None, maxlength=None, dtype=int32",
    "boolean_mask": "tensor, mask, name='boolean_mask', axis=None",
    "confusion_matrix": "labels, predictions, num_classes=None, dtype=int32, name=None, weights=None",
    "conv1d": (
        "value=None > input, filters=None, stride=None, padding=None, use_cudnn_on_gpu=None > -, data_format=None, "
        "name=None, input=None, dilations=None"
    ),
    "conv2d": (
        "input, filter=None > filters, strides=None, padding=None, use_cudnn_on_gpu=True > -, data_format='NHWC', "
        "dilations=[1,1,1,1], name=None, filters=None"
    ),
    "conv2d_transpose": (
        "value=None > input, filter=None > filters, output_shape=None, strides=None, padding='SAME', "
        "data_format='NHWC', name=None, input=None, filters=None, dilations=None"
    ),
    "convert_to_tensor": "value, dtype=None, name=None, preferred_dtype=None > dtype_hint, dtype_hint=None",
    "count_nonzero": (
        "input_tensor=None > input, axis=None, keepdims=None, dtype=int64, name=None, reduction_indices=None > axis, "
        "keep_dims=None > keepdims, input=None"
    ),
    "crelu": "features, name=None, axis=-1",
    "depthwise_conv2d": (
        "input, filter, strides, padding, rate=None > dilations, name=None, data_format=None, dilations=None"
    ),
    "expand_dims": "input, axis=None, name=None, dim=None > axis",
    "gather": "params, indices, validate_indices=None, name=None, axis=None, batch_dims=0",
    "gather_nd": "params, indices, name=None, batch_dims=0, bad_indices_policy=''",
    "length": "input, name=None, unit='BYTE'",
    "log_softmax": _SOFTMAX,
    "max_pool": _POOL,
    "moments": "x, axes, shift=None, name=None, keep_dims=None > keepdims, keepdims=None",
    "norm": "tensor, ord='euclidean', axis=None, keepdims=None, name=None, keep_dims=None > keepdims",
    "pad": "tensor, paddings, mode='CONSTANT', name=None, constant_values=0",
    "poisson": "lam, shape, dtype=float32, seed=None, name=None",
    "reduce_join": (
        "inputs, axis=None, keep_dims=None > keepdims, separator='', name=None, reduction_indices=None > axis, "
        "keepdims=None"
    ),
    "reverse_sequence": (
        "input, seq_lengths, seq_axis=None, batch_axis=None, name=None, seq_dim=None > seq_axis, "
        "batch_dim=None > batch_axis"
    ),
    "shape": "input, name=None, out_type=None",
    "size": "input, name=None, out_type=None",
    "softmax": _SOFTMAX,
    "softmax_cross_entropy_with_logits_v2": "labels, logits, axis=None, name=None, dim=None > axis",
    "sparse_softmax_cross_entropy_with_logits": "labels=None, logits=None, name=None",
    "squeeze": "input, axis=None, name=None, squeeze_dims=None > axis",
    "substr": "input, pos, len, name=None, unit='BYTE'",
    "to_number": "string_tensor=None > input, out_type=float32, name=None, input=None",
    "transpose": "a, perm=None, name='transpose', conjugate=False",
    "tuple": "tensors, name=None, control_inputs=None",
    "weighted_cross_entropy_with_logits": (
        "labels=None, logits=None, pos_weight=None, name=None, targets=None > labels"
    ),
    "zeros_like": "tensor > input, dtype=None, name=None, optimize=True > -",
}

#: A parameter: its name, its default, and its name in TensorFlow 2.
_PARAMETER: Final = re.compile(r"(\w+)(?:=(.+?))?(?: > (\w+|-))?(?:, (?=\w+(?:=| >|,|$))|$)")


def as_in_1(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function to take the parameters of TensorFlow 1; without a difference, return it.

    Raises:
        ValueError: On a call: an argument is given by both of its names.
        TypeError: On a call: an unknown argument.
    """
    parameters = _PARAMETERS.get(name)
    return function if parameters is None else _with_parameters(function, parameters)


@functools.cache
def _with_parameters(function: Callable[..., Any], parameters: str) -> Callable[..., Any]:
    """Return a function with TensorFlow 1's parameters that calls a function with today's."""
    signature, today = _signature(parameters)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given: dict[str, Any] = {}
        for old, value in signature.bind(*args, **kwargs).arguments.items():
            new = today.get(old, old)
            # Arguments that are not given have the new default. Of two names for one parameter, one may be `None`.
            if new == "-" or (value is None and (old in today or new in today.values())):
                continue
            if new in given:
                raise ValueError(f"Cannot specify both '{new}' and '{old}'.")
            given[new] = value
        return function(**given)

    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _signature(parameters: str) -> tuple[inspect.Signature, dict[str, str]]:
    made, today = [], {}
    for name, default, new in _PARAMETER.findall(parameters):
        made.append(
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=_value(default) if default else inspect.Parameter.empty,
            )
        )
        if new:
            today[name] = new
    return inspect.Signature(made), today


def _value(text: str) -> Any:
    dtype = getattr(types, text, None)
    return ast.literal_eval(text) if dtype is None else dtype


__all__ = ["as_in_1"]
