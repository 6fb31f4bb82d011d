"""``tf.layers`` of TensorFlow 1: functions that make the variables of a layer by name, and compute with them.

TensorFlow 2.21 has them no more where its Keras is of version 3. Names of variables, scopes, what is made again and
what is added to collections are those of TensorFlow 1.15.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from allotment.devices.placement import thread
from allotment.tf.compat.get_variable import get_variable
from allotment.tf.compat.variable_scopes import variable_scope
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph
from allotment.tf.names.missing_names import module_getattr
from allotment.tf.ops.array.array import cast, identity, is_tensor
from allotment.tf.ops.array.layout import reshape, transpose
from allotment.tf.ops.array.shapes import shape as shape_of
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.linalg.products import matmul
from allotment.tf.ops.linalg.tensor_products import tensordot
from allotment.tf.ops.math.arithmetic import multiply, subtract
from allotment.tf.ops.nn.convolution import conv2d as convolved
from allotment.tf.ops.nn.layers import batch_normalization as normalized
from allotment.tf.ops.nn.layers import bias_add, moments
from allotment.tf.ops.nn.layers import dropout as dropped
from allotment.tf.ops.nn.pooling import avg_pool, max_pool
from allotment.tf.ops.random.initializers import ones_initializer, zeros_initializer
from allotment.tf.tensors.tensor_shape import TensorShape

#: Below this, TensorFlow's fused kernel takes this as what is added to the variance.
_LEAST_EPSILON: Final = 1.001e-5


def dense(
    inputs: Any,
    units: int,
    activation: Callable[..., Any] | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = zeros_initializer(),  # noqa: B008 - it keeps nothing
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """Compute ``activation(inputs @ kernel + bias)`` over the last axis. As ``tf.compat.v1.layers.dense``.

    Args:
        inputs: Floats.
        units: The number of outputs.
        activation: A function of the outputs.
        use_bias: Whether something is added to the product.
        kernel_initializer: What makes the kernel; that of the variable scope if not given.
        bias_initializer: What makes the bias.
        kernel_regularizer: A function of the kernel that gives a loss, for the collection of those.
        bias_regularizer: The same for the bias.
        activity_regularizer: The same for the outputs; the loss is divided by the number of samples.
        kernel_constraint: Kept for optimizers.
        bias_constraint: Kept for optimizers.
        trainable: Whether the variables are in the collection of trainable ones.
        name: The name of the scope of variables; ``dense``, ``dense_1`` and so on if not given.
        reuse: Whether the variables are there already; see ``variable_scope``.

    Raises:
        ValueError: The last length is not known; variables that there are, or are not, contrary to ``reuse``.
        TypeError: The inputs are no floats.
    """
    tensor = _floats(inputs, "Dense")
    length = tensor.shape[-1] if tensor.shape.rank else None
    if length is None:
        raise ValueError(
            f"The last dimension of the inputs to `Dense` should be defined. Found `None` in {tensor.shape}."
        )
    with _scope(name, "dense", reuse):
        options = {"dtype": tensor.dtype, "trainable": trainable}
        kernel = get_variable(
            "kernel",
            [length, units],
            initializer=kernel_initializer,
            regularizer=kernel_regularizer,
            constraint=kernel_constraint,
            **options,
        )
        outputs = matmul(tensor, kernel) if tensor.shape.rank == 2 else tensordot(tensor, kernel, 1)
        if use_bias:
            bias = get_variable(
                "bias",
                [units],
                initializer=bias_initializer,
                regularizer=bias_regularizer,
                constraint=bias_constraint,
                **options,
            )
            outputs = bias_add(outputs, bias)
        return _activated(outputs, activation, activity_regularizer)


def conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = (1, 1),
    activation: Callable[..., Any] | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = zeros_initializer(),  # noqa: B008 - it keeps nothing
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """Slide filters over images. As ``tf.compat.v1.layers.conv2d``.

    Args:
        inputs: Images, floats.
        filters: The number of filters.
        kernel_size: Height and width of a filter, as one number or two.
        strides: How far it moves, as one number or two.
        padding: ``"valid"`` or ``"same"``, in any case.
        data_format: ``"channels_last"`` or ``"channels_first"``.
        dilation_rate: Distance between the elements under a filter, as one number or two.
        activation: A function of the outputs.
        use_bias: Whether something is added to each channel.
        kernel_initializer: See ``dense``, as of what follows.
        bias_initializer: See ``dense``.
        kernel_regularizer: See ``dense``.
        bias_regularizer: See ``dense``.
        activity_regularizer: See ``dense``.
        kernel_constraint: See ``dense``.
        bias_constraint: See ``dense``.
        trainable: See ``dense``.
        name: See ``dense``; ``conv2d``, ``conv2d_1`` and so on if not given.
        reuse: See ``dense``.

    Raises:
        ValueError: The channels are not known; another format or padding; or as ``dense``.
        TypeError: The inputs are no floats.
    """
    tensor = _floats(inputs, "Conv2D")
    form = _format(data_format)
    channels = tensor.shape[1 if form == "NCHW" else -1] if tensor.shape.rank else None
    if channels is None:
        raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
    with _scope(name, "conv2d", reuse):
        options = {"dtype": tensor.dtype, "trainable": trainable}
        kernel = get_variable(
            "kernel",
            [*_pair(kernel_size, "kernel_size"), channels, filters],
            initializer=kernel_initializer,
            regularizer=kernel_regularizer,
            constraint=kernel_constraint,
            **options,
        )
        steps, holes = _pair(strides, "strides"), _pair(dilation_rate, "dilation_rate")
        outputs = convolved(tensor, kernel, steps, _padding(padding), form, holes)
        if use_bias:
            bias = get_variable(
                "bias",
                [filters],
                initializer=bias_initializer,
                regularizer=bias_regularizer,
                constraint=bias_constraint,
                **options,
            )
            outputs = bias_add(outputs, bias, form)
        return _activated(outputs, activation, activity_regularizer)


def max_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Any:
    """Take the largest elements of windows of images. As ``tf.compat.v1.layers.max_pooling2d``.

    Args:
        inputs: Images.
        pool_size: Height and width of a window, as one number or two.
        strides: How far it moves, as one number or two.
        padding: ``"valid"`` or ``"same"``, in any case.
        data_format: ``"channels_last"`` or ``"channels_first"``.
        name: The name of the scope, ``max_pooling2d`` if not given.

    Raises:
        ValueError: Another format or padding, or sizes that are no numbers.
    """
    return _pooled(max_pool, "max_pooling2d", inputs, pool_size, strides, padding, data_format, name)


def average_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Any:
    """Take the means of windows of images; see ``max_pooling2d``. As ``tf.compat.v1.layers.average_pooling2d``."""
    return _pooled(avg_pool, "average_pooling2d", inputs, pool_size, strides, padding, data_format, name)


def _pooled(
    pool: Callable[..., Any],
    default: str,
    inputs: Any,
    size: Any,
    strides: Any,
    padding: str,
    data_format: str,
    name: str | None,
) -> Any:
    window, steps = _pair(size, "pool_size"), _pair(strides, "strides")
    with _scope(name, default, None):
        return pool(to_tensor(inputs), window, steps, _padding(padding), _format(data_format))


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Any:
    """Arrange the elements of each sample in a row. As ``tf.compat.v1.layers.flatten``.

    Args:
        inputs: Samples along the first axis.
        name: The name of the scope, ``flatten`` if not given.
        data_format: ``"channels_first"`` makes channels the last axis first.

    Raises:
        ValueError: Another format.
    """
    form = _format(data_format)
    with _scope(name, "flatten", None):
        tensor = to_tensor(inputs)
        rank = tensor.shape.rank
        if form == "NCHW" and rank is not None and rank > 2:
            tensor = transpose(tensor, [0, *range(2, rank), 1])
        dims = tensor.shape.dims
        if dims is not None and None not in dims[1:]:
            # Of no samples a length cannot be told from the others.
            length = TensorShape(dims[1:]).num_elements()
            return reshape(tensor, [-1 if length or dims[0] is None else dims[0], length])
        return reshape(tensor, [shape_of(tensor)[0], -1])


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: Any = None,
    training: Any = False,
    name: str | None = None,
) -> Any:
    """Set a share of the elements to zero by chance, in training. As ``tf.compat.v1.layers.dropout``.

    Args:
        inputs: Floats.
        rate: The share.
        noise_shape: A shape that broadcasts to that of the inputs.
        seed: Of the random numbers.
        training: Whether it is training, as a truth value or a tensor of one.
        name: The name of the scope, ``dropout`` if not given.
    """
    with _scope(name, "dropout", None):
        tensor = to_tensor(inputs)
        if not is_tensor(training):
            return dropped(tensor, rate, noise_shape, seed) if training else identity(tensor)
        share = multiply(cast(training, tensor.dtype), cast(rate, tensor.dtype))
        return dropped(tensor, share, noise_shape, seed)


def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = zeros_initializer(),  # noqa: B008 - it keeps nothing
    gamma_initializer: Any = ones_initializer(),  # noqa: B008 - it keeps nothing
    moving_mean_initializer: Any = zeros_initializer(),  # noqa: B008 - it keeps nothing
    moving_variance_initializer: Any = ones_initializer(),  # noqa: B008 - it keeps nothing
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,  # noqa: ARG001 - TensorFlow's signature
    fused: bool | None = None,
    virtual_batch_size: Any = None,
    adjustment: Any = None,
) -> Any:
    """Give channels mean 0 and variance 1 over a batch. As ``tf.compat.v1.layers.batch_normalization``.

    In training, mean and variance are those of the batch, and operations that update what is kept of them go to the
    collection ``UPDATE_OPS``, which the program has to run. Else they are what is kept.

    Args:
        inputs: Floats.
        axis: The axis of the channels.
        momentum: What is kept of mean and variance with each batch.
        epsilon: Added to the variance.
        center: Whether something is added to each channel at the end.
        scale: Whether each channel is multiplied by something before.
        beta_initializer: What makes the values added.
        gamma_initializer: What makes the factors.
        moving_mean_initializer: What makes the first mean.
        moving_variance_initializer: What makes the first variance.
        beta_regularizer: A function of the values added that gives a loss.
        gamma_regularizer: A function of the factors that gives a loss.
        beta_constraint: Kept for optimizers.
        gamma_constraint: Kept for optimizers.
        training: Whether it is training, as a truth value or a tensor of one.
        trainable: Whether values added and factors are in the collection of trainable variables.
        name: See ``dense``; ``batch_normalization`` and so on if not given.
        reuse: See ``dense``.
        renorm: Not offered.
        renorm_clipping: Not offered.
        renorm_momentum: Has no effect.
        fused: Whether what is kept of the variance is that of the population, as TensorFlow's fused kernel has it:
            for images unless ``False``.
        virtual_batch_size: Not offered.
        adjustment: Not offered.

    Raises:
        ValueError: The channels are not known; or as ``dense``.
        TypeError: The inputs are no floats.
        NotImplementedError: An argument that is not offered.
    """
    for argument, value in (
        *(("renorm", renorm or None), ("renorm_clipping", renorm_clipping)),
        *(("virtual_batch_size", virtual_batch_size), ("adjustment", adjustment)),
    ):
        if value is not None:
            raise NotImplementedError(f"batch_normalization: `{argument}` is not offered, leave it out")
    tensor = _floats(inputs, "BatchNormalization")
    rank = tensor.shape.rank
    if rank is None:
        raise ValueError(f"Input has undefined rank: {tensor}")
    channel = (axis[0] if isinstance(axis, list | tuple) else axis) % rank
    length = tensor.shape[channel]
    if length is None:
        raise ValueError(f"Input has undefined `axis` dimension. Received input with shape {tensor.shape}.")
    with _scope(name, "batch_normalization", reuse):
        make = _maker([length], tensor.dtype)
        gamma = beta = None
        if scale:
            gamma = make("gamma", gamma_initializer, gamma_regularizer, gamma_constraint, trainable)
        if center:
            beta = make("beta", beta_initializer, beta_regularizer, beta_constraint, trainable)
        kept = (
            make("moving_mean", moving_mean_initializer, None, None, False),
            make("moving_variance", moving_variance_initializer, None, None, False),
        )
        is_fused = rank == 4 and channel in (1, 3) and fused is not False
        axes = [each for each in range(rank) if each != channel]
        meeting = None if channel == rank - 1 else [-1, *[1] * (rank - 1 - channel)]
        used: Sequence[Any] = kept
        if is_tensor(training) or training:
            seen = moments(tensor, axes)
            used = [_chosen(training, own, other) for own, other in zip(seen, kept, strict=True)]
            if is_fused:
                seen = (seen[0], _of_population(seen[1], tensor, channel))
            _keep(kept, seen, momentum, training)
        mean, variance, offset, factor = (
            None if each is None else each if meeting is None else reshape(each, meeting)
            for each in (*used, beta, gamma)
        )
        least = max(epsilon, _LEAST_EPSILON) if is_fused else epsilon
        return normalized(tensor, mean, variance, offset, factor, least)


def _maker(shape: list[int], dtype: Any) -> Callable[..., Any]:
    def make(name: str, initializer: Any, regularizer: Any, constraint: Any, trainable: bool) -> Any:
        return get_variable(
            name,
            shape,
            dtype=dtype,
            initializer=initializer,
            regularizer=regularizer,
            constraint=constraint,
            trainable=trainable,
        )

    return make


def _chosen(training: Any, own: Any, kept: Any) -> Any:
    """The batch's value in training, else the one that is kept."""
    return where(training, own, to_tensor(kept)) if is_tensor(training) else own


