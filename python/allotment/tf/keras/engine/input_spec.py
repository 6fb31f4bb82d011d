"""The requirements of a layer for the shape of its input."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class InputSpec:
    """The requirements of a layer for the shape of its input. As ``keras.InputSpec``, for shapes."""

    #: The number of axes, any if ``None``.
    ndim: int | None = None
    #: The least number of axes, any if ``None``.
    min_ndim: int | None = None
    #: The lengths of single axes, by number.
    axes: Mapping[int, int] = field(default_factory=dict)

    def check(self, name: str, shape: Any) -> None:
        """Check a shape for the layer of this name.

        Raises:
            ValueError: It does not meet the requirements.
        """
        if isinstance(shape, dict) or any(isinstance(each, tuple) for each in shape):
            raise ValueError(
                f"Layer {name!r} expects 1 input(s), but it received several: their shapes are {shape}"
            )
        prefix = f"Input 0 of layer {name!r} is incompatible with the layer: expected "
        if self.ndim is not None and len(shape) != self.ndim:
            raise ValueError(
                f"{prefix}ndim={self.ndim}, found ndim={len(shape)}. Full shape received: {shape}"
            )
        if self.min_ndim is not None and len(shape) < self.min_ndim:
            raise ValueError(
                f"{prefix}min_ndim={self.min_ndim}, found ndim={len(shape)}. Full shape received: {shape}"
            )
        for axis, length in self.axes.items():
            if shape[axis] not in (length, None):
                raise ValueError(
                    f"{prefix}axis {axis} of input shape to have value {length}, but received input with shape {shape}"
                )


__all__ = ["InputSpec"]
