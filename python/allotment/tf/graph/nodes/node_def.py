"""Descriptions of nodes: what ``op.node_def`` returns, for device functions and tools that look at a graph."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor_shape import TensorShape

#: Rows whose attributes are the type and the shape of their output.
_SOURCES = frozenset({"Placeholder", "PlaceholderWithDefault", "VariableV2", "VarHandleOp"})


class _Dim:
    """The length of one axis."""

    def __init__(self, size: int) -> None:
        self.size, self.name = size, ""


class TensorShapeProto:
    """A shape as messages have it: a length for each axis, -1 for those that are not known."""

    Dim = _Dim

    def __init__(self, shape: TensorShape) -> None:
        dims = shape.dims
        self.unknown_rank = dims is None
        self.dim = [_Dim(-1 if length is None else length) for length in dims or ()]

    def __str__(self) -> str:
        if self.unknown_rank:
            return "unknown_rank: true\n"
        return "".join(f"dim {{\n  size: {each.size}\n}}\n" for each in self.dim)


class AttrValue:
    """The value of an attribute of a node. As ``tf.compat.v1.AttrValue``; one of the fields is set.

    Args:
        value: What is set, or ``None``: a type, bool, number, text, shape or list of texts.
    """

    def __init__(self, value: Any = None) -> None:
        self._value = value

    @property
    def type(self) -> int:
        """The number of an element type, 0 if none is set."""
        return self._value.as_datatype_enum if isinstance(self._value, DType) else 0

    @property
    def b(self) -> bool:
        """The truth value, ``False`` if none is set."""
        return self._value if isinstance(self._value, bool) else False

    @property
    def i(self) -> int:
        """The whole number, 0 if none is set."""
        return self._value if isinstance(self._value, int) and not isinstance(self._value, bool) else 0

    @property
    def f(self) -> float:
        """The number, 0 if none is set."""
        return self._value if isinstance(self._value, float) else 0.0

    @property
    def s(self) -> bytes:
        """The text, empty if none is set."""
        return self._value.encode() if isinstance(self._value, str) else b""

    @property
    def shape(self) -> TensorShapeProto:
        """The shape, without axes if none is set."""
        return TensorShapeProto(self._value if isinstance(self._value, TensorShape) else TensorShape([]))

    @property
    def list(self) -> Any:
        """The texts of a list, in ``s``."""
        return _TextList(self._value if isinstance(self._value, tuple) else ())

    def _public(self) -> Any:
        """Return the value as ``op.get_attr`` does."""
        if isinstance(self._value, str):
            return self.s
        if isinstance(self._value, TensorShape):
            return self.shape
        return list(self._value) if isinstance(self._value, tuple) else self._value

    def __str__(self) -> str:
        value = self._value
        if value is None:
            return ""
        if isinstance(value, DType):
            return f"type: DT_{value.error_name.upper()}\n"
        if isinstance(value, bool):
            return f"b: {str(value).lower()}\n"
        if isinstance(value, TensorShape):
            return "shape {\n" + _indented(str(self.shape)) + "}\n"
        if isinstance(value, tuple):
            return "list {\n" + "".join(f'  s: "{each.decode()}"\n' for each in value) + "}\n"
        if isinstance(value, str):
            return f's: "{value}"\n'
        return f"{'f' if isinstance(value, float) else 'i'}: {value}\n"

    __repr__ = __str__


class _TextList:
    def __init__(self, texts: Iterable[bytes]) -> None:
        self.s = [*texts]


class _Attributes(dict[str, AttrValue]):
    """Attributes by name; one that is not there has no field set."""

    def __missing__(self, name: str) -> AttrValue:
        return AttrValue()


class NodeDef:
    """A description of a node: a copy, of which changes do not reach the node. As ``tf.compat.v1.NodeDef``.

    Args:
        name: The node's name.
        op: What it does, such as ``MatMul``.
        input: Names of what it computes with, and with ``^`` in front of what it waits for.
        device: The requested device, empty for none.
        attr: Attributes: element types, shapes, colocation and options.
    """

    def __init__(
        self,
        name: str = "",
        op: str = "",
        input: Iterable[str] = (),  # noqa: A002 - the name of the field
        device: str = "",
        attr: Mapping[str, AttrValue] | None = None,
    ) -> None:
        self.name, self.op, self.device = name, op, device
        self.input = [*input]
        self.attr = _Attributes(attr or {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeDef) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        fields = [("name", self.name), ("op", self.op), *(("input", each) for each in self.input)]
        lines = [f'{field}: "{text}"\n' for field, text in [*fields, ("device", self.device)] if text]
        for key, value in sorted(self.attr.items()):
            lines.append(f'attr {{\n  key: "{key}"\n  value {{\n{_indented(str(value), 4)}  }}\n}}\n')
        return "".join(lines)

    __repr__ = __str__


def attribute_values(
    type: str,  # noqa: A002 - as operations call it
    options: Mapping[str, Any],
    inputs: Sequence[DType],
    outputs: Sequence[tuple[DType, TensorShape]],
    groups: tuple[bytes, ...],
) -> dict[str, AttrValue]:
    """Return the attributes of a node by name.

    Args:
        type: What the node does, such as ``MatMul``.
        options: The keyword arguments of its row.
        inputs: The element types of its inputs; none of a node that reads or changes a variable.
        outputs: The element types and shapes of its outputs.
        groups: The nodes that share its device; none if there are no others.
    """
    values: dict[str, Any] = {
        name: value for name, value in options.items() if isinstance(value, bool | int | float | str | DType)
    }
    if type in _SOURCES:
        values["dtype"], values["shape"] = outputs[0]
    elif inputs:
        values["T"] = inputs[0]
    elif outputs:
        values["dtype"] = outputs[0][0]
    if groups:
        values["_class"] = groups
    return {name: AttrValue(value) for name, value in values.items()}


def _indented(text: str, spaces: int = 2) -> str:
    return "".join(f"{' ' * spaces}{line}\n" for line in text.splitlines())


__all__ = ["AttrValue", "NodeDef", "TensorShapeProto", "attribute_values"]