def _of_population(variance: Any, tensor: Any, channel: int) -> Any:
    """The variance of the population that a batch is a sample of."""
    elements = cast(shape_of(tensor), variance.dtype)
    count: Any = 1.0
    for axis in range(tensor.shape.rank):
        if axis != channel:
            count = multiply(elements[axis], count)
    return multiply(variance, count / where(count > 1, subtract(count, 1.0), count))


def _keep(kept: Sequence[Any], seen: Sequence[Any], momentum: float, training: Any) -> None:
    """Make what updates the kept values, for the collection of such operations; eagerly update them."""
    for variable, value in zip(kept, seen, strict=True):
        share: Any = cast(1 - momentum, variable.dtype)
        if is_tensor(training):
            share = multiply(share, cast(training, variable.dtype))
        change = multiply(subtract(variable, value), share)
        update = variable.assign_sub(change, name="AssignMovingAvg", read_value=False)
        if thread.state.graph is not None:
            get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, update)


def _activated(outputs: Any, activation: Callable[..., Any] | None, regularizer: Any) -> Any:
    if activation is not None:
        outputs = activation(outputs)
    if regularizer is not None:
        loss = regularizer(outputs) / cast(shape_of(outputs)[0], outputs.dtype)
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return outputs


def _scope(name: str | None, default: str, reuse: Any) -> variable_scope:
    """The scope of a layer's variables and nodes: of its name, or of a new one unless it is to be there."""
    if name is not None or reuse:
        return variable_scope(name or default, reuse=reuse)
    return variable_scope(None, default_name=default)


