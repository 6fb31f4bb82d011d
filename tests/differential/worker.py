"""Worker process of the judge that runs programs with one package: ``worker.py PACKAGE``.

Reads one pickled list of source texts from standard input and writes each outcome to standard output as soon as it is
known, so that the judge can tell which program hangs or crashes.
"""

import os
import pickle
import struct
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any, BinaryIO

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# TensorFlow uses oneDNN's kernels on some CPUs only; without them its results are the same on all CPUs.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")


def main() -> None:
    """Run all programs of standard input."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    tf, v1 = _packages(sys.argv[1])
    from helpers import Helpers
    from outcome import Raised, described

    warnings.simplefilter("ignore")
    names = Helpers(tf, v1).names()
    _send(out, "ready")
    for source in pickle.load(sys.stdin.buffer):
        tf.random.set_seed(1)
        v1.reset_default_graph()
        scope: dict[str, Any] = dict(names)
        try:
            exec(compile(source, "program", "exec"), scope)
            made = described(scope["result"], tf)
        except BaseException as error:
            made = Raised(error)
            if os.environ.get("JUDGE_TRACEBACK"):
                made.text = traceback.format_exc()
        _send(out, made)


def _packages(name: str) -> tuple[Any, Any]:
    if name == "tensorflow":
        tf: Any = import_module("tensorflow")
        tf.get_logger().setLevel("ERROR")
        return tf, tf.compat.v1
    ours: Any = import_module("allotment.tf")
    return ours, ours.compat.v1


def _send(out: BinaryIO, made: Any) -> None:
    data = pickle.dumps(made)
    out.write(struct.pack("<q", len(data)) + data)
    out.flush()


main()
