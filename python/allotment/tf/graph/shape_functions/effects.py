"""Shapes of what is changed, and of operations that are there for what they do."""

from typing import Any

from allotment.tf.ops.inference.shape_functions import Inference, Output, shape_function


@shape_function("Assert", "NoOp", "Print", "PrintV2")
def _nothing(c: Inference, *args: Any, **kwargs: Any) -> list[Output]:
    return []


@shape_function(
    "AssignAdd",
    "AssignAddVariableOp",
    "AssignSub",
    "AssignSubVariableOp",
    *(f"ResourceScatter{kind}" for kind in ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")),
    *(f"ResourceScatterNd{kind}" for kind in ("Add", "Sub", "Update")),
    "ResourceStridedSliceAssign",
    *(f"ResourceApply{kind}" for kind in ("AdagradV2", "Adam", "AdamWithAmsgrad", "GradientDescent")),
    "ResourceApplyKerasMomentum",
    "ResourceApplyKerasMovingAverage",
    "ResourceApplyKerasOverwrite",
    "ResourceApplyKerasWeightDecay",
    "ResourceApplyRMSProp",
    "IteratorGetNext",
    "IteratorV2",
    "MakeIterator",
    "Placeholder",
    "VarHandleOp",
    "VariableV2",
)
def _stated(c: Inference, *args: Any, **kwargs: Any) -> list[Output]:
    # The caller that adds the node states the outputs: variables and iterators know theirs, placeholders are given one.
    raise NotImplementedError(f"the outputs of {c.row.name} are stated where the node is added")


__all__: list[str] = []