def _floats(inputs: Any, layer: str) -> Any:
    tensor: Any = to_tensor(inputs)
    if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
        raise TypeError(
            f"Unable to build `{layer}` layer with non-floating point (or complex) dtype {tensor.dtype!r}"
        )
    return tensor


def _pair(value: Any, name: str) -> list[int]:
    values = [value, value] if isinstance(value, int) else value
    if (
        not isinstance(values, list | tuple)
        or len(values) != 2
        or not all(isinstance(each, int) for each in values)
    ):
        raise ValueError(f"The `{name}` argument must be a tuple of 2 integers. Received: {value!r}")
    return [*values]


def _padding(padding: str) -> str:
    if str(padding).lower() not in ("valid", "same"):
        raise ValueError(f'The `padding` argument must be one of "valid", "same". Received: {padding}')
    return str(padding).upper()


def _format(data_format: str) -> str:
    forms = {"channels_last": "NHWC", "channels_first": "NCHW"}
    if str(data_format).lower() not in forms:
        raise ValueError(
            'The `data_format` argument must be one of "channels_first", "channels_last". '
            f"Received: {data_format}"
        )
    return forms[str(data_format).lower()]


__all__ = [
    "average_pooling2d",
    "batch_normalization",
    "conv2d",
    "dense",
    "dropout",
    "flatten",
    "max_pooling2d",
]

__getattr__ = module_getattr("allotment.tf.compat.v1.layers", __all__)
