"""``tf.nn``: activations, losses, convolution, and other operations of neural networks."""

from allotment.tf.distribute.losses import compute_average_loss, scale_regularization_loss
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.indexing.sorting import top_k
from allotment.tf.ops.math.real import sigmoid, tanh
from allotment.tf.ops.nn.activations import (
    crelu,
    elu,
    gelu,
    leaky_relu,
    relu,
    relu6,
    selu,
    silu,
    softplus,
    softsign,
    swish,
)
from allotment.tf.ops.nn.convolution import conv2d
from allotment.tf.ops.nn.convolution_variants import (
    avg_pool1d,
    conv1d,
    conv2d_transpose,
    depthwise_conv2d,
    max_pool1d,
)
from allotment.tf.ops.nn.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)
from allotment.tf.ops.nn.layers import (
    batch_normalization,
    bias_add,
    dropout,
    embedding_lookup,
    in_top_k,
    moments,
    zero_fraction,
)
from allotment.tf.ops.nn.pooling import avg_pool, avg_pool2d, max_pool, max_pool2d
from allotment.tf.ops.nn.softmax import log_softmax, softmax
from allotment.tf.ops.reduction.norms import l2_loss
from allotment.tf.ops.reduction.statistics import l2_normalize

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "batch_normalization",
    "bias_add",
    "compute_average_loss",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "crelu",
    "depthwise_conv2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "gelu",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "log_softmax",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "moments",
    "relu",
    "relu6",
    "scale_regularization_loss",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "swish",
    "tanh",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "zero_fraction",
]

refuse_other_names(__name__)
