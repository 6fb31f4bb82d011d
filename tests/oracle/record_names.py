"""Print the public names of the installed TensorFlow by module, for `python/allotment/tf/names/public_names.txt`.

Each line of the output contains the API versions (2, 1 or both), a module, and the module's names in these versions.
`allotment.tf.names.missing_names` reads the file to tell missing names of TensorFlow from typing errors.
"""

import os
from collections import defaultdict
from types import ModuleType

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

#: Names of TensorFlow 1.15 that 2.21 has removed or moved to Keras 2, but that older programs use.
REMOVED = {
    "": "contrib estimator layers",
    "contrib": "",
    "estimator": "",
    "layers": """
    AveragePooling1D AveragePooling2D AveragePooling3D BatchNormalization Conv1D Conv2D Conv2DTranspose Conv3D
    Conv3DTranspose Dense Dropout Flatten InputSpec Layer MaxPooling1D MaxPooling2D MaxPooling3D SeparableConv1D
    SeparableConv2D average_pooling1d average_pooling2d average_pooling3d batch_normalization conv1d conv2d
    conv2d_transpose conv3d conv3d_transpose dense dropout experimental flatten max_pooling1d max_pooling2d
    max_pooling3d separable_conv1d separable_conv2d
""",
}
#: Long modules whose contents are not recorded, because this package implements none of them.
WHOLE = ("raw_ops", "applications", "ops")


def walk(module, path, found):
    """Add the names of a module and of its submodules to `found`."""
    found[path].update(each for each in dir(module) if not each.startswith("_"))
    for name in found[path].copy():
        below = f"{path}.{name}".lstrip(".")
        part = getattr(module, name)
        # Skip the other API versions, and modules that are loaded lazily.
        if name in ("v1", "v2") or type(part).__name__ == "KerasLazyLoader":
            continue
        if name in WHOLE:
            found[below].clear()
        elif isinstance(part, ModuleType) and part.__name__.startswith(("tensorflow._api.", "keras.")):
            walk(part, below, found)


def main():
    """Print the names."""
    interfaces = {"2": defaultdict(set), "1": defaultdict(set)}
    walk(tf, "", interfaces["2"])
    walk(tf.keras, "keras", interfaces["2"])
    walk(tf.compat.v1, "", interfaces["1"])
    for module, names in REMOVED.items():
        for interface in interfaces.values():
            interface[module].update(names.split())
    print(f"# Public names of TensorFlow {tf.__version__}, recorded by tests/oracle/record_names.py.")
    for module in sorted({*interfaces["1"], *interfaces["2"]}):
        new, old = interfaces["2"].get(module, set()), interfaces["1"].get(module, set())
        for versions, names in (("12", new & old), ("2", new - old), ("1", old - new)):
            if names or (versions == "12" and not new | old):
                print(versions, module or ".", *sorted(names))


main()
