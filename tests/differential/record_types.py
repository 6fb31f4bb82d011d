"""Script that records the element types of TensorFlow's operations in ``ops/types/kernel_types.py``.

ALLOTMENT_TENSORFLOW=PYTHON python tests/differential/record_types.py
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "python" / "allotment" / "tf" / "ops" / "types" / "kernel_types.py"

#: Program for TensorFlow's interpreter: reads names of operations from standard input and describes them as JSON.
_ASK = r"""
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from tensorflow.python.framework import kernels, op_def_registry

def name(number):
    return tf.as_dtype(number).name

def described(op):
    definition = op_def_registry.get(op)
    if definition is None:
        return None
    allowed = {a.name: [name(t) for t in a.allowed_values.list.type] for a in definition.attr if a.type == "type"}
    inputs = [
        (a.name, a.type_attr or ("" if a.type_list_attr else name(a.type)), bool(a.number_attr or a.type_list_attr))
        for a in definition.input_arg
    ]
    found = [
        {c.name: [name(t) for t in c.allowed_values.list.type] for c in kernel.constraint}
        for kernel in kernels.get_registered_kernels_for_op(op).kernel
        if kernel.device_type == "CPU" and not kernel.label
    ]
    return {"inputs": inputs, "allowed": allowed, "kernels": found}

print(json.dumps({op: described(op) for op in json.load(sys.stdin)}))
"""

_HEAD = '''"""Element types of TensorFlow 2.21's operations, recorded by ``tests/differential/record_types.py``.

For each operation: its inputs as ``name:type``, where the type is an attribute or fixed, nothing if it is any, and ends
with ``*`` for a list; for each attribute the types that are allowed, in the order in which error texts list them
(nothing: all), and those that a CPU kernel exists for (nothing: those that are allowed).

Longer than 300 lines: a table, a line for each operation.
"""

from typing import Final

'''


def main() -> None:
    """Record the types of all operations of the table."""
    from allotment.tf.ops.table import OPERATIONS
    from every_module import import_every_module

    import_every_module()
    answer = subprocess.run(
        [os.environ["ALLOTMENT_TENSORFLOW"], "-c", _ASK],
        input=json.dumps(sorted(OPERATIONS)),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(answer.stdout)
    missing = sorted(op for op, described in found.items() if described is None)
    print(f"not in TensorFlow: {', '.join(missing)}", file=sys.stderr)
    FILE.write_text(_HEAD + _tables({op: each for op, each in found.items() if each is not None}))


def _tables(found: dict[str, dict[str, Any]]) -> str:
    groups: dict[str, str] = {}

    def group(types: list[str]) -> str:
        return groups.setdefault(" ".join(types), f"_{len(groups)}")

    lines = []
    for op, each in found.items():
        inputs = " ".join(f"{name}:{kind}{'*' * is_list}" for name, kind, is_list in each["inputs"])
        attributes = []
        for attribute, allowed in each["allowed"].items():
            # A kernel without a constraint takes all allowed types.
            constrained = [kernel.get(attribute, ()) for kernel in each["kernels"]]
            kernels = sorted({each for types in constrained for each in types}) if all(constrained) else []
            attributes.append(f"{attribute!r}: ({group(allowed)}, {group(kernels)})")
        lines.append(f"    {op!r}: ({inputs!r}, {{{', '.join(attributes)}}}),")
    sets = [f"{name}: Final = {types!r}" for types, name in groups.items()]
    return "\n".join(
        [
            *sets,
            "",
            "#: By operation: its inputs, and by attribute what is allowed and what has a kernel.",
            "KERNEL_TYPES: Final[dict[str, tuple[str, dict[str, tuple[str, str]]]]] = {",
            *lines,
            "}",
            "",
        ]
    )


if __name__ == "__main__":
    main()
