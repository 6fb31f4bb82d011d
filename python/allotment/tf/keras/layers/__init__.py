"""Layers. As ``keras.layers``."""

from allotment.tf.keras.engine.input_spec import InputSpec
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.layers.convolution import Conv2D
from allotment.tf.keras.layers.core import Activation, Dense, Embedding, ReLU, Softmax
from allotment.tf.keras.layers.dropout import Dropout
from allotment.tf.keras.layers.functions import Lambda, Rescaling
from allotment.tf.keras.layers.inputs import Input, InputLayer
from allotment.tf.keras.layers.merging import Add, Concatenate, add, concatenate
from allotment.tf.keras.layers.normalization import BatchNormalization, LayerNormalization
from allotment.tf.keras.layers.pooling import AveragePooling2D, GlobalAveragePooling2D, MaxPooling2D
from allotment.tf.keras.layers.shaping import Flatten, Reshape
from allotment.tf.names.missing_names import refuse_other_names

# Other names in Keras.
AvgPool2D = AveragePooling2D
GlobalAvgPool2D = GlobalAveragePooling2D
MaxPool2D = MaxPooling2D

__all__ = [
    "Activation",
    "Add",
    "AveragePooling2D",
    "AvgPool2D",
    "BatchNormalization",
    "Concatenate",
    "Conv2D",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GlobalAveragePooling2D",
    "GlobalAvgPool2D",
    "Input",
    "InputLayer",
    "InputSpec",
    "Lambda",
    "Layer",
    "LayerNormalization",
    "MaxPool2D",
    "MaxPooling2D",
    "ReLU",
    "Rescaling",
    "Reshape",
    "Softmax",
    "add",
    "concatenate",
]

refuse_other_names(__name__)
