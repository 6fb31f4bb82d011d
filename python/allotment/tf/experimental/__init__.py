"""``tf.experimental``: exchange of tensors with other libraries by DLPack."""

from allotment.tf.experimental import dlpack
from allotment.tf.names.missing_names import refuse_other_names

__all__ = ["dlpack"]

refuse_other_names(__name__)
